//! Decodes zstd frames with libzstd.

use std::io::{self, BufRead, Read};

use zstd::stream::raw::{Decoder, Operation};

/// Decodes the first `limit` bytes of a frame, or all bytes if the frame is shorter. `window_log` is the maximum window
/// size of the frame, as a power of two.
pub(crate) fn decode_zstd_frame(input: &[u8], limit: usize, window_log: u32) -> io::Result<Vec<u8>> {
    // `bulk` decodes in one step, without a window buffer. It returns an error if the frame is incomplete, if other
    // bytes follow the frame, or if the frame decodes to more than `limit` bytes.
    if let Ok(bytes) = zstd::bulk::decompress(input, limit) {
        return Ok(bytes);
    }
    let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?.single_frame();
    decoder.window_log_max(window_log)?;
    let mut bytes = Vec::with_capacity(limit);
    decoder.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Decodes consecutive zstd frames, without gaps between them, as one stream.
pub(crate) struct ZstdFrames<R> {
    input: R,
    frame: Option<Decoder<'static>>,
}

impl<R: BufRead> ZstdFrames<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, frame: None }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !buf.is_empty() {
            let input = self.input.fill_buf()?;
            let frame = match &mut self.frame {
                Some(frame) => frame,
                None if matches!(input.first(), Some(0x28 | 0x50..=0x5F)) => {
                    self.frame.insert(Decoder::new()?)
                }
                None => return Ok(0),
            };
            let ended = input.is_empty();
            let status = frame.run_on_buffers(input, buf)?;
            self.input.consume(status.bytes_read);
            if status.remaining == 0 {
                self.frame = None;
            }
            if status.bytes_written > 0 {
                return Ok(status.bytes_written);
            }
            if ended && self.frame.is_some() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}
