//! What the bytes are, by how they begin.

use super::super::report::{Check, Content, Packing, quoted};
use super::{Miss, Subject, Tried};

/// Where the first descriptor of an ISO 9660 volume is: behind 16 sectors.
const DESCRIPTOR: usize = 16 * 2048;
/// Where its volume has its name, and how long that is.
const VOLUME: (usize, usize) = (DESCRIPTOR + 40, 32);
/// Where the boot record of El Torito is: in the sector behind.
const BOOT_RECORD: usize = 17 * 2048;
/// How other files begin, and what they are.
const BEGINNINGS: [(usize, &[u8], Content); 10] = [
    (0, b"#!ipxe", Content::IpxeScript),
    (0x202, b"HdrS", Content::Kernel),
    (0x38, b"ARM\x64", Content::Kernel),
    (0, b"MZ", Content::EfiProgram),
    (0, b"070701", Content::Archive { packing: Packing::Cpio }),
    (0, b"070702", Content::Archive { packing: Packing::Cpio }),
    (0, b"\x1f\x8b", Content::Archive { packing: Packing::Gzip }),
    (0, b"\x28\xb5\x2f\xfd", Content::Archive { packing: Packing::Zstd }),
    (0, b"\xfd7zXZ\0", Content::Archive { packing: Packing::Xz }),
    (510, b"\x55\xaa", Content::Disk),
];
/// The types that tell UEFI what it is, as EDK II has them and as IANA does.
const UEFI_TYPES: [&str; 5] = [
    "application/efi",
    "application/vnd.efi-img",
    "application/vnd.efi-iso",
    "application/vnd.efi.img",
    "application/vnd.efi.iso",
];

/// Says what begins so.
pub(super) fn sniff(bytes: &[u8]) -> Content {
    let has = |at: usize, part: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(part));
    // Kernels and disks may begin as volumes do: these have 32 KiB for whatever they want.
    if has(DESCRIPTOR + 1, b"CD001") {
        let (at, len) = VOLUME;
        let volume = String::from_utf8_lossy(bytes.get(at..at + len).unwrap_or_default()).into_owned();
        let has_boot_record =
            has(BOOT_RECORD, b"\0CD001") && has(BOOT_RECORD + 7, b"EL TORITO SPECIFICATION");
        return Content::Iso { volume: quoted(volume.trim_end()), has_boot_record };
    }
    if let Some((_, _, content)) = BEGINNINGS.iter().find(|(at, part, _)| has(*at, part)) {
        return content.clone();
    }
    let text = bytes.get(..bytes.len().min(512)).unwrap_or_default();
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    if !text.is_empty() && text.iter().all(is_text) { Content::Page } else { Content::Other }
}

pub(super) fn all(subject: &Subject<'_>) -> Vec<(Check, Tried)> {
    let kind = subject.whole.header("content-type").unwrap_or_default();
    let plain = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let path = subject.target.url().path().to_ascii_lowercase();
    let suffix = [".efi", ".iso", ".img"].into_iter().find(|suffix| path.ends_with(suffix));
    let uefi = match suffix {
        _ if UEFI_TYPES.contains(&plain.as_str()) => Ok(plain.clone()),
        Some(suffix) => Ok(suffix.to_owned()),
        None => Err(Miss::Fails(format!(
            "the type is {:?}, and the path has no suffix that tells",
            quoted(&plain)
        ))),
    };
    let is_text = plain.starts_with("text/") && subject.content != Content::IpxeScript;
    let media = if is_text { Err(Miss::Fails(quoted(kind))) } else { Ok(quoted(kind)) };
    let content = match &subject.content {
        Content::Iso { has_boot_record: false, .. } | Content::Page | Content::Other => {
            Err(Miss::Fails(subject.content.to_string()))
        }
        content => Ok(content.to_string()),
    };
    vec![(Check::MediaType, media), (Check::UefiType, uefi), (Check::Content, content)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_beginnings() {
        let at = |at: usize, part: &[u8]| {
            let mut bytes = vec![0; at];
            bytes.extend_from_slice(part);
            bytes
        };
        for (bytes, content) in [
            (at(0, b"#!ipxe\nboot"), Content::IpxeScript),
            (at(0x202, b"HdrS"), Content::Kernel),
            (at(0, b"MZ\x90"), Content::EfiProgram),
            (at(0, b"07070100"), Content::Archive { packing: Packing::Cpio }),
            (at(0, b"\x1f\x8b\x08"), Content::Archive { packing: Packing::Gzip }),
            (at(0, b"\x28\xb5\x2f\xfd\0"), Content::Archive { packing: Packing::Zstd }),
            (at(0, b"\xfd7zXZ\0"), Content::Archive { packing: Packing::Xz }),
            (at(510, b"\x55\xaa"), Content::Disk),
            (at(0, b"<!doctype html>"), Content::Page),
            (at(0, b"{\"code\": 404}"), Content::Page),
            (at(0, b"\0\x01"), Content::Other),
            (Vec::new(), Content::Other),
            (at(DESCRIPTOR, b"\x01CD001"), Content::Iso { volume: String::new(), has_boot_record: false }),
        ] {
            assert_eq!(sniff(&bytes), content);
        }
    }
}
