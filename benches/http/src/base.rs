//! The base image of all measurements, and the check that every server sends the same bytes.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use fixtures::{Architecture, Era, Recipe};
use sha2::{Digest, Sha256};

use crate::client::{Connection, Sink, Target, write_get};
use crate::exchange::ExpectedResponse;
use crate::head::ContentRange;
use crate::interrupt;
use crate::random::Random;

const BLOCK: usize = 1 << 20;
/// Number of random ranges to compare, in addition to the whole file.
const PROBES: usize = 64;
const PROBE_LEN: u64 = 100_003;

/// Writes a base image with a root file system of `rootfs_len` bytes.
///
/// Noise fills the holes of the fixture, because a downloaded image has no holes, and because repeated bytes would hide
/// wrong ranges.
///
/// # Errors
///
/// Returns an error if the disk is full.
pub(crate) fn write(path: &Path, rootfs_len: u64) -> Result<()> {
    write_recipe(
        path,
        &Recipe::new(Architecture::X86_64, Era::E2023_07).with_program().rootfs_len(rootfs_len),
    )
}

/// Writes a base image like `write`, but from any recipe.
///
/// # Errors
///
/// Returns an error if the disk is full.
pub(crate) fn write_recipe(path: &Path, recipe: &Recipe) -> Result<()> {
    let sparse = path.with_extension("sparse");
    recipe.write_to(&sparse).with_context(|| format!("writing {}", sparse.display()))?;
    let about = || format!("writing {}", path.display());
    let mut input = BufReader::with_capacity(BLOCK, File::open(&sparse)?);
    let mut output = File::create(path).with_context(about)?;
    let mut random = Random::new(1);
    let mut block = vec![0; BLOCK];
    loop {
        interrupt::check()?;
        let len = read_block(&mut input, &mut block)?;
        let block = block.get_mut(..len).unwrap_or_default();
        // Areas that must stay empty are shorter than a block.
        if len == BLOCK && block.iter().all(|byte| *byte == 0) {
            for word in block.chunks_exact_mut(8) {
                word.copy_from_slice(&random.next().to_le_bytes());
            }
        }
        output.write_all(block).with_context(about)?;
        if len < BLOCK {
            break;
        }
    }
    std::fs::remove_file(&sparse)?;
    Ok(())
}

fn read_block(input: &mut impl Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = block.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match input.read(rest)? {
            0 => break,
            len => filled += len,
        }
    }
    Ok(filled)
}

/// Downloads a whole file, to `copy` if given, and returns its SHA-256 digest.
///
/// # Errors
///
/// Returns an error if the download fails or has another length.
pub(crate) fn download(target: &Target, total: u64, mut copy: Option<&mut File>) -> Result<String> {
    let mut connection = Connection::open(target)?;
    let mut request = Vec::new();
    write_get(&mut request, target, None);
    let mut digest = Sha256::new();
    let mut keep = |bytes: &[u8]| {
        digest.update(bytes);
        if let Some(file) = &mut copy {
            file.write_all(bytes).context("writing the image")?;
        }
        Ok(())
    };
    connection.ask(&request, ExpectedResponse::Whole(total), &mut Sink::Give(&mut keep))?;
    Ok(hex(&digest.finalize()))
}

/// Compares ranges from a server with the file.
///
/// # Errors
///
/// Returns an error if a download fails or the bytes differ.
pub(crate) fn compare_ranges(target: &Target, path: &Path) -> Result<()> {
    let file = File::open(path)?;
    let total = file.metadata()?.len();
    let mut connection = Connection::open(target)?;
    let mut random = Random::new(2);
    for _ in 0..PROBES {
        let len = PROBE_LEN.min(total);
        let first = random.below(total - len + 1);
        let last = first + len - 1;
        let mut request = Vec::new();
        write_get(&mut request, target, Some((first, last)));
        let received =
            connection.fetch(&request, ExpectedResponse::Part(ContentRange { first, last, total }))?;
        let mut expected = vec![0; usize::try_from(len)?];
        file.read_exact_at(&mut expected, first)?;
        ensure!(received == expected, "wrong bytes at {first}-{last} of {}", target.path);
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_has_noise_instead_of_the_holes_of_the_fixture() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("base.iso");
        write(&path, 4 << 20).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.len() > 4 << 20);
        assert_eq!(&bytes[32769..32774], b"CD001");
        let empty = bytes.chunks_exact(BLOCK).filter(|block| block.iter().all(|byte| *byte == 0)).count();
        assert_eq!(empty, 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
