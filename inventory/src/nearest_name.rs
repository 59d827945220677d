//! Suggestions for misspelt names.

/// Returns the name that a misspelt name probably means. `None`: no name is similar enough.
#[must_use]
pub fn nearest_name<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const MAX_EDITS: usize = 2;
    let name = name.to_ascii_lowercase();
    let distances = names
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&name, &candidate.to_ascii_lowercase()), candidate));
    // Any two short names differ by only a few edits, so the number of edits must also be less than the length of each
    // name.
    let (edits, nearest) = distances.min()?;
    (edits <= MAX_EDITS && edits < nearest.len().min(name.len())).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        let names = ["url", "openshift_version", "cpu_architecture", "type"];
        for (name, nearest) in [
            ("ulr", Some("url")),
            ("URI", Some("url")),
            ("openshift-version", Some("openshift_version")),
            ("cpu_architectures", Some("cpu_architecture")),
            ("x", None),
            ("", None),
            ("comment", None),
        ] {
            assert_eq!(nearest_name(name, names), nearest, "{name}");
        }
    }
}
