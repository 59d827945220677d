//! Finds the kernel-argument areas of images without a description. It searches the configs of the boot loaders for the
//! comment that ends an area.
//!
//! ```text
//! linux /images/pxeboot/vmlinuz ARGUMENTS          append initrd=A,B ARGUMENTS
//! ####…#### COREOS_KARG_EMBED_AREA                 ####…#### COREOS_KARG_EMBED_AREA
//! ```
//!
//! For such an image, the default arguments are unknown.

use crate::error::Result;
use crate::extent::Extent;
use crate::kargs::{KargsArea, KargsAreas, KargsOrigin};
use crate::source::Source;
use crate::volume::Volume;

const MARKER: &[u8] = b"# COREOS_KARG_EMBED_AREA";
/// Maximum length of a config to search. Published configs are two or three KiB long.
const MAX_CONFIG_LEN: u64 = 64 << 10;
const MAX_AREA_LEN: usize = 2048;
/// Maximum number of configs to search. Images have at most three boot loaders, each with one config.
const MAX_CONFIGS: usize = 16;

pub(super) fn search_configs(source: &Source, volume: &Volume) -> Result<Option<KargsAreas>> {
    let is_config =
        |name: &str| name.eq_ignore_ascii_case("grub.cfg") || name.eq_ignore_ascii_case("isolinux.cfg");
    let files = volume.tree().files().map(|(_, file)| file);
    let configs = files.filter(|file| is_config(&file.name) && file.extent.len() <= MAX_CONFIG_LEN);
    let mut areas = Vec::new();
    for config in configs.take(MAX_CONFIGS) {
        let text = source.read_extent(config.extent)?;
        if let Some(extent) = find_area(&text).and_then(|inner| config.extent.subextent(inner)) {
            areas.push(KargsArea::read(source, extent)?);
        }
    }
    let alike = areas.iter().zip(areas.iter().skip(1)).all(|(a, b)| a.extent.len() == b.extent.len());
    Ok(if alike { KargsAreas::new(source, areas, None, KargsOrigin::Marker).ok() } else { None })
}

/// Returns the area of a config: from the first argument up to the `#` that begins the marker, exclusive.
fn find_area(text: &[u8]) -> Option<Extent> {
    let end = text.windows(MARKER.len()).position(|window| window == MARKER)?;
    let before = text.get(..end)?;
    let filler = before.iter().rev().take_while(|byte| **byte == b'#').count();
    let line = before.get(..end - filler)?.strip_suffix(b"\n")?;
    let line_start = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let start = line_start + arguments_at(line.get(line_start..)?)?;
    let len = end.checked_sub(start).filter(|len| *len <= MAX_AREA_LEN)?;
    Extent::new(start as u64, len as u64)
}

/// Returns the offset of the kernel arguments in a line of a boot loader config.
fn arguments_at(line: &[u8]) -> Option<usize> {
    let line = std::str::from_utf8(line).ok()?;
    let words: Vec<&str> = line.split_ascii_whitespace().take(2).collect();
    let last = match *words.as_slice() {
        ["linux", kernel] => kernel,
        ["append", initrd] if initrd.starts_with("initrd=") => initrd,
        _ => return None,
    };
    let skipped = line.find(last)? + last.len();
    let rest = line.get(skipped..)?;
    Some(line.len() - rest.trim_start().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(text: &str) -> Option<&str> {
        let extent = find_area(text.as_bytes())?;
        text.get(usize::try_from(extent.offset()).unwrap()..usize::try_from(extent.end()).unwrap())
    }

    #[test]
    fn areas_of_both_boot_loaders_are_found() {
        let grub = "menu {\n\tlinux /vmlinuz quiet rw\n######## COREOS_KARG_EMBED_AREA\n}";
        assert_eq!(area(grub), Some("quiet rw\n#######"));
        let isolinux = "  append initrd=/a,/b quiet\n### COREOS_KARG_EMBED_AREA\n";
        assert_eq!(area(isolinux), Some("quiet\n##"));
    }

    #[test]
    fn lines_of_other_forms_are_ignored() {
        assert_eq!(area("quiet\n### COREOS_KARG_EMBED_AREA\n"), None);
        assert_eq!(area("linux /vmlinuz quiet ### COREOS_KARG_EMBED_AREA\n"), None);
        assert_eq!(area("linux /vmlinuz quiet\n"), None);
    }
}
