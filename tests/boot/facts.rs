//! Facts about the booted system. `init.sh` prints them on the serial line.

use std::collections::BTreeMap;

/// The command line as the kernel received it, and the files of the initramfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BootFacts {
    pub(crate) command_line: String,
    /// SHA-256 digest of every file of the initramfs, by path.
    pub(crate) files: BTreeMap<String, String>,
}

impl BootFacts {
    /// Parses the block of facts in a serial log; `None` if it is missing or incomplete.
    pub(crate) fn parse_log(log: &str) -> Option<Self> {
        let (_, rest) = log.split_once("FACTS BEGIN\n")?;
        let (block, _) = rest.split_once("FACTS END\n")?;
        let (first, rest) = block.split_once('\n')?;
        let command_line = first.strip_prefix("cmdline ")?.to_owned();
        let files = rest
            .lines()
            .map(|line| line.split_once("  ./").map(digest_and_path_to_entry))
            .collect::<Option<_>>()?;
        Some(Self { command_line, files })
    }
}

fn digest_and_path_to_entry((digest, path): (&str, &str)) -> (String, String) {
    (path.to_owned(), digest.to_owned())
}

#[test]
fn facts_are_found_in_console_output() {
    let log = "menu\nFACTS BEGIN\ncmdline a b=c\nd1  ./init\nd2  ./config.ign\nFACTS END\noff";
    let facts = BootFacts::parse_log(log).unwrap();
    assert_eq!(facts.command_line, "a b=c");
    assert_eq!(facts.files["config.ign"], "d2");
    assert_eq!(BootFacts::parse_log("FACTS BEGIN\ncmdline a\nd1  ./init\n"), None);
}
