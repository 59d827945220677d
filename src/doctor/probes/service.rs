//! Probe of the service URL in a discovery image.
//!
//! Only a few pieces of the image are read: the directory and the Ignition area. The beginning of the image, which
//! usually contains the directory, is already known.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use ignition::discovery::{masked_url, service_url};
use isogen::initrd::{ArchiveLimits, IGNITION_CONFIG};
use isogen::{Archive, Extent, IgnitionArea, ReadAt, Source};

use super::super::report::{ContentKind, DoctorCheck};
use super::{CheckFailure, CheckResult, ProbedImage};

/// Maximum number of bytes of a range.
const PIECE: u64 = 128 << 10;
/// Maximum number of ranges in search of the Ignition area. Usual images need two at most.
const MAX_SEARCHES: usize = 8;
/// Maximum length in bytes of the used part of the Ignition area. Usual discovery configs need some tens of kilobytes.
const MAX_AREA: u64 = 2 << 20;
/// Number of zeros after which the Ignition area counts as unused.
const UNUSED: usize = 4 << 10;
const LIMITS: ArchiveLimits =
    ArchiveLimits { decoded_bytes: 64 << 20, kept_bytes: 8 << 20, members: 200_000 };

/// Checks whether machines can reach the service of a discovery image. Returns `None` for other files and if the image
/// cannot be read, which other probes report.
pub(super) async fn probe_service(subject: &ProbedImage<'_>) -> Option<(DoctorCheck, CheckResult)> {
    if !matches!(subject.content, ContentKind::Iso { .. }) {
        return None;
    }
    let area = find_ignition_area(subject).await?;
    let packed = read_used_part(subject, area).await?;
    let archive = Archive::read_matching(packed.as_slice(), LIMITS, |name| name == IGNITION_CONFIG).ok()?;
    let url = service_url(archive.get(IGNITION_CONFIG)?)?;
    let result = match url.unreachable_reason() {
        Some(reason) => Err(CheckFailure::Fails(reason)),
        None => Ok(masked_url(url.as_str())),
    };
    Some((DoctorCheck::ServiceUrl, result))
}

/// Finds the Ignition area. Each attempt that needs more bytes than are known ends, and is repeated with those bytes.
async fn find_ignition_area(subject: &ProbedImage<'_>) -> Option<Extent> {
    let size = subject.size?;
    let known = Arc::new(KnownBytes::default());
    known.add(0, subject.whole.body.clone());
    for _ in 0..=MAX_SEARCHES {
        let source = Source::new(subject.target.redacted_url(), size, Arc::clone(&known));
        if let Ok(area) = IgnitionArea::find(&source) {
            return Some(area?.extent);
        }
        let missing = known.take_missing()?;
        known.add(missing, subject.read_range(missing, PIECE.min(size.checked_sub(missing)?)).await.ok()?);
    }
    None
}

/// Reads the beginning of the Ignition area, up to the zeros that fill it.
async fn read_used_part(subject: &ProbedImage<'_>, area: Extent) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut offset = area.offset();
    let end = area.end().min(offset.saturating_add(MAX_AREA));
    while offset < end {
        let len = PIECE.min(end - offset);
        let piece = subject.read_range(offset, len).await.ok()?;
        offset += len;
        let is_last = piece.iter().rev().take(UNUSED).all(|byte| *byte == 0);
        bytes.extend(piece);
        if is_last {
            break;
        }
    }
    Some(bytes)
}

/// The bytes of an image that were read so far.
#[derive(Debug, Default)]
struct KnownBytes(Mutex<KnownPieces>);

#[derive(Debug, Default)]
struct KnownPieces {
    pieces: BTreeMap<u64, Vec<u8>>,
    /// The offset of the last read that failed because its bytes are not known.
    missing: Option<u64>,
}

impl KnownBytes {
    fn add(&self, offset: u64, bytes: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pieces.insert(offset, bytes);
    }

    fn take_missing(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).missing.take()
    }
}

impl ReadAt for KnownBytes {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = known.pieces.range(..=offset).rev().find_map(|(start, piece)| {
            let at = usize::try_from(offset.checked_sub(*start)?).ok()?;
            piece.get(at..).filter(|bytes| !bytes.is_empty())
        });
        let Some(bytes) = bytes else {
            known.missing = Some(offset);
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let len = bytes.len().min(buf.len());
        buf.split_at_mut(len).0.copy_from_slice(bytes.split_at(len).0);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_bytes_are_missing() {
        let known = KnownBytes::default();
        known.add(0, b"abcd".to_vec());
        known.add(2, b"C".to_vec());
        known.add(6, b"gh".to_vec());
        let read = |offset| {
            let mut buf = [0; 3];
            let len = known.read_at(&mut buf, offset).map_err(|_| known.take_missing())?;
            Ok(String::from_utf8_lossy(&buf[..len]).into_owned())
        };
        assert_eq!(read(0), Ok("abc".to_owned()));
        assert_eq!(read(3), Ok("d".to_owned()));
        assert_eq!(read(4), Err(Some(4)));
        assert_eq!(read(6), Ok("gh".to_owned()));
        assert_eq!(read(8), Err(Some(8)));
        assert_eq!(known.take_missing(), None);
    }
}
