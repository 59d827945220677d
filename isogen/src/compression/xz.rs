//! xz streams and LZMA streams, with liblzma.

use std::io::{self, BufRead, Read, Write};

use liblzma::stream::{Check, Filters, LzmaOptions, Stream};

/// Returns a decoder of an xz stream, which takes at most `memory` bytes.
pub(crate) fn xz_decoder<R: BufRead>(input: R, memory: u64) -> io::Result<impl Read> {
    Ok(liblzma::bufread::XzDecoder::new_stream(input, Stream::new_stream_decoder(memory, 0)?))
}

/// Returns a decoder of an LZMA stream with the header of `.lzma` files, which takes at most `memory` bytes.
pub(crate) fn lzma_decoder<R: BufRead>(input: R, memory: u64) -> io::Result<impl Read> {
    Ok(liblzma::bufread::XzDecoder::new_stream(input, Stream::new_lzma_decoder(memory)?))
}

/// Packs bytes as an xz stream that the kernel can decode.
pub(crate) fn pack_xz(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), xz_stream(bytes.len())?);
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Smallest dictionary that the xz format allows.
const MIN_DICTIONARY: u32 = 4096;
/// The dictionary of preset 9. A larger one does not make archives smaller.
const MAX_DICTIONARY: u32 = 64 << 20;

/// Returns an encoder of preset 9 whose dictionary is no larger than the archive needs. The full 64 MiB take tens of
/// milliseconds to set up, and the initrd that unpacks the archive would need as much memory again.
fn xz_stream(len: usize) -> io::Result<Stream> {
    // The largest dictionary is for all archives that need more than 64 MiB.
    let fitting = u32::try_from(len).ok().and_then(u32::checked_next_power_of_two).unwrap_or(MAX_DICTIONARY);
    let mut options = LzmaOptions::new_preset(9)?;
    options.dict_size(fitting.clamp(MIN_DICTIONARY, MAX_DICTIONARY));
    Ok(Stream::new_stream_encoder(Filters::new().lzma2(&options), Check::Crc32)?)
}
