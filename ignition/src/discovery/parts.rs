//! The files and units of a config, while they are collected.
//!
//! Contents are not compressed one by one: the archive around the config is, and does it better. Also, an override that
//! only gives a file another source would inherit the compression of the old one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::certificate::CertificateBundle;
use super::escape;
use crate::builder::{FileMode, UnitState};
use crate::document::{Document, ReadError};
use crate::json::{Json, Object};
use crate::spec::Spec;

/// What a config consists of.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) ignition: Object,
    pub(crate) users: Vec<Json>,
    files: Vec<Json>,
    units: Vec<Json>,
}

impl Parts {
    /// Writes a file, over one that may be there.
    pub(crate) fn file(&mut self, path: &str, mode: FileMode, contents: impl AsRef<[u8]>) {
        self.files.push(Json::object([
            ("path", path.to_owned().into()),
            ("mode", Json::Integer(mode.bits().into())),
            ("overwrite", Json::Boolean(true)),
            ("user", Json::object([("name", "root".into())])),
            ("contents", resource(contents.as_ref())),
        ]));
    }

    /// Trusts certificates, for all programs. The system gathers what is in this folder when it boots.
    pub(crate) fn anchor(&mut self, name: &str, bundle: &CertificateBundle) {
        let path = format!("/etc/pki/ca-trust/source/anchors/{name}");
        self.file(&path, FileMode::PUBLIC, bundle.as_pem());
    }

    /// Adds to the end of a file of the system.
    pub(crate) fn append(&mut self, path: &str, contents: &str) {
        let appended = Json::List(vec![resource(contents.as_bytes())]);
        self.files.push(Json::object([("path", path.to_owned().into()), ("append", appended)]));
    }

    /// Writes a unit.
    pub(crate) fn unit(&mut self, name: &str, state: UnitState, contents: &str) {
        self.units.push(Json::object([
            ("name", name.to_owned().into()),
            ("enabled", Json::Boolean(state == UnitState::Enabled)),
            ("contents", contents.to_owned().into()),
        ]));
    }

    /// Enables a unit of the system.
    pub(crate) fn enable(&mut self, name: &str) {
        self.units.push(Json::object([("name", name.to_owned().into()), ("enabled", Json::Boolean(true))]));
    }

    /// Adds to a unit, whoever writes it.
    pub(crate) fn dropin(&mut self, unit: &str, name: &str, contents: &str) {
        let dropin =
            Json::object([("name", name.to_owned().into()), ("contents", contents.to_owned().into())]);
        let dropins = Json::List(vec![dropin]);
        let is_it = |it: &Json| it.get("name").and_then(Json::as_text).is_some_and(|name| name == unit);
        match self.units.iter_mut().find(|it| is_it(it)) {
            Some(Json::Object(known)) => known.set("dropins", dropins),
            _ => self.units.push(Json::object([("name", unit.to_owned().into()), ("dropins", dropins)])),
        }
    }

    /// The config.
    pub(crate) fn into_document(self, spec: Spec) -> Result<Document, ReadError> {
        let mut ignition = self.ignition;
        ignition.set("version", spec.as_str().into());
        Document::of_json(Json::object([
            ("ignition", ignition.into()),
            ("passwd", Json::object([("users", Json::List(self.users))])),
            ("storage", Json::object([("files", Json::List(self.files))])),
            ("systemd", Json::object([("units", Json::List(self.units))])),
        ]))
    }
}

/// Contents as a resource, as files have it.
pub(crate) fn resource(contents: &[u8]) -> Json {
    Json::object([("source", source(contents).into())])
}

/// Contents as a `data:` URL: text stays legible and packs well, all else is base64.
fn source(contents: &[u8]) -> String {
    match std::str::from_utf8(contents) {
        Ok(text) => escape::data_url(text),
        Err(_) => format!("data:;base64,{}", BASE64.encode(contents)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::resource;

    #[test]
    fn text_is_legible_and_bytes_are_not() {
        assert_eq!(source(b"a=b\nc"), "data:,a=b%0Ac");
        assert_eq!(source(&[0xFF]), "data:;base64,/w==");
    }

    #[test]
    fn a_dropin_goes_to_its_unit_or_makes_one() {
        let mut parts = Parts::default();
        parts.unit("a.service", UnitState::Disabled, "[Unit]\nA=b\n");
        parts.dropin("a.service", "x.conf", "[Unit]\nC=d\n");
        parts.dropin("b.service", "x.conf", "");
        let document = parts.into_document(Spec::V3_1).unwrap();
        let root = document.to_value();
        let units = root["systemd"]["units"].as_array().unwrap();
        assert_eq!(units[0]["dropins"][0]["contents"], "[Unit]\nC=d\n");
        assert_eq!((units.len(), &units[1]["name"]), (2, &"b.service".into()));
    }

    proptest! {
        #[test]
        fn contents_survive(contents: Vec<u8>) {
            prop_assert_eq!(resource::contents(&source(&contents), None).unwrap(), contents);
        }
    }
}
