//! Detects the type of a file from its first bytes.

use super::super::report::{ArchiveCompression, ContentKind, DoctorCheck, quote_for_report};
use super::{CheckFailure, CheckResult, ProbedImage};

/// Offset of the first volume descriptor of an ISO 9660 file, after 16 sectors.
const DESCRIPTOR: usize = 16 * 2048;
/// Offset and length of the volume identifier.
const VOLUME: (usize, usize) = (DESCRIPTOR + 40, 32);
/// Offset of the El Torito boot record, in the next sector.
const BOOT_RECORD: usize = 17 * 2048;
/// Signatures of other file types, with their offsets.
const BEGINNINGS: [(usize, &[u8], ContentKind); 10] = [
    (0, b"#!ipxe", ContentKind::IpxeScript),
    (0x202, b"HdrS", ContentKind::Kernel),
    (0x38, b"ARM\x64", ContentKind::Kernel),
    (0, b"MZ", ContentKind::EfiProgram),
    (0, b"070701", ContentKind::Archive { packing: ArchiveCompression::Cpio }),
    (0, b"070702", ContentKind::Archive { packing: ArchiveCompression::Cpio }),
    (0, b"\x1f\x8b", ContentKind::Archive { packing: ArchiveCompression::Gzip }),
    (0, b"\x28\xb5\x2f\xfd", ContentKind::Archive { packing: ArchiveCompression::Zstd }),
    (0, b"\xfd7zXZ\0", ContentKind::Archive { packing: ArchiveCompression::Xz }),
    (510, b"\x55\xaa", ContentKind::Disk),
];
/// Media types by which UEFI firmware recognises a boot file: the types in EDK II and in the IANA registry.
const UEFI_TYPES: [&str; 5] = [
    "application/efi",
    "application/vnd.efi-img",
    "application/vnd.efi-iso",
    "application/vnd.efi.img",
    "application/vnd.efi.iso",
];

/// Returns the type of a file that starts with `bytes`.
pub(super) fn content_by_signature(bytes: &[u8]) -> ContentKind {
    let has = |at: usize, part: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(part));
    // Check for ISO 9660 first: its first 32 KiB may contain any bytes, also the signature of a kernel or disk.
    if has(DESCRIPTOR + 1, b"CD001") {
        let (at, len) = VOLUME;
        let volume = String::from_utf8_lossy(bytes.get(at..at + len).unwrap_or_default()).into_owned();
        let has_boot_record =
            has(BOOT_RECORD, b"\0CD001") && has(BOOT_RECORD + 7, b"EL TORITO SPECIFICATION");
        return ContentKind::Iso { volume: quote_for_report(volume.trim_end()), has_boot_record };
    }
    if let Some((_, _, content)) = BEGINNINGS.iter().find(|(at, part, _)| has(*at, part)) {
        return content.clone();
    }
    let text = bytes.get(..bytes.len().min(512)).unwrap_or_default();
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    if !text.is_empty() && text.iter().all(is_text) { ContentKind::Page } else { ContentKind::Other }
}

pub(super) fn probe_content(subject: &ProbedImage<'_>) -> Vec<(DoctorCheck, CheckResult)> {
    let kind = subject.whole.header("content-type").unwrap_or_default();
    let plain = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let path = subject.target.url().path().to_ascii_lowercase();
    let suffix = [".efi", ".iso", ".img"].into_iter().find(|suffix| path.ends_with(suffix));
    let uefi = match suffix {
        _ if UEFI_TYPES.contains(&plain.as_str()) => Ok(plain.clone()),
        Some(suffix) => Ok(suffix.to_owned()),
        None => Err(CheckFailure::Fails(format!(
            "media type is {:?}, and the path does not end in .efi, .iso or .img",
            quote_for_report(&plain)
        ))),
    };
    let is_text = plain.starts_with("text/") && subject.content != ContentKind::IpxeScript;
    let media =
        if is_text { Err(CheckFailure::Fails(quote_for_report(kind))) } else { Ok(quote_for_report(kind)) };
    let content = match &subject.content {
        ContentKind::Iso { has_boot_record: false, .. } | ContentKind::Page | ContentKind::Other => {
            Err(CheckFailure::Fails(subject.content.to_string()))
        }
        content => Ok(content.to_string()),
    };
    vec![(DoctorCheck::MediaType, media), (DoctorCheck::UefiType, uefi), (DoctorCheck::Content, content)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_are_detected_by_signature() {
        let at = |at: usize, part: &[u8]| {
            let mut bytes = vec![0; at];
            bytes.extend_from_slice(part);
            bytes
        };
        for (bytes, content) in [
            (at(0, b"#!ipxe\nboot"), ContentKind::IpxeScript),
            (at(0x202, b"HdrS"), ContentKind::Kernel),
            (at(0, b"MZ\x90"), ContentKind::EfiProgram),
            (at(0, b"07070100"), ContentKind::Archive { packing: ArchiveCompression::Cpio }),
            (at(0, b"\x1f\x8b\x08"), ContentKind::Archive { packing: ArchiveCompression::Gzip }),
            (at(0, b"\x28\xb5\x2f\xfd\0"), ContentKind::Archive { packing: ArchiveCompression::Zstd }),
            (at(0, b"\xfd7zXZ\0"), ContentKind::Archive { packing: ArchiveCompression::Xz }),
            (at(510, b"\x55\xaa"), ContentKind::Disk),
            (at(0, b"<!doctype html>"), ContentKind::Page),
            (at(0, b"{\"code\": 404}"), ContentKind::Page),
            (at(0, b"\0\x01"), ContentKind::Other),
            (Vec::new(), ContentKind::Other),
            (
                at(DESCRIPTOR, b"\x01CD001"),
                ContentKind::Iso { volume: String::new(), has_boot_record: false },
            ),
        ] {
            assert_eq!(content_by_signature(&bytes), content);
        }
    }
}
