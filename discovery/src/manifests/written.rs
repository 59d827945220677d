//! Extraction of values from a manifest's text, in the form that the user wrote.

use ignition::network::yaml;

use super::Object;

impl Object {
    /// Returns the text of a mapping without its indentation. Returns `None` if the text cannot be extracted, because
    /// the mapping is in flow style (braces) or JSON, or refers to an anchor elsewhere.
    pub(super) fn mapping_text(&self, path: &str) -> Option<String> {
        let key = path.rsplit('.').next()?;
        let text = block_below_key(self.lines_from(path)?, key)?;
        (yaml::read(&text).ok().as_ref() == self.get(path)).then_some(text)
    }
}

/// Returns the indented block below a key. `lines` starts at the line of the key.
fn block_below_key<'a>(mut lines: impl Iterator<Item = &'a str>, key: &str) -> Option<String> {
    let first = lines.next()?;
    let rest = first.trim_start_matches(' ').strip_prefix(key)?.strip_prefix(':')?.trim();
    if !rest.is_empty() && !rest.starts_with('#') {
        return None;
    }
    let is_inside = |line: &&str| has_no_content(line) || indentation(line) > indentation(first);
    let mut body: Vec<&str> = lines.take_while(is_inside).collect();
    while body.last().is_some_and(|line| has_no_content(line)) {
        body.pop();
    }
    let depth = body.iter().filter(|line| !has_no_content(line)).map(|line| indentation(line)).min()?;
    let cut = |line: &&str| line.get(depth.min(indentation(line))..).unwrap_or_default().to_owned() + "\n";
    Some(body.iter().map(cut).collect())
}

/// Returns `true` if a line is blank or a comment. Such a line may be indented less than the block around it.
fn has_no_content(line: &str) -> bool {
    let text = line.trim();
    text.is_empty() || text.starts_with('#')
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use crate::manifests::Manifests;

    fn written(text: &str) -> Option<String> {
        let mut manifests = Manifests::default();
        manifests.add("a.yaml", text).unwrap();
        manifests.objects()[0].mapping_text("spec.config")
    }

    #[test]
    fn block_is_returned_as_written_without_its_indentation() {
        let text = "kind: A\nspec:\n  config: # of node-0\n    # NICs\n    interfaces:\n    - name: eth0\n\n      mtu: 0x5dc\n  \
                    # end\n  interfaces: []\n";
        let block = "# NICs\ninterfaces:\n- name: eth0\n\n  mtu: 0x5dc\n";
        assert_eq!(written(text).as_deref(), Some(block));
        assert_eq!(written(&text.replace('\n', "\r\n")).as_deref(), Some(block));
        assert_eq!(written(&format!("# x\r# y\u{2028}\n{text}")).as_deref(), Some(block));
        let list = format!("kind: List\nitems:\n- {}", text.replace('\n', "\n  "));
        assert_eq!(written(&list).as_deref(), Some(block));
        let scalar = "kind: A\nspec:\n  config:\n      a: |\n        # x\n\n        y\n      b: 1\n";
        assert_eq!(written(scalar).as_deref(), Some("a: |\n  # x\n\n  y\nb: 1\n"));
    }

    #[test]
    fn values_that_are_not_plain_blocks_are_not_extracted() {
        for text in [
            "kind: A\nspec:\n  config: {a: 1}\n",
            "kind: A\nspec: {config: {a: 1}}\n",
            "{\"kind\": \"A\",\n\"spec\": {\n\"config\":\n{\"a\": 1}}}",
            "kind: A\nx: &x 1\nspec:\n  config:\n    a: *x\n",
            "kind: A\nspec:\n  config: &c\n    a: 1\n",
            "kind: A\nspec:\n  config:\n    a: |\n      x\n\n\n    # y\n",
        ] {
            assert!(written(text).is_none_or(|it| it == "a: |\n  x\n"), "{text}");
        }
    }
}
