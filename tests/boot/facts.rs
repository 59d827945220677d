//! What the booted system says about itself; `init.sh` is the other side.

use std::collections::BTreeMap;

/// Command line and files, as the kernel got them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) command_line: String,
    /// SHA-256 of every file of the initramfs, by path.
    pub(crate) files: BTreeMap<String, String>,
}

impl Facts {
    /// Reads the block of facts in a serial log; none where it is not there or not complete.
    pub(crate) fn find(log: &str) -> Option<Self> {
        let (_, rest) = log.split_once("FACTS BEGIN\n")?;
        let (block, _) = rest.split_once("FACTS END\n")?;
        let (first, rest) = block.split_once('\n')?;
        let command_line = first.strip_prefix("cmdline ")?.to_owned();
        let files = rest.lines().map(|line| line.split_once("  ./").map(swapped)).collect::<Option<_>>()?;
        Some(Self { command_line, files })
    }
}

fn swapped((digest, path): (&str, &str)) -> (String, String) {
    (path.to_owned(), digest.to_owned())
}

#[test]
fn facts_are_found_between_other_things() {
    let log = "menu\nFACTS BEGIN\ncmdline a b=c\nd1  ./init\nd2  ./config.ign\nFACTS END\noff";
    let facts = Facts::find(log).unwrap();
    assert_eq!(facts.command_line, "a b=c");
    assert_eq!(facts.files["config.ign"], "d2");
    assert_eq!(Facts::find("FACTS BEGIN\ncmdline a\nd1  ./init\n"), None);
}
