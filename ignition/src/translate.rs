//! Translates a config to a newer version of the Ignition specification.
//!
//! A newer version has all fields of an older version with the same meaning, with these exceptions:
//!
//! * Up to 3.2, an absent link target, array level or Clevis pin is an empty value. It stays empty, and 3.3 rejects it.
//! * Up to 3.5, the special bits of a mode have no effect. From 3.6 on they have an effect, so the translation removes
//!   them.
//!
//! The translation keeps all other fields, even the advertisement of a Tang server in a translation to 3.5.

use std::borrow::Cow;

use crate::config::Config;
use crate::json::Json;
use crate::spec::Spec;

/// The error for a translation to an older version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a config of spec {from} cannot be translated to {to}: only translation to a newer spec is supported"
)]
#[non_exhaustive]
pub struct TranslateError {
    /// The spec version of the config.
    pub from: Spec,
    /// The requested version, which is older.
    pub to: Spec,
}

/// Translates a config to the same or a newer version.
///
/// # Errors
///
/// Returns an error if the requested version is older than the version of the config.
///
/// # Examples
///
/// ```
/// use ignition::config::Config;
/// use ignition::spec::Spec;
/// use ignition::translate::translate;
///
/// let old = Config::parse(br#"{"ignition": {"version": "3.0.0"}, "systemd": {"units": [{"name": "a.service"}]}}"#)?;
/// let new = translate(&old.config, Spec::V3_4)?;
/// assert_eq!(new.to_string(), r#"{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"a.service"}]}}"#);
/// assert!(translate(&new, Spec::V3_0).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn translate(config: &Config, to: Spec) -> Result<Config, TranslateError> {
    let from = config.spec();
    if to < from {
        return Err(TranslateError { from, to });
    }
    Ok(translate_if_older(config, to).into_owned())
}

/// Translates a config to a version if the config is older. Returns a newer config unchanged.
pub(crate) fn translate_if_older(config: &Config, to: Spec) -> Cow<'_, Config> {
    let from = config.spec();
    if to <= from {
        return Cow::Borrowed(config);
    }
    let mut config = config.clone();
    config.set_spec(to);
    if (from..to).contains(&Spec::V3_5) {
        drop_special_bits(&mut config);
    }
    Cow::Owned(config)
}

/// The set-user-id, set-group-id and sticky bits.
pub(crate) const SPECIAL_BITS: i64 = 0o7000;

fn drop_special_bits(config: &mut Config) {
    let Some(storage) = config.root_mut().get_mut("storage") else { return };
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

    fn config_with(version: &str, rest: &str) -> Config {
        let text = format!(r#"{{"ignition":{{"version":"{version}"}}{rest}}}"#);
        Config::parse(text.as_bytes()).unwrap().config
    }

    #[test]
    fn rejects_older_versions() {
        let error = translate(&Config::empty(Spec::V3_3), Spec::V3_1).unwrap_err();
        let expected = "a config of spec 3.3.0 cannot be translated to 3.1.0: only translation to a newer spec is supported";
        assert_eq!(error.to_string(), expected);
        assert_eq!(translate(&Config::empty(Spec::V3_3), Spec::V3_3), Ok(Config::empty(Spec::V3_3)));
    }

    #[test]
    fn advertisement_is_kept() {
        let luks = r#","storage":{"luks":[{"clevis":{"tang":[{"advertisement":"{}","thumbprint":"t","url":"http://a"}]},"device":"/dev/a","name":"l"}]}"#;
        assert_eq!(translate(&config_with("3.4.0", luks), Spec::V3_6), Ok(config_with("3.6.0", luks)));
    }

    #[test]
    fn special_bits_are_removed_for_3_6() {
        let with = |mode: i64| {
            format!(
                r#","storage":{{"directories":[{{"path":"/d","mode":{mode}}}],"files":[{{"path":"/f","mode":{mode}}}]}}"#
            )
        };
        let old = config_with("3.0.0", &with(0o6755));
        assert_eq!(translate(&old, Spec::V3_5), Ok(config_with("3.5.0", &with(0o6755))));
        assert_eq!(translate(&old, Spec::V3_6), Ok(config_with("3.6.0", &with(0o755))));
        let new = config_with("3.6.0", &with(0o6755));
        assert_eq!(translate(&new, Spec::V3_6).as_ref(), Ok(&new));
    }

    #[test]
    fn absent_plain_values_become_empty_values() {
        let old = config_with("3.2.0", r#","storage":{"links":[{"path":"/l"}],"raid":[{"name":"r"}]}"#);
        let new = r#","storage":{"links":[{"path":"/l","target":""}],"raid":[{"level":"","name":"r"}]}"#;
        assert_eq!(translate(&old, Spec::V3_3), Ok(config_with("3.3.0", new)));
    }
}
