//! Texts that may be Ignition configs: what is read is written and read again, merges with itself and with another, and
//! every finding has a place in the text.
//!
//! ```text
//! parent [NUL child]
//! ```

#![no_main]

use ignition::document::Document;
use ignition::lint::{check, lint};
use ignition::merge::merge;
use ignition::spec::Spec;
use ignition::translate::translate;
use ignition::validate::validate;
use libfuzzer_sys::fuzz_target;

/// Reads a config that must survive being written.
fn read(text: &[u8]) -> Option<Document> {
    let report = check(text);
    assert!(report.findings().iter().all(|finding| finding.position.is_some()), "{report:?}");
    let document = match Document::parse(text) {
        Ok(parsed) => parsed.document,
        Err(_) => {
            assert!(report.is_fatal());
            return None;
        }
    };
    for text in [document.to_string(), document.to_pretty()] {
        let again = Document::parse(text.as_bytes()).unwrap();
        assert!(again.warnings.is_empty(), "{:?}", again.warnings);
        assert_eq!(again.document, document);
    }
    let config = document.to_config().unwrap();
    assert_eq!(Document::try_from(&config).unwrap(), document);
    let latest = translate(&document, Spec::LATEST).unwrap();
    assert_eq!(latest.spec(), Spec::LATEST);
    assert_eq!(merge(&document, &Document::empty(document.spec())), document);
    Some(document)
}

fuzz_target!(|input: &[u8]| {
    let mut texts = input.splitn(2, |byte| *byte == 0);
    let Some(parent) = texts.next().and_then(read) else { return };
    let child = texts.next().and_then(read).unwrap_or_else(|| parent.clone());
    let merged = merge(&parent, &child);
    assert_eq!(merged.spec(), parent.spec().max(child.spec()));
    assert_eq!(Document::parse(merged.to_string().as_bytes()).unwrap().document, merged);
    let _ = (validate(&merged), lint(&merged));
});
