//! Checks the service URL in the Ignition config of a discovery image.
//!
//! This reads only a few parts of the image: its directory and the Ignition area. Usually, the directory is in the
//! bytes that were already read.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use ignition::discovery::{masked_url, service_url};
use isogen::initrd::{ArchiveLimits, IGNITION_CONFIG};
use isogen::{Archive, Extent, IgnitionArea, ReadAt, Source};

use super::super::report::{ContentKind, DoctorCheck};
use super::{CheckFailure, CheckResult, ProbedImage};

/// Maximum number of bytes in one range request.
const PIECE: u64 = 128 << 10;
/// Maximum number of range requests to find the Ignition area. Typical images need at most two.
const MAX_SEARCHES: usize = 8;
/// Maximum length in bytes of the used part of the Ignition area. Typical discovery configs need tens of kilobytes.
const MAX_AREA: u64 = 2 << 20;
/// The number of zero bytes after which the rest of the Ignition area counts as unused.
const UNUSED: usize = 4 << 10;
const LIMITS: ArchiveLimits =
    ArchiveLimits { decoded_bytes: 64 << 20, kept_bytes: 8 << 20, members: 200_000 };

/// Checks whether machines can reach the service of a discovery image. Returns `None` for other files. Also returns
/// `None` if the image cannot be read, because other probes report that.
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

/// Finds the Ignition area. If an attempt needs missing bytes, they are read, and the attempt is repeated.
async fn find_ignition_area(subject: &ProbedImage<'_>) -> Option<Extent> {
    let size = subject.size?;
    let cache = Arc::new(KnownBytes::default());
    cache.add(0, subject.whole.body.clone());
    for _ in 0..=MAX_SEARCHES {
        let source = Source::new(subject.target.redacted_url(), size, Arc::clone(&cache));
        if let Ok(area) = IgnitionArea::find(&source) {
            return Some(area?.extent);
        }
        let missing = cache.take_missing()?;
        cache.add(missing, subject.read_range(missing, PIECE.min(size.checked_sub(missing)?)).await.ok()?);
    }
    None
}

/// Reads the Ignition area up to the zeros that fill the rest of it.
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

/// Bytes of an image that earlier requests have read.
#[derive(Debug, Default)]
struct KnownBytes(Mutex<KnownPieces>);

#[derive(Debug, Default)]
struct KnownPieces {
    pieces: BTreeMap<u64, Vec<u8>>,
    /// The offset of the last failed read, whose bytes are missing.
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
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = state.pieces.range(..=offset).rev().find_map(|(start, piece)| {
            let at = usize::try_from(offset.checked_sub(*start)?).ok()?;
            piece.get(at..).filter(|bytes| !bytes.is_empty())
        });
        let Some(bytes) = bytes else {
            state.missing = Some(offset);
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
        let cache = KnownBytes::default();
        cache.add(0, b"abcd".to_vec());
        cache.add(2, b"C".to_vec());
        cache.add(6, b"gh".to_vec());
        let read = |offset| {
            let mut buf = [0; 3];
            let len = cache.read_at(&mut buf, offset).map_err(|_| cache.take_missing())?;
            Ok(String::from_utf8_lossy(&buf[..len]).into_owned())
        };
        assert_eq!(read(0), Ok("abc".to_owned()));
        assert_eq!(read(3), Ok("d".to_owned()));
        assert_eq!(read(4), Err(Some(4)));
        assert_eq!(read(6), Ok("gh".to_owned()));
        assert_eq!(read(8), Err(Some(8)));
        assert_eq!(cache.take_missing(), None);
    }
}
