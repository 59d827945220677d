//! Encodes and decodes xz streams and LZMA streams with liblzma.

use std::io::{self, BufRead, Read, Write};

use liblzma::stream::{Check, Filters, LzmaOptions, Stream};

/// Returns a decoder of an xz stream that uses at most `memory` bytes.
pub(crate) fn xz_decoder<R: BufRead>(input: R, memory: u64) -> io::Result<impl Read> {
    Ok(liblzma::bufread::XzDecoder::new_stream(input, Stream::new_stream_decoder(memory, 0)?))
}

/// Returns a decoder of an LZMA stream with the `.lzma` header. The decoder uses at most `memory` bytes.
pub(crate) fn lzma_decoder<R: BufRead>(input: R, memory: u64) -> io::Result<impl Read> {
    Ok(liblzma::bufread::XzDecoder::new_stream(input, Stream::new_lzma_decoder(memory)?))
}

/// Packs bytes as an xz stream that the kernel can decode.
pub(crate) fn pack_xz(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), xz_stream(bytes.len())?);
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Minimum dictionary size of the xz format.
const MIN_DICTIONARY: u32 = 4096;
/// Dictionary size of preset 9. A larger dictionary does not make archives smaller.
const MAX_DICTIONARY: u32 = 64 << 20;

/// Returns an encoder with preset 9 whose dictionary is not larger than the archive needs. The setup of a full 64 MiB
/// dictionary takes tens of milliseconds, and the system that unpacks the archive would need another 64 MiB.
fn xz_stream(len: usize) -> io::Result<Stream> {
    // Archives that would need more than 64 MiB use the maximum dictionary size.
    let fitting = u32::try_from(len).ok().and_then(u32::checked_next_power_of_two).unwrap_or(MAX_DICTIONARY);
    let mut options = LzmaOptions::new_preset(9)?;
    options.dict_size(fitting.clamp(MIN_DICTIONARY, MAX_DICTIONARY));
    Ok(Stream::new_stream_encoder(Filters::new().lzma2(&options), Check::Crc32)?)
}
