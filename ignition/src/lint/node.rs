//! Rules for files and directories: modes that say something else than they seem to.

use super::Linter;
use crate::validate::Node;

/// Modes in octal that people write as they read them, where JSON takes them for decimal. No sensible mode has one of
/// these as its decimal form.
const MISREAD: [i64; 21] =
    [400, 440, 444, 500, 550, 555, 600, 640, 644, 660, 664, 666, 700, 711, 740, 744, 750, 755, 770, 775, 777];
/// Ignition's own mode for a file that names none.
const DEFAULT_MODE: i64 = 0o644;
/// Where programs lie.
const PROGRAMS: [&str; 6] =
    ["/usr/local/bin/", "/usr/local/sbin/", "/opt/bin/", "/usr/bin/", "/usr/sbin/", "/usr/local/libexec/"];
/// Only its owner gets into this folder.
const CLOSED: &str = "/root/";

impl Linter {
    pub(super) fn file(&mut self, node: &Node) {
        let path = node.text("path").unwrap_or_default();
        let mode = node.integer("mode").unwrap_or(DEFAULT_MODE);
        let is_misread = self.mode(node);
        if !is_misread && mode & 0o111 == 0 && PROGRAMS.iter().any(|folder| path.starts_with(folder)) {
            self.warning(
                node.at("mode"),
                format!("the file is among programs, but nobody may execute it (octal {mode:o})"),
            );
        }
        let secret = self.contents(node);
        if let Some(secret) = secret
            && mode & 0o004 != 0
        {
            let message = format!("everybody may read the file, which holds {secret} (octal {mode:o})");
            if path.starts_with(CLOSED) {
                self.info(node.at("mode"), message);
            } else {
                self.warning(node.at("mode"), message);
            }
        }
    }

    pub(super) fn directory(&mut self, node: &Node) {
        let is_misread = self.mode(node);
        if !is_misread && node.integer("mode").is_some_and(|mode| mode & 0o111 == 0) {
            self.warning(node.at("mode"), "nobody may enter the directory");
        }
    }

    /// Gives whether the mode is most likely a slip.
    fn mode(&mut self, node: &Node) -> bool {
        let Some(mode) = node.integer("mode") else { return false };
        let is_misread = MISREAD.contains(&mode);
        if is_misread {
            let meant = i64::from_str_radix(&mode.to_string(), 8).unwrap_or_default();
            let message = format!("the mode {mode} is octal {mode:o}; octal {mode} is written as {meant}");
            self.warning(node.at("mode"), message);
        } else if mode & 0o1002 == 0o002 {
            self.warning(node.at("mode"), format!("everybody may write here (octal {mode:o})"));
        }
        is_misread
    }
}
