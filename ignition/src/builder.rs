//! Builds configs from files, units, users, certificate authorities and child configs.
//!
//! The crate generates two kinds of configs:
//!
//! | | a config for the embed area, as `coreos-installer` makes it | a discovery or pointer config |
//! |---|---|---|
//! | contents | compressed | plain, because the archive around the config is compressed |
//! | written by | [`ConfigBuilder::to_installer_json`], with `null` for each unset value | [`Config`], compact |
//!
//! Files and units keep the order in which they are added.

use std::fmt;

use crate::config::{Config, ConfigError};
use crate::json::Json;
use crate::resource::{compressed_resource, plain_resource};
use crate::rewrite::rewrite_tree;
use crate::spec::Spec;
use crate::visible::visible;

/// The reason why an entry could not be added to a config.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The config already has a file with this path.
    #[error("config already specifies path {}", visible(path))]
    DuplicatePath {
        /// The duplicate path.
        path: String,
    },
    /// The config already has a unit with this name.
    #[error("config already specifies unit {}", visible(name))]
    DuplicateUnit {
        /// The duplicate name.
        name: String,
    },
}

/// The permission bits of a file in a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileMode(u16);

impl FileMode {
    /// 0600: root may read and write.
    pub const PRIVATE: Self = Self(0o600);
    /// 0644: root may write, and all users may read.
    pub(crate) const PUBLIC: Self = Self(0o644);
    /// 0755: root may write, and all users may read and execute.
    pub(crate) const EXECUTABLE: Self = Self(0o755);
    /// 0744: root may write and execute, and all users may read.
    pub(crate) const OWNER_EXECUTABLE: Self = Self(0o744);
    /// 0700: root may read, write and execute.
    pub const PRIVATE_EXECUTABLE: Self = Self(0o700);

    /// Returns the mode with these permission bits, or `None` if other bits are set.
    #[cfg_attr(not(any(feature = "network", test)), expect(dead_code, reason = "for static networks"))]
    pub(crate) const fn from_bits(bits: u16) -> Option<Self> {
        const PERMISSIONS: u16 = 0o777;
        if bits <= PERMISSIONS { Some(Self(bits)) } else { None }
    }
}

impl From<FileMode> for Json {
    /// Returns the bits as a number. Ignition configs contain modes as decimal numbers.
    fn from(mode: FileMode) -> Self {
        Self::Integer(mode.0.into())
    }
}

/// The state of a unit at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// `"enabled": true`: the `[Install]` section of the unit has an effect.
    Enabled,
    /// `"enabled": false`: the unit starts only if another unit starts it.
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
/// assert_eq!(builder.to_installer_json()?, None);
/// builder.add_file("/etc/motd", b"hello\n", FileMode::PRIVATE)?;
/// assert!(builder.to_installer_json()?.is_some_and(|json| json.ends_with(b"}\n")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct ConfigBuilder {
    merges: Vec<Json>,
    proxy: Option<Json>,
    authorities: Vec<Json>,
    users: Vec<Json>,
    files: Vec<Json>,
    units: Vec<Json>,
}

/// Prints only counts, because contents may be secret.
impl fmt::Debug for ConfigBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigBuilder")
            .field("merges", &self.merges.len())
            .field("authorities", &self.authorities.len())
            .field("users", &self.users.len())
            .field("files", &self.files.len())
            .field("units", &self.units.len())
            .finish_non_exhaustive()
    }
}

impl ConfigBuilder {
    /// The spec version of [`to_installer_json`](Self::to_installer_json). Every base image since 2021 supports it.
    const INSTALLER_SPEC: Spec = Spec::V3_3;

    /// Creates an empty config.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file with compressed contents. At boot, Ignition fails if the system already has a file at this path.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError::DuplicatePath`] if the config already has a file with this path. Paths that are equal only
    /// because of links in the running system, such as `/usr/local` and `/var/usrlocal`, count as different.
    pub fn add_file(
        &mut self,
        path: impl Into<String>,
        contents: &[u8],
        mode: FileMode,
    ) -> Result<(), BuildError> {
        let path = path.into();
        if contains_entry(&self.files, "path", &path) {
            return Err(BuildError::DuplicatePath { path });
        }
        self.files.push(Json::object([
            ("path", path.into()),
            ("mode", mode.into()),
            ("contents", compressed_resource(contents)),
        ]));
        Ok(())
    }

    /// Adds a systemd unit with its full text.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError::DuplicateUnit`] if the config already has a unit with this name.
    pub fn add_unit(
        &mut self,
        name: impl Into<String>,
        text: impl Into<String>,
        state: UnitState,
    ) -> Result<(), BuildError> {
        let name = name.into();
        if contains_entry(&self.units, "name", &name) {
            return Err(BuildError::DuplicateUnit { name });
        }
        self.units.push(unit_entry(name, state, text.into()));
        Ok(())
    }

    /// Adds a PEM bundle of certificate authorities that Ignition trusts for HTTPS downloads.
    pub fn add_certificate_authority(&mut self, pem: &[u8]) {
        self.authorities.push(compressed_resource(pem));
    }

    /// Adds a child config that Ignition merges over this one at boot. The child may have any spec version.
    pub fn merge(&mut self, child: &str) {
        self.merges.push(compressed_resource(child.as_bytes()));
    }

    /// Returns the config in the format of `coreos-installer`: JSON on one line with a final newline. Returns `None` if
    /// the config is empty.
    ///
    /// An empty config is not the same as no config: any config disables the console autologin of a live system.
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError::Write`] if the JSON writer fails.
    pub fn to_installer_json(&self) -> Result<Option<Vec<u8>>, ConfigError> {
        if *self == Self::default() {
            return Ok(None);
        }
        let mut json = rewrite_tree(self.clone().into_json(Self::INSTALLER_SPEC))?.json.into_bytes();
        json.push(b'\n');
        Ok(Some(json))
    }
}

/// Methods for discovery and pointer configs. They do not check for duplicate paths and names, because the whole config
/// is validated later.
impl ConfigBuilder {
    /// Adds a file that root owns. At boot, it overwrites an existing file.
    pub(crate) fn replace_file(&mut self, path: &str, mode: FileMode, contents: impl AsRef<[u8]>) {
        self.files.push(Json::object([
            ("path", path.to_owned().into()),
            ("mode", mode.into()),
            ("overwrite", Json::Boolean(true)),
            ("user", Json::object([("name", "root".into())])),
            ("contents", plain_resource(contents.as_ref())),
        ]));
    }

    /// Adds certificates that all programs trust. At boot, the system collects the certificates in
    /// `/etc/pki/ca-trust/source/anchors`.
    pub(crate) fn add_trust_anchor(&mut self, name: &str, pem: &str) {
        self.replace_file(&format!("/etc/pki/ca-trust/source/anchors/{name}"), FileMode::PUBLIC, pem);
    }

    /// Appends text to a file of the system.
    pub(crate) fn append_to_file(&mut self, path: &str, contents: &str) {
        let appended = Json::List(vec![plain_resource(contents.as_bytes())]);
        self.files.push(Json::object([("path", path.to_owned().into()), ("append", appended)]));
    }

    /// Adds a unit with its full text. It replaces a unit of the system.
    pub(crate) fn replace_unit(&mut self, name: &str, state: UnitState, contents: &str) {
        self.units.push(unit_entry(name.to_owned(), state, contents.to_owned()));
    }

    /// Enables a unit that is part of the system.
    pub(crate) fn enable_unit(&mut self, name: &str) {
        self.units.push(Json::object([("name", name.to_owned().into()), ("enabled", Json::Boolean(true))]));
    }

    /// Adds a drop-in to a unit of this config or to a unit of the system.
    pub(crate) fn add_dropin(&mut self, unit: &str, name: &str, contents: &str) {
        let dropin =
            Json::object([("name", name.to_owned().into()), ("contents", contents.to_owned().into())]);
        let dropins = Json::List(vec![dropin]);
        let is_it = |it: &Json| it.get("name").and_then(Json::as_text).is_some_and(|name| name == unit);
        match self.units.iter_mut().find(|it| is_it(it)) {
            Some(Json::Object(known)) => known.set("dropins", dropins),
            _ => self.units.push(Json::object([("name", unit.to_owned().into()), ("dropins", dropins)])),
        }
    }

    pub(crate) fn add_user(&mut self, user: Json) {
        self.users.push(user);
    }

    pub(crate) fn set_proxy(&mut self, proxy: Json) {
        self.proxy = Some(proxy);
    }

    /// Adds a config that Ignition fetches and merges over this one.
    pub(crate) fn merge_reference(&mut self, reference: Json) {
        self.merges.push(reference);
    }

    /// Adds an uncompressed PEM bundle of certificate authorities that Ignition trusts.
    pub(crate) fn add_plain_certificate_authority(&mut self, pem: &str) {
        self.authorities.push(plain_resource(pem.as_bytes()));
    }

    /// Returns the config without validating it.
    pub(crate) fn into_config(self, spec: Spec) -> Result<Config, ConfigError> {
        Config::from_json(self.into_json(spec))
    }

    fn into_json(self, spec: Spec) -> Json {
        let tls = object_with_list("certificateAuthorities", self.authorities)
            .map(|tls| Json::object([("tls", tls)]));
        let ignition = [
            ("config", object_with_list("merge", self.merges)),
            ("proxy", self.proxy),
            ("security", tls),
            ("version", Some(spec.as_str().into())),
        ];
        let sections = [
            ("ignition", Some(Json::object_of_set_fields(ignition))),
            ("passwd", object_with_list("users", self.users)),
            ("storage", object_with_list("files", self.files)),
            ("systemd", object_with_list("units", self.units)),
        ];
        Json::object_of_set_fields(sections)
    }
}

fn unit_entry(name: String, state: UnitState, contents: String) -> Json {
    Json::object([
        ("name", name.into()),
        ("enabled", Json::Boolean(state == UnitState::Enabled)),
        ("contents", contents.into()),
    ])
}

fn contains_entry(items: &[Json], field: &str, text: &str) -> bool {
    items.iter().any(|item| item.get(field).and_then(Json::as_text) == Some(text))
}

/// Returns an object whose only field is a list, or `None` if the list is empty.
fn object_with_list(name: &'static str, items: Vec<Json>) -> Option<Json> {
    Json::non_empty_list(items).map(|list| Json::object([(name, list)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installer_text(builder: &ConfigBuilder) -> String {
        String::from_utf8(builder.to_installer_json().unwrap().unwrap()).unwrap()
    }

    #[test]
    fn empty_builder_returns_no_config() {
        assert_eq!(ConfigBuilder::new().to_installer_json().unwrap(), None);
    }

    #[test]
    fn file_is_written_with_nulls_and_decimal_mode() {
        let mut builder = ConfigBuilder::new();
        builder.add_file("/a", b"", FileMode::PRIVATE).unwrap();
        assert_eq!(
            installer_text(&builder),
            concat!(
                r#"{"ignition":{"version":"3.3.0"},"storage":{"files":["#,
                r#"{"contents":{"compression":"gzip","source":"data:;base64,H4sIAAAAAAAC/wMAAAAAAAAAAAA="},"#,
                r#""mode":384,"overwrite":null,"path":"/a"}]}}"#,
                "\n"
            )
        );
    }

    #[test]
    fn rejects_mode_bits_beyond_permissions() {
        assert_eq!(FileMode::from_bits(0o755), Some(FileMode::EXECUTABLE));
        assert_eq!(FileMode::from_bits(0o4755), None);
    }

    #[test]
    fn unit_is_written_with_null_mask() {
        let mut builder = ConfigBuilder::new();
        builder.add_unit("a.service", "[Unit]", UnitState::Enabled).unwrap();
        builder.add_unit("b.service", "", UnitState::Disabled).unwrap();
        assert_eq!(
            installer_text(&builder),
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
        let mut builder = ConfigBuilder::new();
        builder.add_certificate_authority(b"");
        builder.merge(r#"{"ignition":{"version":"3.6.0"}}"#);
        let text = installer_text(&builder);
        let start =
            r#"{"ignition":{"config":{"merge":[{"compression":"gzip","source":"data:;base64,H4sIAAAAAAAC/"#;
        assert!(text.starts_with(start), "{text}");
        let end = r#"]},"security":{"tls":{"certificateAuthorities":[{"compression":"gzip","source":"data:;base64,H4sIAAAAAAAC/wMAAAAAAAAAAAA="}]}},"version":"3.3.0"}}"#;
        assert!(text.trim_end().ends_with(end), "{text}");
    }

    #[test]
    fn rejects_duplicates_and_keeps_the_config() {
        let mut builder = ConfigBuilder::new();
        builder.add_file("/a", b"1", FileMode::PRIVATE).unwrap();
        builder.add_unit("a.service", "1", UnitState::Enabled).unwrap();
        let before = builder.clone();
        let path = builder.add_file("/a", b"2", FileMode::PRIVATE_EXECUTABLE).unwrap_err();
        assert_eq!(path.to_string(), "config already specifies path /a");
        let unit = builder.add_unit("a.service", "2", UnitState::Enabled).unwrap_err();
        assert_eq!(unit.to_string(), "config already specifies unit a.service");
        assert_eq!(builder, before);
    }

    #[test]
    fn dropin_is_added_to_its_unit_or_creates_one() {
        let mut builder = ConfigBuilder::new();
        builder.replace_unit("a.service", UnitState::Disabled, "[Unit]\nA=b\n");
        builder.add_dropin("a.service", "x.conf", "[Unit]\nC=d\n");
        builder.add_dropin("b.service", "x.conf", "");
        let root = builder.into_config(Spec::V3_1).unwrap().to_value();
        let units = root["systemd"]["units"].as_array().unwrap();
        assert_eq!(units[0]["dropins"][0]["contents"], "[Unit]\nC=d\n");
        assert_eq!((units.len(), &units[1]["name"]), (2, &"b.service".into()));
    }

    #[test]
    fn debug_output_has_no_contents() {
        let mut builder = ConfigBuilder::new();
        builder.replace_file("/a", FileMode::PRIVATE, "hunter2");
        assert!(!format!("{builder:?}").contains("hunter2"));
    }
}
