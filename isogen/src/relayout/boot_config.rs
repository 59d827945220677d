//! The configs of the boot loaders: `grub.cfg` and `isolinux.cfg`.
//!
//! ```text
//! linux /images/pxeboot/vmlinuz ARGUMENTS          append initrd=A,B ARGUMENTS
//! ####…#### COREOS_KARG_EMBED_AREA                 ####…#### COREOS_KARG_EMBED_AREA
//! initrd A B
//! ```
//!
//! `grub.cfg` has a line for initrds after the arguments. `isolinux.cfg` has them on the same line before the
//! arguments, so that another initrd moves the area.

use crate::extent::Extent;

/// The kernel argument with which boot loaders name the kernel.
const KERNEL_ARGUMENT: &str = "BOOT_IMAGE=";

/// A config with its kernel-argument area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BootConfig {
    text: Vec<u8>,
    area: Extent,
}

impl BootConfig {
    /// Creates a config from its text and the area in it. Returns `None` if the area is not within the text.
    pub(super) fn new(text: Vec<u8>, area: Extent) -> Option<Self> {
        (area.end() <= text.len() as u64).then_some(Self { text, area })
    }

    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// Returns the area.
    pub(super) fn area(&self) -> Extent {
        self.area
    }

    /// Returns the bytes of the kernel command line before the arguments of the area: both boot loaders add an argument
    /// that names the kernel, and the initrd list of isolinux is an argument.
    pub(super) fn len_before_arguments(&self) -> usize {
        let (start, _) = self.bounds();
        let before = self.text.get(..start).unwrap_or_default();
        let mut lines = before.rsplit(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
        // GRUB's line begins with the kernel. isolinux names it on an earlier line.
        let on_line = lines.next().and_then(after_word).map_or(0, <[u8]>::len);
        let kernel = lines.find(|line| line.starts_with(b"kernel ")).and_then(after_word);
        let kernel = kernel.map_or(0, |path| path.trim_ascii_end().len() + 1);
        KERNEL_ARGUMENT.len() + kernel + on_line
    }

    /// Replaces the bytes of the area.
    pub(super) fn set_area(&mut self, bytes: &[u8]) {
        let (start, end) = self.bounds();
        self.text.splice(start..end, bytes.iter().copied());
        self.area = Extent::new(self.area.offset(), bytes.len() as u64).unwrap_or(self.area);
    }

    /// Adds an initrd to the end of the list. Returns `false` if the config does not have a list.
    pub(super) fn add_initrd(&mut self, path: &str) -> bool {
        let (start, end) = self.bounds();
        let before = self.text.get(..start).unwrap_or_default();
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if let Some(at) = find(&self.text, b"initrd=", line_start..start) {
            let rest = self.text.get(at..start).unwrap_or_default();
            let word = rest.iter().position(u8::is_ascii_whitespace).map_or(start, |len| at + len);
            let added = format!(",{path}");
            self.area =
                Extent::new(self.area.offset() + added.len() as u64, self.area.len()).unwrap_or(self.area);
            self.text.splice(word..word, added.bytes());
            return true;
        }
        let Some(at) = self.initrd_line(end) else { return false };
        let rest = self.text.get(at..).unwrap_or_default();
        let line_end = rest.iter().position(|byte| *byte == b'\n').map_or(self.text.len(), |len| at + len);
        self.text.splice(line_end..line_end, format!(" {path}").bytes());
        true
    }

    /// Returns the offset of GRUB's `initrd` line after the area.
    fn initrd_line(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for line in self.text.get(from..)?.split_inclusive(|byte| *byte == b'\n') {
            if line.trim_ascii_start().starts_with(b"initrd ") {
                return Some(at);
            }
            at += line.len();
        }
        None
    }

    fn bounds(&self) -> (usize, usize) {
        let place = |at: u64| usize::try_from(at).unwrap_or(self.text.len());
        (place(self.area.offset()), place(self.area.end()))
    }
}

/// Returns the rest of a line after its first word and the blanks that follow.
fn after_word(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().position(u8::is_ascii_whitespace)?;
    line.get(end..).map(<[u8]>::trim_ascii_start)
}

fn find(text: &[u8], word: &[u8], range: std::ops::Range<usize>) -> Option<usize> {
    let start = range.start;
    text.get(range)?.windows(word.len()).position(|window| window == word).map(|at| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str, area: &str) -> BootConfig {
        let offset = text.find(area).unwrap() as u64;
        BootConfig::new(text.into(), Extent::new(offset, area.len() as u64).unwrap()).unwrap()
    }

    fn text(config: BootConfig) -> String {
        String::from_utf8(config.into_text()).unwrap()
    }

    #[test]
    fn add_initrd_to_grub_keeps_the_area() {
        let mut grub = config("\tlinux /vmlinuz quiet\n##\n\tinitrd /a /b\n}\n", "quiet\n#");
        let area = grub.area();
        assert!(grub.add_initrd("/c"));
        assert_eq!(grub.area(), area);
        grub.set_area(b"rw\n#####");
        assert_eq!(text(grub), "\tlinux /vmlinuz rw\n######\n\tinitrd /a /b /c\n}\n");
    }

    #[test]
    fn add_initrd_to_isolinux_moves_the_area() {
        let mut isolinux = config("  append initrd=/a,/b quiet\n##\n", "quiet\n#");
        assert!(isolinux.add_initrd("/c"));
        isolinux.set_area(b"rw\n#");
        assert_eq!(text(isolinux), "  append initrd=/a,/b,/c rw\n##\n");
    }

    /// `BOOT_IMAGE=/vmlinuz quiet` and `BOOT_IMAGE=/vmlinuz initrd=/a,/b quiet` in the booted system.
    #[test]
    fn len_before_arguments_counts_kernel_and_initrds() {
        let grub = config("\tlinux /vmlinuz quiet\n##\n\tinitrd /a\n}\n", "quiet\n#");
        assert_eq!(grub.len_before_arguments(), "BOOT_IMAGE=/vmlinuz ".len());
        let text = "label linux\n  kernel /vmlinuz\n  append initrd=/a,/b quiet\n##\n";
        let isolinux = config(text, "quiet\n#");
        assert_eq!(isolinux.len_before_arguments(), "BOOT_IMAGE=/vmlinuz initrd=/a,/b ".len());
    }

    #[test]
    fn add_initrd_without_a_list_returns_false() {
        assert!(!config("linux /vmlinuz quiet\n##\n", "quiet\n#").add_initrd("/c"));
    }
}
