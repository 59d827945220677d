//! Profiles of simulated hosts, which are built in or read from files.

use std::io::Read;
use std::path::{Path, PathBuf};

use agent::simulated::Profile;

/// The names of the built-in profiles, and their YAML texts.
pub const BUILT_IN_PROFILES: [(&str, &str); 4] = [
    ("sno", include_str!("profiles/sno.yaml")),
    ("compact", include_str!("profiles/compact.yaml")),
    ("standard", include_str!("profiles/standard.yaml")),
    ("bench-small", include_str!("profiles/bench-small.yaml")),
];

/// Maximum length of a profile. Profiles are short, because they describe groups of hosts.
const MAX_PROFILE: u64 = 1 << 20;

/// The reason why a profile cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileFileError {
    /// The file cannot be read.
    #[error("cannot read profile {}; built-in profiles are {}", path.display(), built_in_names())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The error from the file system.
        source: std::io::Error,
    },
    /// The file is too large.
    #[error("profile {} is too large (limit {MAX_PROFILE} bytes)", path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is not a profile in YAML or JSON.
    #[error("invalid profile {}{}", path.display(), suggestion(source))]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// The error of the parser.
        source: serde_yaml_ng::Error,
    },
}

/// Returns the end of a message about an unknown key: the most similar valid key.
fn suggestion(error: &serde_yaml_ng::Error) -> String {
    let message = error.to_string();
    // Example of a message from the parser: unknown field `ram`, expected one of `name`, `memory`.
    let Some((_, fields)) = message.split_once("unknown field `") else { return String::new() };
    let mut names = fields.split('`').step_by(2);
    let name = names.next().unwrap_or_default();
    let nearest = inventory::nearest_name(name, names);
    nearest.map(|nearest| format!(": unknown key {name}; did you mean {nearest}?")).unwrap_or_default()
}

fn built_in_names() -> String {
    BUILT_IN_PROFILES.map(|(name, _)| name).join(", ")
}

/// Returns the built-in profile with this name, or else reads a profile from the YAML or JSON file at this path.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or is not a profile.
///
/// # Examples
///
/// ```
/// let profile = kindling::simulation::read_profile("compact")?;
/// assert_eq!(profile.usual_hosts(), 3);
/// # Ok::<(), kindling::simulation::ProfileFileError>(())
/// ```
pub fn read_profile(name_or_path: &str) -> Result<Profile, ProfileFileError> {
    let path = Path::new(name_or_path);
    let built_in = BUILT_IN_PROFILES.iter().find(|(name, _)| *name == name_or_path);
    let text = match built_in {
        Some((_, text)) => (*text).to_owned(),
        None => read_file(path)?,
    };
    serde_yaml_ng::from_str(&text)
        .map_err(|source| ProfileFileError::Invalid { path: path.to_owned(), source })
}

fn read_file(path: &Path) -> Result<String, ProfileFileError> {
    let failed = |source| ProfileFileError::Read { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    file.take(MAX_PROFILE + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_PROFILE {
        return Err(ProfileFileError::TooLarge { path: path.to_owned() });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agent::simulated::SimulatedSite;

    use super::*;

    #[test]
    fn built_in_profiles_can_be_simulated() {
        for (name, hosts) in [("sno", 1), ("compact", 3), ("standard", 4), ("bench-small", 1)] {
            let profile = read_profile(name).unwrap();
            assert_eq!(profile.usual_hosts(), hosts, "{name}");
            SimulatedSite::new(profile, 10_000, 1).unwrap();
        }
    }

    #[test]
    fn report_of_small_profile_is_small() {
        let site = Arc::new(SimulatedSite::new(read_profile("bench-small").unwrap(), 1, 1).unwrap());
        let report = site.machines().next().unwrap().inventory_report();
        let length = serde_json::to_string(&report).unwrap().len();
        assert!((1000..2048).contains(&length), "{length}");
    }

    #[test]
    fn files_may_be_yaml_or_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile");
        let path = path.to_str().unwrap();
        for text in ["groups:\n- name: a\n  count: 2\n", r#"{"groups": [{"name": "a", "count": 2}]}"#] {
            std::fs::write(path, text).unwrap();
            assert_eq!(read_profile(path).unwrap().usual_hosts(), 2);
        }
    }

    #[test]
    fn rejects_files_that_are_not_profiles() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.yaml");
        let path = path.to_str().unwrap();
        let error = read_profile(path).unwrap_err().to_string();
        assert!(error.ends_with("built-in profiles are sno, compact, standard, bench-small"), "{error}");
        std::fs::write(path, "groups: [{name: a, ram: 3}]").unwrap();
        assert!(matches!(read_profile(path), Err(ProfileFileError::Invalid { .. })));
        std::fs::write(path, "groups: [{name: a, cuont: 3}]").unwrap();
        let error = read_profile(path).unwrap_err();
        assert!(
            error.to_string().ends_with("profile.yaml: unknown key cuont; did you mean count?"),
            "{error}"
        );
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("groups[0]") && source.contains("line 1"), "{source}");
        for (key, expected) in [
            ("faults: [no-power]", r#"unknown fault "no-power"; expected one of slow-disk, "#),
            ("faults: [step:ntp=exit-1]", r#"unknown step "ntp"; expected one of inventory, "#),
        ] {
            std::fs::write(path, format!("groups: [{{name: a, {key}}}]")).unwrap();
            let source = std::error::Error::source(&read_profile(path).unwrap_err()).unwrap().to_string();
            assert!(source.contains(expected), "{source}");
        }
        std::fs::write(path, " ".repeat((1 << 20) + 1)).unwrap();
        assert!(matches!(read_profile(path), Err(ProfileFileError::TooLarge { .. })));
    }
}
