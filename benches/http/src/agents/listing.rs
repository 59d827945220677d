//! Long lists of the API: the time of their first byte, their number of items, and what they cost the server.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::server::BenchServer;
use crate::client::{Sink, write_get};
use crate::exchange::ExpectedResponse;
use crate::usage::CpuTime;

#[derive(Debug)]
pub(crate) struct MeasuredList {
    /// Time from the request to the first byte of the body.
    pub(crate) first_byte: Duration,
    /// CPU time of the server for the whole list.
    pub(crate) cpu: Duration,
    /// Number of items of the array.
    pub(crate) items: u64,
    /// Length of the body in bytes.
    pub(crate) len: u64,
}

/// Requests a list, and passes its bytes to `sink`.
///
/// # Errors
///
/// Returns an error if the response is not a whole JSON array of objects, or if `sink` returns one.
pub(crate) fn read(
    server: &BenchServer,
    path: &str,
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<MeasuredList> {
    let mut connection = server.connect()?;
    let mut request = Vec::new();
    write_get(&mut request, &server.target().at(path), None);
    let mut items = ItemCounter::default();
    let mut first_byte = None;
    let before = CpuTime::read(server.pid())?;
    let start = Instant::now();
    let mut take = |bytes: &[u8]| {
        first_byte.get_or_insert_with(|| start.elapsed());
        items.feed(bytes);
        sink(bytes)
    };
    let answer = connection
        .ask(&request, ExpectedResponse::Status(200), &mut Sink::Give(&mut take))
        .with_context(|| path.to_owned())?;
    let cpu = CpuTime::read(server.pid())?.since(&before);
    ensure!(items.is_whole(), "{path}: not a whole JSON array");
    let first_byte = first_byte.with_context(|| format!("{path}: an empty body"))?;
    Ok(MeasuredList { first_byte, cpu, items: items.count, len: answer.len() })
}

/// A counter of the objects in a JSON array. It does not store them, because a list of 10,000 hosts may be 500 MB long.
#[derive(Debug, Default)]
struct ItemCounter {
    /// Number of open arrays and objects.
    depth: u64,
    is_in_text: bool,
    is_escaped: bool,
    count: u64,
    has_ended: bool,
}

impl ItemCounter {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.is_in_text {
                let ends = *byte == b'"' && !self.is_escaped;
                self.is_escaped = *byte == b'\\' && !self.is_escaped;
                self.is_in_text = !ends;
                continue;
            }
            match byte {
                b'"' => self.is_in_text = true,
                b'{' | b'[' => {
                    self.count += u64::from(*byte == b'{' && self.depth == 1);
                    self.depth += 1;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.has_ended = self.depth == 0;
                }
                _ => {}
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.has_ended && self.depth == 0 && !self.is_in_text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str, size: usize) -> Option<u64> {
        let mut items = ItemCounter::default();
        text.as_bytes().chunks(size).for_each(|bytes| items.feed(bytes));
        items.is_whole().then_some(items.count)
    }

    #[test]
    fn items_are_counted_in_any_fragmentation() {
        let text = r#"[{"a": "}{[]\\", "b": "\"{"}, {"c": [{}, {"d": {}}]}, {}]"#;
        assert_eq!(serde_json::from_str::<Vec<serde_json::Value>>(text).unwrap().len(), 3);
        for size in 1..=text.len() {
            assert_eq!(count(text, size), Some(3), "pieces of {size}");
        }
        assert_eq!(count("[]\n", 1), Some(0));
    }

    #[test]
    fn truncated_list_is_incomplete() {
        let text = r#"[{"a": "]"}, {"b": []}]"#;
        for len in 0..text.len() {
            assert_eq!(text.get(..len).and_then(|text| count(text, 100)), None, "{len}");
        }
    }
}
