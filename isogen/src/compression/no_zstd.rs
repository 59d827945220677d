//! Replaces the module `zstd` in a build without the feature `zstd`: all functions return an error.

use std::io::{self, BufRead, Read};
use std::marker::PhantomData;

use super::Compression;

pub(crate) struct ZstdFrames<R>(PhantomData<R>);

impl<R: BufRead> ZstdFrames<R> {
    pub(crate) fn new(_input: R) -> Self {
        Self(PhantomData)
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, _buf: &mut [u8]) -> io::Result<usize> {
        Compression::Zstd.unsupported()
    }
}

pub(crate) fn decode_zstd_frame(_input: &[u8], _limit: usize, _window_log: u32) -> io::Result<Vec<u8>> {
    Compression::Zstd.unsupported()
}
