//! Carrying a config over to a newer version of the specification.
//!
//! A newer version has all fields of an older one with the same meaning, with these exceptions:
//!
//! * Up to 3.2 an absent link target, array level or Clevis pin is an empty one. It stays so, and 3.3 refuses it.
//! * Up to 3.5 the special bits of a mode have no effect, so 3.6, where they have, gets the mode without them.
//!
//! Everything else is carried over, the advertisement of a Tang server on the way to 3.5 included.

use std::borrow::Cow;

use crate::document::Document;
use crate::json::Json;
use crate::spec::Spec;

/// Why a config could not be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a config of spec {from} cannot be translated to {to}: only newer versions have all that it may hold"
)]
pub struct TranslateError {
    /// The version that the config has.
    pub from: Spec,
    /// The older version that was asked for.
    pub to: Spec,
}

/// Translates a config to the same or a newer version.
///
/// # Errors
///
/// When the version is older than the config's.
///
/// # Examples
///
/// ```
/// use ignition::document::Document;
/// use ignition::spec::Spec;
/// use ignition::translate::translate;
///
/// let old = Document::parse(br#"{"ignition": {"version": "3.0.0"}, "systemd": {"units": [{"name": "a.service"}]}}"#)?;
/// let new = translate(&old.document, Spec::V3_4)?;
/// assert_eq!(new.to_string(), r#"{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"a.service"}]}}"#);
/// assert!(translate(&new, Spec::V3_0).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn translate(document: &Document, to: Spec) -> Result<Document, TranslateError> {
    let from = document.spec();
    if to < from {
        return Err(TranslateError { from, to });
    }
    Ok(upward(document, to).into_owned())
}

/// Translates a config to a version that is not older.
pub(crate) fn upward(document: &Document, to: Spec) -> Cow<'_, Document> {
    let from = document.spec();
    if to <= from {
        return Cow::Borrowed(document);
    }
    let mut document = document.clone();
    document.set_spec(to);
    if (from..to).contains(&Spec::V3_5) {
        drop_special_bits(&mut document);
    }
    Cow::Owned(document)
}

/// The set-user-id, set-group-id and sticky bits.
pub(crate) const SPECIAL_BITS: i64 = 0o7000;

fn drop_special_bits(document: &mut Document) {
    let Some(storage) = document.root_mut().get_mut("storage") else { return };
    for list in ["files", "directories"] {
        let nodes = storage.get_mut(list).and_then(Json::as_list_mut).into_iter().flatten();
        for mode in nodes.filter_map(|node| node.get_mut("mode")) {
            if let Some(bits) = mode.as_integer() {
                *mode = Json::Integer(bits & !SPECIAL_BITS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: &str, rest: &str) -> Document {
        let text = format!(r#"{{"ignition":{{"version":"{version}"}}{rest}}}"#);
        Document::parse(text.as_bytes()).unwrap().document
    }

    #[test]
    fn nothing_goes_back() {
        let error = translate(&Document::empty(Spec::V3_3), Spec::V3_1).unwrap_err();
        let expected = "a config of spec 3.3.0 cannot be translated to 3.1.0: only newer versions have all that it may hold";
        assert_eq!(error.to_string(), expected);
        assert_eq!(translate(&Document::empty(Spec::V3_3), Spec::V3_3), Ok(Document::empty(Spec::V3_3)));
    }

    #[test]
    fn an_advertisement_survives() {
        let luks = r#","storage":{"luks":[{"clevis":{"tang":[{"advertisement":"{}","thumbprint":"t","url":"http://a"}]},"device":"/dev/a","name":"l"}]}"#;
        assert_eq!(translate(&read("3.4.0", luks), Spec::V3_6), Ok(read("3.6.0", luks)));
    }

    #[test]
    fn special_bits_go_on_the_way_to_the_version_that_honours_them() {
        let with = |mode: i64| {
            format!(
                r#","storage":{{"directories":[{{"path":"/d","mode":{mode}}}],"files":[{{"path":"/f","mode":{mode}}}]}}"#
            )
        };
        let old = read("3.0.0", &with(0o6755));
        assert_eq!(translate(&old, Spec::V3_5), Ok(read("3.5.0", &with(0o6755))));
        assert_eq!(translate(&old, Spec::V3_6), Ok(read("3.6.0", &with(0o755))));
        let new = read("3.6.0", &with(0o6755));
        assert_eq!(translate(&new, Spec::V3_6).as_ref(), Ok(&new));
    }

    #[test]
    fn absent_plain_values_become_empty_ones() {
        let old = read("3.2.0", r#","storage":{"links":[{"path":"/l"}],"raid":[{"name":"r"}]}"#);
        let new = r#","storage":{"links":[{"path":"/l","target":""}],"raid":[{"level":"","name":"r"}]}"#;
        assert_eq!(translate(&old, Spec::V3_3), Ok(read("3.3.0", new)));
    }
}
