//! Edits the configs of the boot loaders, `grub.cfg` and `isolinux.cfg`: the kernel-argument area and the list of
//! initrds.
//!
//! ```text
//! linux /images/pxeboot/vmlinuz ARGUMENTS          append initrd=A,B ARGUMENTS
//! ####…#### COREOS_KARG_EMBED_AREA                 ####…#### COREOS_KARG_EMBED_AREA
//! initrd A B
//! ```
//!
//! In `grub.cfg`, the list of initrds is on a line after the arguments. In `isolinux.cfg`, it is on the line of the
//! arguments, before them, so another initrd moves the area.

use crate::extent::Extent;

/// The kernel argument that boot loaders add to pass the path of the kernel.
const KERNEL_ARGUMENT: &str = "BOOT_IMAGE=";
/// The start of the list of initrds in `isolinux.cfg`.
const INITRD_LIST: &[u8] = b"initrd=";

/// The text of a config and the kernel-argument area in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BootConfig {
    before: Vec<u8>,
    area: Vec<u8>,
    after: Vec<u8>,
}

impl BootConfig {
    /// Creates a config from its text and the position of the area. Returns `None` if the area is not within the text.
    pub(super) fn new(text: &[u8], area: Extent) -> Option<Self> {
        let [start, end] = [area.offset(), area.end()].map(usize::try_from);
        let (rest, after) = text.split_at_checked(end.ok()?)?;
        let (before, area) = rest.split_at_checked(start.ok()?)?;
        Some(Self { before: before.to_vec(), area: area.to_vec(), after: after.to_vec() })
    }

    pub(super) fn into_text(self) -> Vec<u8> {
        [self.before, self.area, self.after].concat()
    }

    pub(super) fn area_offset(&self) -> u64 {
        self.before.len() as u64
    }

    /// Returns the length of the kernel command line before the arguments of the area. Both boot loaders add an
    /// argument with the path of the kernel, and the initrd list of isolinux is an argument too.
    pub(super) fn len_before_arguments(&self) -> usize {
        let mut lines = self.before.rsplit(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
        // In a GRUB config, the path of the kernel is on the line of the arguments, before them. In an isolinux config,
        // it is on an earlier line.
        let on_line = lines.next().and_then(after_first_word).map_or(0, <[u8]>::len);
        let kernel = lines.find(|line| line.starts_with(b"kernel ")).and_then(after_first_word);
        let kernel = kernel.map_or(0, |path| path.trim_ascii_end().len() + 1);
        KERNEL_ARGUMENT.len() + kernel + on_line
    }

    pub(super) fn set_area(&mut self, bytes: &[u8]) {
        self.area = bytes.to_vec();
    }

    /// Appends an initrd to the list. Returns `false` if the config has no list.
    pub(super) fn add_initrd(&mut self, path: &str) -> bool {
        if let Some(at) = self.isolinux_list_end() {
            self.before.splice(at..at, format!(",{path}").bytes());
            return true;
        }
        let Some(at) = self.grub_list_end() else { return false };
        self.after.splice(at..at, format!(" {path}").bytes());
        true
    }

    /// Returns the offset in `before` where the list of initrds in an isolinux config ends. The list is on the line of
    /// the area.
    fn isolinux_list_end(&self) -> Option<usize> {
        let line = self.before.rsplit(|byte| *byte == b'\n').next()?;
        let list = line.windows(INITRD_LIST.len()).position(|window| window == INITRD_LIST)?;
        let len = line.iter().skip(list).take_while(|byte| !byte.is_ascii_whitespace()).count();
        Some(self.before.len() - line.len() + list + len)
    }

    /// Returns the offset in `after` where the `initrd` line of a GRUB config ends.
    fn grub_list_end(&self) -> Option<usize> {
        let mut at = 0;
        for line in self.after.split(|byte| *byte == b'\n') {
            if line.trim_ascii_start().starts_with(b"initrd ") {
                return Some(at + line.len());
            }
            at += line.len() + 1;
        }
        None
    }
}

/// Returns the rest of a line after its first word and the following blanks.
fn after_first_word(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().position(u8::is_ascii_whitespace)?;
    line.get(end..).map(<[u8]>::trim_ascii_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str, area: &str) -> BootConfig {
        let offset = text.find(area).unwrap() as u64;
        BootConfig::new(text.as_bytes(), Extent::new(offset, area.len() as u64).unwrap()).unwrap()
    }

    fn text(config: BootConfig) -> String {
        String::from_utf8(config.into_text()).unwrap()
    }

    #[test]
    fn add_initrd_to_grub_keeps_the_area() {
        let mut grub = config("\tlinux /vmlinuz quiet\n##\n\tinitrd /a /b\n}\n", "quiet\n#");
        let offset = grub.area_offset();
        assert!(grub.add_initrd("/c"));
        assert_eq!(grub.area_offset(), offset);
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

    /// The booted systems have the command lines `BOOT_IMAGE=/vmlinuz quiet` and `BOOT_IMAGE=/vmlinuz initrd=/a,/b
    /// quiet`.
    #[test]
    fn len_before_arguments_counts_kernel_and_initrds() {
        let grub = config("\tlinux /vmlinuz quiet\n##\n\tinitrd /a\n}\n", "quiet\n#");
        assert_eq!(grub.len_before_arguments(), "BOOT_IMAGE=/vmlinuz ".len());
        let text = "label linux\n  kernel /vmlinuz\n  append initrd=/a,/b quiet\n##\n";
        let isolinux = config(text, "quiet\n#");
        assert_eq!(isolinux.len_before_arguments(), "BOOT_IMAGE=/vmlinuz initrd=/a,/b ".len());
    }

    #[test]
    fn rejects_areas_beyond_the_text() {
        for (offset, len) in [(0, 4), (4, 0), (2, 2), (u64::MAX, 0)] {
            assert_eq!(BootConfig::new(b"abc", Extent::new(offset, len).unwrap()), None);
        }
    }

    #[test]
    fn add_initrd_without_a_list_returns_false() {
        assert!(!config("linux /vmlinuz quiet\n##\n", "quiet\n#").add_initrd("/c"));
    }
}
