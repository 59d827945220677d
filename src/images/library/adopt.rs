//! Files that are there already.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use isogen::{BaseImage, Digest, Hasher, Source};

use super::base::Identity;
use super::error::{FetchError, chain};
use super::record::{self, ImageRecord};
use super::shelf::Shelf;
use super::verify::{self, disk};

/// What is read at once to hash a file.
const READ_LEN: usize = 1 << 20;

/// A file that is a good image.
pub(super) struct Found {
    pub(super) image: BaseImage,
    pub(super) identity: Identity,
    /// Where the record of it is up to date.
    pub(super) digest: Option<Digest>,
    file: File,
}

/// Opens the image at a path, if there is a file. Its bytes are not read, but for the structures.
pub(super) fn look(path: &Path, shelf: &Shelf) -> Result<Option<Found>, FetchError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(disk("opening", path)(error)),
    };
    let metadata = file.metadata().map_err(disk("reading", path))?;
    if !metadata.is_file() {
        return Err(disk("opening", path)(io::Error::other("it is no regular file")));
    }
    let identity = Identity::of(&metadata);
    let source = file.try_clone().map_err(disk("opening", path))?;
    let source = Source::from_file(source, path.display().to_string());
    let image = verify::open(source.map_err(|source| FetchError::Structure { source })?)?;
    let record: Option<ImageRecord> = record::read(&shelf.image_record());
    let record =
        record.filter(|record| record.stamp == identity.stamp && record.file.file_name() == path.file_name());
    Ok(Some(Found { image, identity, digest: record.and_then(|record| record.sha256.digest()), file }))
}

impl Found {
    /// The SHA-256 of the file: all of it is read.
    pub(super) fn hash(&self, path: &Path, mut progress: impl FnMut(u64)) -> Result<Digest, FetchError> {
        let len = self.identity.stamp.len;
        let mut hasher = Hasher::new();
        let mut buf = vec![0; READ_LEN];
        let mut offset = 0;
        while offset < len {
            match self.file.read_at(&mut buf, offset) {
                Ok(0) => return Err(FetchError::Unstable),
                Ok(read) => {
                    hasher.update(buf.get(..read).unwrap_or_default());
                    offset += read as u64;
                    progress(offset);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(disk("reading", path)(error)),
            }
        }
        let metadata = self.file.metadata().map_err(disk("reading", path))?;
        if offset == len && Identity::of(&metadata) == self.identity {
            Ok(hasher.finish())
        } else {
            Err(FetchError::Unstable)
        }
    }
}

/// Keeps the SHA-256 of a file for the next start. Without it, the file is read again then.
pub(super) fn remember(shelf: &Shelf, path: &Path, (digest, identity): (Digest, Identity), url: &str) {
    let stamp = identity.stamp;
    let record = ImageRecord { file: path.to_owned(), stamp, sha256: digest.into(), url: url.to_owned() };
    if let Err(error) = record::write(&shelf.image_record(), &record) {
        tracing::warn!(
            image = shelf.name(),
            error = chain(&error),
            "the SHA-256 of the image cannot be kept"
        );
    }
}
