//! A splitter that reads the items of a JSON list one at a time, so that a long list need not fit in memory.

/// A splitter of a JSON list into items as the bytes of the list arrive. Only the current item is in memory.
///
/// The splitter finds only the boundaries between items. The caller parses and validates each item.
#[derive(Debug, Default)]
pub(super) struct ItemSplitter {
    item: Vec<u8>,
    /// Nesting depth: open brackets and braces outside of strings.
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    has_begun: bool,
    is_not_a_list: bool,
}

impl ItemSplitter {
    /// Reads the next bytes, and passes each complete item to `visit`. Returns the first error of `visit`.
    pub(super) fn push<E>(
        &mut self,
        bytes: &[u8],
        mut visit: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for byte in bytes {
            let is_item_end = self.depth == 1 && !self.is_in_string && matches!(byte, b',' | b']');
            if is_item_end {
                let item = std::mem::take(&mut self.item);
                if !item.trim_ascii().is_empty() {
                    visit(&item)?;
                }
            } else if self.depth > 0 {
                self.item.push(*byte);
            }
            self.step(*byte);
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) {
        if !self.has_begun && !byte.is_ascii_whitespace() {
            self.has_begun = true;
            self.is_not_a_list = byte != b'[';
        }
        if self.is_escaped {
            self.is_escaped = false;
        } else if self.is_in_string {
            match byte {
                b'"' => self.is_in_string = false,
                b'\\' => self.is_escaped = true,
                _ => {}
            }
        } else {
            match byte {
                b'"' => self.is_in_string = true,
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Returns the number of buffered bytes of the incomplete item.
    pub(super) fn pending(&self) -> usize {
        self.item.len()
    }

    /// Returns `true` if the first byte is not `[`, for example because the response is an HTML page.
    pub(super) fn is_not_a_list(&self) -> bool {
        self.is_not_a_list
    }

    /// Returns `true` if the list is closed.
    pub(super) fn is_complete(&self) -> bool {
        self.has_begun && self.depth == 0 && !self.is_in_string
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn items(chunks: &[&[u8]]) -> (Vec<String>, bool) {
        let (mut splitter, mut items) = (ItemSplitter::default(), Vec::new());
        for chunk in chunks {
            let all: Result<(), Infallible> = splitter.push(chunk, |item| {
                items.push(String::from_utf8_lossy(item).trim().to_owned());
                Ok(())
            });
            assert!(all.is_ok());
        }
        (items, splitter.is_complete())
    }

    #[test]
    fn items_are_found_in_chunks_of_any_length() {
        let text = r#" [{"a": "],[{\"", "b": [1, {"c": 2}]} , "x\\", 3,null ] "#;
        let expected = [r#"{"a": "],[{\"", "b": [1, {"c": 2}]}"#, r#""x\\""#, "3", "null"];
        for length in 1..=text.len() {
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(length).collect();
            let (found, is_complete) = items(&chunks);
            assert_eq!(found, expected, "chunks of {length}");
            assert!(is_complete);
        }
    }

    #[test]
    fn truncated_list_is_incomplete() {
        let (found, is_complete) = items(&[br#"[{"a": 1}, {"b""#]);
        assert_eq!(found, [r#"{"a": 1}"#]);
        assert!(!is_complete);
        assert_eq!(items(&[b"[]"]), (Vec::new(), true));
        assert_eq!(items(&[b" \n"]), (Vec::new(), false));
    }

    #[test]
    fn html_page_and_json_object_are_not_lists() {
        for (text, is_not_a_list) in [("<html></html>", true), (" {\"items\": []}", true), ("\n [1]", false)]
        {
            let mut splitter = ItemSplitter::default();
            assert_eq!(splitter.push(text.as_bytes(), |_| Ok::<_, Infallible>(())), Ok(()));
            assert_eq!(splitter.is_not_a_list(), is_not_a_list, "{text}");
        }
    }
}
