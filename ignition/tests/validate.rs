//! The findings for the cases in `tests/validate` (Ignition's rules) and `tests/lint` (this crate's rules).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod findings;

use ignition::config::{Config, ConfigError};
use ignition::lint::{check, lint};
use ignition::validate::validate;
use proptest::prelude::*;

#[test]
fn upstream_rules_have_the_expected_findings() {
    findings::check_all("validate", validate);
}

#[test]
fn our_rules_have_the_expected_findings() {
    findings::check_all("lint", |config| {
        let report = validate(config);
        assert!(!report.is_fatal(), "a lint case has to pass Ignition: {}", report.to_text("case"));
        lint(config)
    });
}

#[test]
fn text_that_is_not_a_config_has_one_finding_with_a_position() {
    let version = r#"{"ignition": {"version": "3.3.0"}"#;
    for (text, expected) in [
        ("".to_owned(), "x:1: error: not valid JSON: EOF while parsing a value at line 1 column 0\n"),
        ("{\n]".to_owned(), "x:2: error: not valid JSON: key must be a string at line 2 column 1\n"),
        (
            "{}".to_owned(),
            "x:1: /ignition/version: error: \"\" is not a supported spec version; supported are 3.0.0 to 3.6.0\n",
        ),
        (
            "{\"ignition\":\n{\"version\": \"2.2.0\"}}".to_owned(),
            "x:2: /ignition/version: error: \"2.2.0\" is not a supported spec version; supported are 3.0.0 to 3.6.0\n",
        ),
        ("[]".to_owned(), "x:1: error: is a list, but has to be an object\n"),
        ("{\"Ignition\":\n[]}".to_owned(), "x:2: /Ignition: error: is a list, but has to be an object\n"),
        (
            "{\"ignition\":\n{\"Version\": 3}}".to_owned(),
            "x:2: /ignition/Version: error: is an integer, but has to be a string\n",
        ),
        (
            "{\"ignition\":\n{\"version\": \"3.3.0\", \"Version\": \"3.1.0\"}}".to_owned(),
            "x:2: /ignition/Version: error: the key is repeated\n",
        ),
        (
            format!("{version},\n\"storage\": {{\"files\": {{}}}}}}"),
            "x:2: /storage/files: error: is an object, but has to be a list\n",
        ),
        (
            format!("{version},\n\"storage\": {{\"files\": [{{\"path\": \"/a\", \"mode\": 1.0}}]}}}}"),
            "x:2: /storage/files/0/mode: error: is a number that is not a 64-bit integer, but has to be an integer\n",
        ),
        (
            format!("{version},\n\"storage\": {{}}, \"storage\": null}}"),
            "x:2: /storage: error: the key is repeated\n",
        ),
    ] {
        assert_eq!(check(text.as_bytes()).to_text("x"), expected, "{text}");
    }
}

#[test]
fn unknown_keys_are_warnings_with_a_position() {
    let text = b"{\"ignition\": {\"version\": \"3.1.0\"},\n\"Storage\": {\"luks\": [],\n\"files\": [{\"path\": \"/a\", \"a/b\": 1}]}}";
    let report = check(text).to_text("x");
    let expected = "x:2: /Storage: warning: wrong case: Ignition reads the key as \"storage\"\n\
        x:2: /Storage/luks: warning: unknown key: spec 3.1.0 does not have it, 3.2.0 does\n\
        x:3: /Storage/files/0/a~1b: warning: unknown key: Ignition ignores it\n";
    assert_eq!(report, expected);
    let config = Config::parse(text).unwrap().config;
    let json = r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/a"}]}}"#;
    assert_eq!(config.to_string(), json, "the key in the wrong case counts");
}

#[test]
fn version_key_may_have_the_wrong_case() {
    let text = br#"{"Ignition": {"VERSION": "3.1.0"}}"#;
    let expected = "x:1: /Ignition: warning: wrong case: Ignition reads the key as \"ignition\"\n\
        x:1: /Ignition/VERSION: warning: wrong case: Ignition reads the key as \"version\"\n";
    assert_eq!(check(text).to_text("x"), expected);
    assert_eq!(Config::parse(text).unwrap().config.to_string(), r#"{"ignition":{"version":"3.1.0"}}"#);
}

#[test]
fn parse_errors_name_the_problem() {
    let error = |text: &str| Config::parse(text.as_bytes()).unwrap_err();
    assert!(matches!(error("[1"), ConfigError::Syntax(_)));
    assert_eq!(error("[]").to_string(), "the config is a list, but has to be an object");
    assert_eq!(
        error("{\"ignition\": null}").to_string(),
        "\"\" is not a supported spec version; supported are 3.0.0 to 3.6.0"
    );
    let kind = error(r#"{"ignition": {"version": "3.0.0"}, "passwd": {"users": [{"groups": [1]}]}}"#);
    assert_eq!(kind.to_string(), "/passwd/users/0/groups/0 is an integer, but has to be a string");
}

#[test]
fn config_larger_than_the_embed_area_is_reported() {
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from(state >> 59).unwrap() % 26)
    });
    let config = |len: usize, text: String| {
        assert_eq!(text.len(), len);
        format!(
            r#"{{"ignition":{{"version":"3.3.0"}},"storage":{{"files":[{{"path":"/a","contents":{{"source":"data:,{text}"}}}}]}}}}"#
        )
    };
    let large = check(config(600_000, noise.take(600_000).collect()).as_bytes());
    assert!(
        large.findings().iter().any(|it| it.message.contains("the embed area of an image has 262144")),
        "{large:?}"
    );
    assert!(
        check(config(600_000, "a".repeat(600_000)).as_bytes()).is_empty(),
        "the compressed config is small"
    );
}

proptest! {
    #[test]
    fn any_text_gets_a_report(text: Vec<u8>) {
        prop_assert!(check(&text).is_fatal());
    }

    #[test]
    fn any_unit_gets_a_report(contents: String, name in "[a-z@]{0,4}(\\.(service|timer|x))?") {
        let unit = serde_json::json!({"name": name, "contents": contents, "enabled": true});
        let config = serde_json::json!({"ignition": {"version": "3.3.0"}, "systemd": {"units": [unit]}});
        let report = check(config.to_string().as_bytes());
        prop_assert!(report.findings().iter().all(|finding| finding.position.is_some()));
    }
}
