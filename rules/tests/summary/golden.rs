//! Compares the summaries of the replies in `tests/summary/replies` with golden files. The replies `compact_cluster`,
//! `dual_stack`, `tang`, `drive_types` and `collision` are recorded; all other replies are written by hand.
//!
//! `UPDATE_GOLDEN=1 cargo test -p rules --test summary` writes the golden files.

use std::path::{Path, PathBuf};
use std::{env, fs};

use rules::summary::{HostSummary, StoredSummary};
use serde_json::{Map, Value};

use crate::apply::apply;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/summary").join(name)
}

/// Returns the summary of all replies in a file.
pub(crate) fn summary_of(name: &str) -> HostSummary {
    let text = fs::read_to_string(folder("replies").join(name)).unwrap();
    let replies: Map<String, Value> = serde_json::from_str(&text).unwrap();
    let mut summary = HostSummary::default();
    for (step, reply) in &replies {
        apply(&mut summary, step, reply).unwrap();
    }
    summary
}

#[test]
fn summaries_equal_their_golden_files() {
    let mut names: Vec<_> =
        fs::read_dir(folder("replies")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert!(names.len() >= 12, "{names:?}");
    for name in names {
        let name = name.to_str().unwrap();
        let summary = summary_of(name);
        let stored = summary.to_stored().unwrap();
        assert_eq!(
            HostSummary::from_stored(&stored).unwrap(),
            StoredSummary::Current(Box::new(summary)),
            "{name}"
        );
        let pretty =
            serde_json::to_string_pretty(&serde_json::from_str::<Value>(&stored).unwrap()).unwrap() + "\n";
        let path = folder("goldens").join(name);
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &pretty).unwrap();
        }
        assert!(
            pretty == fs::read_to_string(&path).unwrap_or_default(),
            "{name} differs; UPDATE_GOLDEN=1 rewrites it"
        );
    }
}

#[test]
fn usual_machine_has_a_small_summary() {
    let summary = summary_of("usual_machine.json");
    let len = summary.to_stored().unwrap().len();
    assert!(len <= 2400, "{len}");
    let memory = summary.memory_len();
    assert!((2048..=4096).contains(&memory), "{memory}");
}
