//! Rules for files and directories: modes that are probably mistakes.

use super::Linter;
use crate::report::ConfigRule;
use crate::validate::ConfigNode;

/// Octal modes that users write without converting them to decimal, although JSON numbers are decimal. As decimal
/// numbers, they are not useful modes.
const UNCONVERTED_MODES: [i64; 21] =
    [400, 440, 444, 500, 550, 555, 600, 640, 644, 660, 664, 666, 700, 711, 740, 744, 750, 755, 770, 775, 777];
/// The mode that Ignition sets for a file without a mode.
const DEFAULT_MODE: i64 = 0o644;
/// Directories with programs.
const PROGRAM_DIRECTORIES: [&str; 6] =
    ["/usr/local/bin/", "/usr/local/sbin/", "/opt/bin/", "/usr/bin/", "/usr/sbin/", "/usr/local/libexec/"];
/// A directory that only its owner may enter.
const ROOT_HOME: &str = "/root/";

impl Linter {
    pub(super) fn lint_file(&mut self, node: &ConfigNode) {
        let path = node.text("path").unwrap_or_default();
        let mode = node.integer("mode").unwrap_or(DEFAULT_MODE);
        let is_misread = self.lint_mode(node);
        if !is_misread
            && mode & 0o111 == 0
            && PROGRAM_DIRECTORIES.iter().any(|folder| path.starts_with(folder))
        {
            let message = "the file is in a directory of programs, but is not executable";
            self.warning(node.at("mode"), ConfigRule::Mode, format!("{message} (octal {mode:o})"));
        }
        let secret = self.lint_contents(node);
        if let Some(secret) = secret
            && mode & 0o004 != 0
        {
            let message = format!("the file contains {secret} and is world-readable (octal {mode:o})");
            if path.starts_with(ROOT_HOME) {
                self.info(node.at("mode"), ConfigRule::Mode, message);
            } else {
                self.warning(node.at("mode"), ConfigRule::Mode, message);
            }
        }
    }

    pub(super) fn lint_directory(&mut self, node: &ConfigNode) {
        let is_misread = self.lint_mode(node);
        if !is_misread && node.integer("mode").is_some_and(|mode| mode & 0o111 == 0) {
            self.warning(node.at("mode"), ConfigRule::Mode, "no user has permission to enter the directory");
        }
    }

    /// Warns about unusual modes. Returns `true` if the mode is probably an unconverted octal number.
    fn lint_mode(&mut self, node: &ConfigNode) -> bool {
        let Some(mode) = node.integer("mode") else { return false };
        let is_misread = UNCONVERTED_MODES.contains(&mode);
        if is_misread && let Ok(decimal) = i64::from_str_radix(&mode.to_string(), 8) {
            let message = format!("the mode {mode} is octal {mode:o}; octal {mode} is written as {decimal}");
            self.warning(node.at("mode"), ConfigRule::Mode, message);
        } else if mode & 0o1002 == 0o002 {
            self.warning(
                node.at("mode"),
                ConfigRule::Mode,
                format!("all users have write permission (octal {mode:o})"),
            );
        }
        is_misread
    }
}
