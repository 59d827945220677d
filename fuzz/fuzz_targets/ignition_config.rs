//! Texts that may be Ignition configs. An accepted config survives writing and parsing, and can be merged with itself
//! and with another config. Every finding has a position in the text.
//!
//! ```text
//! parent [NUL child]
//! ```

#![no_main]

use ignition::config::Config;
use ignition::lint::{check, lint};
use ignition::merge::merge;
use ignition::rewrite::rewrite;
use ignition::spec::Spec;
use ignition::translate::translate;
use ignition::validate::validate;
use libfuzzer_sys::fuzz_target;

/// Parses a config, and checks that it survives a round trip.
fn read(text: &[u8]) -> Option<Config> {
    let report = check(text);
    let _ = rewrite(text);
    assert!(report.findings().iter().all(|finding| finding.position.is_some()), "{report:?}");
    let config = match Config::parse(text) {
        Ok(parsed) => parsed.config,
        Err(_) => {
            assert!(report.is_fatal());
            return None;
        }
    };
    for text in [config.to_string(), config.to_pretty()] {
        let again = Config::parse(text.as_bytes()).unwrap();
        assert!(again.warnings.is_empty(), "{:?}", again.warnings);
        assert_eq!(again.config, config);
    }
    if let Ok(rewritten) = rewrite(config.to_string().as_bytes()) {
        assert_eq!(rewritten.warnings, [""; 0]);
        assert_eq!(Config::parse(rewritten.json.as_bytes()).unwrap().config, config);
    }
    let latest = translate(&config, Spec::LATEST).unwrap();
    assert_eq!(latest.spec(), Spec::LATEST);
    let empty = format!(r#"{{"ignition":{{"version":"{}"}}}}"#, config.spec());
    assert_eq!(merge(&config, &Config::parse(empty.as_bytes()).unwrap().config), config);
    Some(config)
}

fuzz_target!(|input: &[u8]| {
    let mut texts = input.splitn(2, |byte| *byte == 0);
    let Some(parent) = texts.next().and_then(read) else { return };
    let child = texts.next().and_then(read).unwrap_or_else(|| parent.clone());
    let merged = merge(&parent, &child);
    assert_eq!(merged.spec(), parent.spec().max(child.spec()));
    assert_eq!(Config::parse(merged.to_string().as_bytes()).unwrap().config, merged);
    let _ = (validate(&merged), lint(&merged));
});
