//! Suggestions for misspelt names.

/// Returns the known name that a misspelt name probably means.
#[must_use]
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const MAX_EDITS: usize = 2;
    let name = name.to_ascii_lowercase();
    let distances =
        known.into_iter().map(|known| (strsim::osa_distance(&name, &known.to_ascii_lowercase()), known));
    // A short name has every other short name within a few edits.
    let (edits, nearest) = distances.min()?;
    (edits <= MAX_EDITS && edits < nearest.len().min(name.len())).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        let known = ["url", "openshift_version", "cpu_architecture", "type"];
        for (name, nearest) in [
            ("ulr", Some("url")),
            ("URI", Some("url")),
            ("openshift-version", Some("openshift_version")),
            ("cpu_architectures", Some("cpu_architecture")),
            ("x", None),
            ("", None),
            ("comment", None),
        ] {
            assert_eq!(nearest_name(name, known), nearest, "{name}");
        }
    }
}
