//! Putting a new config together.
//!
//! The builder writes spec 3.3.0, which every image since 2021 reads. Contents become compressed
//! [`resource`]s; child configs are referenced from `ignition.config.merge`, so the machine merges them at boot.
//! Files and units keep the order in which they were added.

use std::collections::BTreeSet;

use ignition_config::v3_3::{Config as Target, File, Unit};

use crate::config::{self, Config, ConfigError};
use crate::resource;

/// Why something could not be added to a config.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two files with one path.
    #[error("config already specifies path {path}")]
    DuplicatePath {
        /// The path that is taken.
        path: String,
    },
    /// Two units with one name.
    #[error("config already specifies unit {name}")]
    DuplicateUnit {
        /// The name that is taken.
        name: String,
    },
    /// A child config could not be written as JSON.
    #[error("cannot embed a child config")]
    Child(#[source] ConfigError),
    /// The finished config could not be written as JSON.
    #[error("cannot write the config as JSON")]
    Write(#[source] serde_json::Error),
}

/// The permission bits of a file in a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileMode(u16);

impl FileMode {
    /// Read and written by root alone: 0600.
    pub const PRIVATE: Self = Self(0o600);
    /// Written by root, read by everybody: 0644.
    pub const PUBLIC: Self = Self(0o644);
    /// Written by root, read and run by everybody: 0755.
    pub const EXECUTABLE: Self = Self(0o755);
    /// Written and run by root, read by everybody: 0744.
    pub const OWNER_EXECUTABLE: Self = Self(0o744);
    /// Read, written and run by root alone: 0700.
    pub const PRIVATE_EXECUTABLE: Self = Self(0o700);

    /// Permissions for owner, group and others; nothing for bits beyond those.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Option<Self> {
        const PERMISSIONS: u16 = 0o777;
        if bits <= PERMISSIONS { Some(Self(bits)) } else { None }
    }

    /// The bits as the decimal number that JSON carries.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }
}

/// Whether systemd starts a unit by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// `"enabled": true`: the unit's `[Install]` section takes effect.
    Enabled,
    /// `"enabled": false`: the unit is there but only started by another.
    Disabled,
}

/// A config under construction.
///
/// # Examples
///
/// ```
/// use ignition::builder::{ConfigBuilder, FileMode};
///
/// let mut builder = ConfigBuilder::new();
/// assert_eq!(builder.to_json()?, None);
/// builder.add_file("/etc/motd", b"hello\n", FileMode::PRIVATE)?;
/// assert!(builder.to_json()?.is_some_and(|json| json.ends_with(b"}\n")));
/// # Ok::<(), ignition::builder::BuildError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ConfigBuilder {
    config: Target,
    paths: BTreeSet<String>,
    units: BTreeSet<String>,
}

impl ConfigBuilder {
    /// An empty config.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing has been added yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.config == Target::default()
    }

    /// Adds a file owned by root.
    ///
    /// # Errors
    ///
    /// When the path is taken. Aliases that only the running system
    /// knows, such as `/usr/local` and `/var/usrlocal`, are different paths here.
    pub fn add_file(
        &mut self,
        path: impl Into<String>,
        contents: &[u8],
        mode: FileMode,
    ) -> Result<(), BuildError> {
        let path = path.into();
        if self.paths.contains(&path) {
            return Err(BuildError::DuplicatePath { path });
        }
        self.paths.insert(path.clone());
        let storage = self.config.storage.get_or_insert_default();
        storage.files.get_or_insert_default().push(File {
            contents: Some(resource::encode(contents)),
            mode: Some(i64::from(mode.bits())),
            ..File::new(path)
        });
        Ok(())
    }

    /// Adds a systemd unit with its full text.
    ///
    /// # Errors
    ///
    /// When the name is taken.
    pub fn add_unit(
        &mut self,
        name: impl Into<String>,
        text: impl Into<String>,
        state: UnitState,
    ) -> Result<(), BuildError> {
        let name = name.into();
        if !self.units.insert(name.clone()) {
            return Err(BuildError::DuplicateUnit { name });
        }
        let systemd = self.config.systemd.get_or_insert_default();
        systemd.units.get_or_insert_default().push(Unit {
            contents: Some(text.into()),
            enabled: Some(state == UnitState::Enabled),
            ..Unit::new(name)
        });
        Ok(())
    }

    /// Adds a PEM bundle of certificate authorities that Ignition trusts when it fetches over HTTPS.
    pub fn add_certificate_authority(&mut self, pem: &[u8]) {
        let security = self.config.ignition.security.get_or_insert_default();
        let tls = security.tls.get_or_insert_default();
        tls.certificate_authorities.get_or_insert_default().push(resource::encode(pem));
    }

    /// Adds a child config that Ignition merges over this one at boot. The child may have any spec version.
    ///
    /// # Errors
    ///
    /// When the child cannot be written as JSON.
    pub fn merge(&mut self, child: &Config) -> Result<(), BuildError> {
        let json = config::to_json(child).map_err(BuildError::Child)?;
        let config = self.config.ignition.config.get_or_insert_default();
        config.merge.get_or_insert_default().push(resource::encode(&json));
        Ok(())
    }

    /// The config as JSON on one line with a final newline, or `None` when it is empty.
    ///
    /// An empty config is not the same as none: its presence alone disables the console autologin of a live
    /// system.
    ///
    /// # Errors
    ///
    /// Only when the JSON writer fails.
    pub fn to_json(&self) -> Result<Option<Vec<u8>>, BuildError> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut json = serde_json::to_vec(&self.config).map_err(BuildError::Write)?;
        json.push(b'\n');
        Ok(Some(json))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(builder: &ConfigBuilder) -> String {
        String::from_utf8(builder.to_json().unwrap().unwrap()).unwrap()
    }

    #[test]
    fn nothing_added_gives_no_config() {
        assert!(ConfigBuilder::new().is_empty());
        assert_eq!(ConfigBuilder::new().to_json().unwrap(), None);
    }

    #[test]
    fn a_file_spells_out_its_nulls_and_a_decimal_mode() {
        let mut builder = ConfigBuilder::new();
        builder.add_file("/a", b"", FileMode::PRIVATE).unwrap();
        assert_eq!(
            text(&builder),
            concat!(
                r#"{"ignition":{"version":"3.3.0"},"storage":{"files":["#,
                r#"{"contents":{"compression":"gzip","source":"data:;base64,H4sIAAAAAAAC/wMAAAAAAAAAAAA="},"#,
                r#""mode":384,"overwrite":null,"path":"/a"}]}}"#,
                "\n"
            )
        );
    }

    #[test]
    fn permissions_have_nine_bits() {
        assert_eq!(FileMode::from_bits(0o755), Some(FileMode::EXECUTABLE));
        assert_eq!(FileMode::from_bits(0o4755), None);
    }

    #[test]
    fn a_unit_spells_out_its_mask() {
        let mut builder = ConfigBuilder::new();
        builder.add_unit("a.service", "[Unit]", UnitState::Enabled).unwrap();
        builder.add_unit("b.service", "", UnitState::Disabled).unwrap();
        assert_eq!(
            text(&builder),
            concat!(
                r#"{"ignition":{"version":"3.3.0"},"systemd":{"units":["#,
                r#"{"contents":"[Unit]","enabled":true,"mask":null,"name":"a.service"},"#,
                r#"{"contents":"","enabled":false,"mask":null,"name":"b.service"}]}}"#,
                "\n"
            )
        );
    }

    #[test]
    fn children_and_authorities_go_into_the_ignition_section() {
        let child = config::parse(br#"{"ignition":{"version":"3.6.0"}}"#).unwrap();
        let mut builder = ConfigBuilder::new();
        builder.add_certificate_authority(b"");
        builder.merge(&child.config).unwrap();
        let text = text(&builder);
        let start =
            r#"{"ignition":{"config":{"merge":[{"compression":"gzip","source":"data:;base64,H4sIAAAAAAAC/"#;
        assert!(text.starts_with(start), "{text}");
        let end = r#"]},"security":{"tls":{"certificateAuthorities":[{"compression":"gzip","source":"data:;base64,H4sIAAAAAAAC/wMAAAAAAAAAAAA="}]}},"version":"3.3.0"}}"#;
        assert!(text.trim_end().ends_with(end), "{text}");
    }

    #[test]
    fn duplicates_are_refused_and_leave_the_config_alone() {
        let mut builder = ConfigBuilder::new();
        builder.add_file("/a", b"1", FileMode::PRIVATE).unwrap();
        builder.add_unit("a.service", "1", UnitState::Enabled).unwrap();
        let before = text(&builder);
        let path = builder.add_file("/a", b"2", FileMode::PRIVATE_EXECUTABLE).unwrap_err();
        assert_eq!(path.to_string(), "config already specifies path /a");
        let unit = builder.add_unit("a.service", "2", UnitState::Enabled).unwrap_err();
        assert_eq!(unit.to_string(), "config already specifies unit a.service");
        assert_eq!(text(&builder), before);
    }
}
