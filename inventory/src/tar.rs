//! Tar archives of small files, with the same bytes on every machine.
//!
//! The crate `tar` writes the headers. Its own functions refuse names with a leading slash, which the archives of the
//! Assisted Installer contain. This module therefore fills the two name fields itself.

use tar::Header;

/// Size of a block, in bytes.
const BLOCK: usize = 512;

/// The error for a name that does not fit into the two name fields of a tar header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("file name {name:?} is too long for a tar archive: {} bytes do not fit into a directory of 155 bytes and a name of 100 bytes", name.len())]
pub struct LongName {
    /// The name that does not fit.
    pub name: String,
}

/// Creates an archive of files that only root may read. Names may begin with a slash.
///
/// # Errors
///
/// Returns an error if a name is too long.
pub(crate) fn archive<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Vec<u8>, LongName> {
    let mut archive = Vec::new();
    for (name, contents) in files {
        archive.extend_from_slice(&header(name, contents.len() as u64, 0)?);
        archive.extend_from_slice(contents);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    if !archive.is_empty() {
        archive.extend_from_slice(&END);
    }
    Ok(archive)
}

/// The end-of-archive marker: two blocks of zeros.
pub(crate) const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// Returns the zeros between the contents of a file and the next header.
pub(crate) fn padding(len: u64) -> &'static [u8] {
    const BLOCK_LEN: u64 = 512;
    let len = usize::try_from(len.wrapping_neg() % BLOCK_LEN);
    // The padding is always shorter than a block.
    len.ok().and_then(|len| END.get(..len)).unwrap_or_default()
}

/// Returns the header of a file. The time is in seconds since 1970.
///
/// # Errors
///
/// Returns an error if the name is too long.
pub(crate) fn header(name: &str, len: u64, written_at: u64) -> Result<[u8; BLOCK], LongName> {
    let long = || LongName { name: name.to_owned() };
    let mut header = Header::new_ustar();
    let fields = header.as_ustar_mut().ok_or_else(long)?;
    let (prefix, rest) = split(name, fields.prefix.len(), fields.name.len()).ok_or_else(long)?;
    put(&mut fields.prefix, prefix).and(put(&mut fields.name, rest)).ok_or_else(long)?;
    put(&mut fields.uname, "root").and(put(&mut fields.gname, "root")).ok_or_else(long)?;
    fields.set_device_major(0);
    fields.set_device_minor(0);
    header.set_mode(0o600);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(len);
    header.set_mtime(written_at);
    header.set_cksum();
    Ok(*header.as_bytes())
}

/// Splits a name into directories and the rest, each short enough for its field. The directories are empty if the whole
/// name fits.
fn split(name: &str, prefix: usize, rest: usize) -> Option<(&str, &str)> {
    if name.len() <= rest {
        return Some(("", name));
    }
    let splits = name.match_indices('/').filter_map(|(at, _)| Some((name.get(..at)?, name.get(at + 1..)?)));
    // The directories must not be empty: a reader would drop the leading slash.
    splits.into_iter().find(|(directories, name)| {
        !directories.is_empty() && directories.len() <= prefix && name.len() <= rest
    })
}

fn put(field: &mut [u8], text: &str) -> Option<()> {
    field.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn read(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
            let mut contents = Vec::new();
            entry.read_to_end(&mut contents).unwrap();
            (name, contents)
        });
        entries.collect()
    }

    #[test]
    fn names_and_contents_round_trip() {
        let longest = format!("/{}/{}", "d".repeat(154), "n".repeat(100));
        for name in ["/etc/a", "a", &"n".repeat(100), &longest] {
            for contents in [b"".as_slice(), &[1; 511], &[2; 512], &[3; 513]] {
                let files = [(name, contents), ("last", b"x".as_slice())];
                let expected = files.map(|(name, contents)| (name.to_owned(), contents.to_vec()));
                assert_eq!(read(&archive(files).unwrap()), expected);
            }
        }
        assert!(archive([]).unwrap().is_empty());
    }

    #[test]
    fn rejects_names_that_do_not_fit() {
        for name in [
            "n".repeat(101),
            format!("/{}", "n".repeat(100)),
            format!("/{}/n", "d".repeat(155)),
            format!("d/{}", "n".repeat(101)),
        ] {
            let error = archive([(name.as_str(), b"".as_slice())]).unwrap_err();
            assert!(error.to_string().starts_with(&format!("file name {name:?} is too long")), "{error}");
        }
    }

    #[test]
    fn header_is_padded_and_holds_any_length() {
        for len in [0, 1, 511, 512, 513, 1 << 40] {
            let bytes = header("a", len, 7).unwrap();
            let header = Header::from_byte_slice(&bytes);
            assert_eq!(
                (header.entry_size().unwrap(), header.mtime().unwrap(), header.mode().unwrap()),
                (len, 7, 0o600)
            );
            assert_eq!((len + padding(len).len() as u64) % 512, 0);
        }
    }
}
