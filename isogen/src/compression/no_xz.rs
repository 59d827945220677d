//! Replaces the module `xz` in a build without the feature `xz`: all functions return an error.

use std::io::{self, BufRead};

use super::Compression;

pub(crate) fn xz_decoder<R: BufRead>(_input: R, _memory: u64) -> io::Result<io::Empty> {
    Compression::Xz.unsupported()
}

pub(crate) fn lzma_decoder<R: BufRead>(_input: R, _memory: u64) -> io::Result<io::Empty> {
    Compression::Xz.unsupported()
}

pub(crate) fn pack_xz(_bytes: &[u8]) -> io::Result<Vec<u8>> {
    Compression::Xz.unsupported()
}
