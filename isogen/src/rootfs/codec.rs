//! Decodes compressed blocks of squashfs and EROFS.
//!
//! Each decoder returns at most as many bytes as the caller asks for, even if the block states a greater length, and
//! uses a bounded amount of memory.

use std::fmt;
use std::io::{self, Read};

use super::lz4;
use crate::compression::{self, Compression};

/// Memory limit of an LZMA decoder: twice the largest dictionary that either file system allows, with a margin.
const LZMA_MEMORY: u64 = 24 << 20;
/// Maximum window size of a zstd frame, as a power of two. Both file systems use at most 1 MiB.
const ZSTD_WINDOW_LOG: u32 = 23;

/// A compression format of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    /// Deflate in a zlib stream.
    Zlib,
    /// A deflate stream without a zlib header.
    Deflate,
    /// LZ4 blocks, without frames.
    Lz4,
    /// An LZMA stream without a header and an end marker. The first byte is the inverted properties byte.
    MicroLzma,
    /// An xz stream.
    Xz,
    /// A zstd frame.
    Zstd,
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zlib => "gzip",
            Self::Deflate => "deflate",
            Self::Lz4 => "lz4",
            Self::MicroLzma => "MicroLZMA",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        })
    }
}

impl Codec {
    /// Returns the compression that this build would need for the codec, or `None` if the build supports the codec.
    pub(super) fn missing_compression(self) -> Option<Compression> {
        let compression = match self {
            Self::Zlib | Self::Deflate | Self::Lz4 => return None,
            Self::MicroLzma | Self::Xz => Compression::Xz,
            Self::Zstd => Compression::Zstd,
        };
        (!compression.is_supported()).then_some(compression)
    }

    /// Decodes the first `limit` bytes, or all bytes if the decoded block is shorter.
    pub(super) fn decode(self, input: &[u8], limit: usize) -> io::Result<Vec<u8>> {
        match self {
            Self::Zlib => read_limited(flate2::bufread::ZlibDecoder::new(input), limit),
            Self::Deflate => read_limited(flate2::bufread::DeflateDecoder::new(input), limit),
            Self::Lz4 => lz4::decode(input, limit),
            Self::MicroLzma => decode_micro_lzma(input, limit),
            Self::Xz => read_limited(compression::xz_decoder(input, LZMA_MEMORY)?, limit),
            Self::Zstd => compression::decode_zstd_frame(input, limit, ZSTD_WINDOW_LOG),
        }
    }
}

fn read_limited(decoder: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(limit);
    decoder.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Decodes `MicroLZMA`. It prepends the `.lzma` header that the format omits: properties, dictionary size, length. The
/// dictionary need not be larger than the output. The length is "unknown", so the decoder stops at `limit`.
fn decode_micro_lzma(input: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    let (first, rest) = input.split_first().ok_or(io::ErrorKind::UnexpectedEof)?;
    // The field is 32 bits wide.
    let dictionary = u32::try_from(limit).unwrap_or(u32::MAX).max(4096);
    let mut header = vec![!first];
    header.extend(dictionary.to_le_bytes());
    header.extend(u64::MAX.to_le_bytes());
    // The first byte of every LZMA stream is zero, so MicroLZMA can store the properties there instead.
    header.push(0);
    let input = io::BufReader::new(header.chain(rest));
    read_limited(compression::lzma_decoder(input, LZMA_MEMORY)?, limit)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn sample() -> Vec<u8> {
        (0..20_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect()
    }

    fn encoded(codec: Codec, bytes: &[u8]) -> Vec<u8> {
        match codec {
            Codec::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Codec::Deflate => {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Codec::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Codec::MicroLzma => {
                let options = liblzma::stream::LzmaOptions::new_preset(1).unwrap();
                let stream = liblzma::stream::Stream::new_lzma_encoder(&options).unwrap();
                let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
                encoder.write_all(bytes).unwrap();
                let lzma = encoder.finish().unwrap();
                // Properties, dictionary size (4 bytes), length (8 bytes), then the zero byte that begins the stream.
                [&[!lzma[0]], &lzma[14..]].concat()
            }
            Codec::Zstd => zstd::stream::encode_all(bytes, 3).unwrap(),
            Codec::Lz4 => {
                // One run of literals.
                let mut block = vec![0xF0];
                let mut rest = bytes.len() - 15;
                while rest >= 255 {
                    block.push(255);
                    rest -= 255;
                }
                block.push(rest as u8);
                [&block, bytes].concat()
            }
        }
    }

    const ALL: [Codec; 6] =
        [Codec::Zlib, Codec::Deflate, Codec::Lz4, Codec::MicroLzma, Codec::Xz, Codec::Zstd];

    #[test]
    #[cfg_attr(not(all(feature = "xz", feature = "zstd")), ignore = "needs xz and zstd")]
    fn every_codec_decodes_up_to_the_limit() {
        let sample = sample();
        for codec in ALL {
            let block = encoded(codec, &sample);
            assert!(codec.decode(&block, sample.len()).unwrap() == sample, "{codec}");
            assert!(codec.decode(&block, 1000).unwrap() == sample[..1000], "{codec}");
            // Bytes after the block are ignored.
            let padded = [&block[..], &[0; 100]].concat();
            assert!(codec.decode(&padded, sample.len()).unwrap() == sample, "{codec}");
        }
    }

    #[test]
    fn truncated_block_does_not_decode_fully() {
        let sample = sample();
        for codec in ALL {
            let block = encoded(codec, &sample);
            for len in [0, 1, block.len() / 2] {
                let decoded = codec.decode(&block[..len], sample.len());
                assert!(decoded.is_err() || decoded.unwrap().len() < sample.len(), "{codec} {len}");
            }
        }
    }
}
