//! Recorded reads of booting machines (`benches/traces`), mapped to an image of another size.
//!
//! A recorded image is small. A read that does not continue the previous read is moved in proportion to the sizes,
//! because files of a larger image are farther apart. A read that continues or overlaps the previous read keeps its
//! distance, because firmware and loaders read large files in the same steps as small files.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::client::Bounds;

/// Maximum distance between two reads of the same file.
const NEAR: u64 = 1 << 20;
/// Length of a CD block. Files start at block boundaries.
const BLOCK: u64 = 2048;
/// Maximum number of reads in a trace.
const MAX_READS: usize = 100_000;

/// One response of a server to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) file: String,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// Parses the lines of a trace: milliseconds, file, offset, length.
///
/// # Errors
///
/// Returns an error if a line is malformed.
pub(crate) fn parse(text: &str) -> Result<Vec<Read>> {
    let mut reads = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let read = read(line).with_context(|| format!("line {}: {line:?}", number + 1))?;
        ensure!(reads.len() < MAX_READS, "line {}: more than {MAX_READS} reads", number + 1);
        reads.push(read);
    }
    Ok(reads)
}

fn read(line: &str) -> Result<Read> {
    let words: Vec<&str> = line.split(' ').collect();
    let [milliseconds, file, offset, len] = words.as_slice() else { bail!("a line must have four fields") };
    ensure!(!file.is_empty(), "the file has no name");
    let _: u64 = milliseconds.parse().context("milliseconds")?;
    let read = Read {
        file: (*file).to_owned(),
        offset: offset.parse().context("offset")?,
        len: len.parse().context("length")?,
    };
    ensure!(read.len > 0, "the read is empty");
    ensure!(read.offset.checked_add(read.len).is_some(), "the end of the read overflows");
    Ok(read)
}

/// Maps the reads of a trace to a file of `total` bytes. Every recorded file is mapped to this one file, scaled by the
/// length of the recorded part.
pub(crate) fn mapped_to(reads: &[Read], total: u64) -> Vec<Bounds> {
    let size = |file: &str| {
        reads.iter().filter(|read| read.file == file).map(|read| read.offset + read.len).max().unwrap_or(1)
    };
    let mut bounds = Vec::with_capacity(reads.len());
    // The previous read as recorded, and its mapped position.
    let mut last: Option<(&Read, u64)> = None;
    for read in reads {
        let moved = match last {
            Some((before, moved)) if is_near(before, read) => {
                (moved + read.offset).saturating_sub(before.offset)
            }
            _ => scaled(read.offset, total, size(&read.file)),
        };
        let len = read.len.clamp(1, total.max(1));
        let first = moved.min(total.saturating_sub(len));
        bounds.push((first, first + len - 1));
        last = Some((read, first));
    }
    bounds
}

fn is_near(before: &Read, read: &Read) -> bool {
    before.file == read.file && read.offset.abs_diff(before.offset + before.len) < NEAR
}

fn scaled(offset: u64, total: u64, size: u64) -> u64 {
    let scaled = u128::from(offset) * u128::from(total) / u128::from(size.max(1));
    u64::try_from(scaled).unwrap_or(total) / BLOCK * BLOCK
}

/// Reads all traces of a folder in the order of their names.
///
/// # Errors
///
/// Returns an error if there are no traces or one is invalid.
pub(crate) fn open_all(folder: &Path) -> Result<Vec<Vec<Read>>> {
    let about = || format!("reading the traces in {}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(about)? {
        let path = entry.with_context(about)?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            paths.push(path);
        }
    }
    paths.sort();
    let open = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path)?;
        parse(&text).with_context(|| path.display().to_string())
    };
    let mut traces: Vec<Vec<Read>> = paths.iter().map(open).collect::<Result<_>>()?;
    traces.retain(|reads| !reads.is_empty());
    ensure!(!traces.is_empty(), "no traces in {}", folder.display());
    Ok(traces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reads(of: &[(u64, u64)]) -> Vec<Read> {
        of.iter().map(|&(offset, len)| Read { file: "full.iso".to_owned(), offset, len }).collect()
    }

    #[test]
    fn comments_are_skipped() {
        let text = "# milliseconds file offset length\n97 full.iso 34816 264192\n98 rootfs 0 1\n\n";
        let read = |file: &str, offset, len| Read { file: file.to_owned(), offset, len };
        assert_eq!(parse(text).unwrap(), [read("full.iso", 34816, 264192), read("rootfs", 0, 1)]);
    }

    #[test]
    fn rejects_malformed_lines() {
        for line in [
            "1 a 2",
            "1 a 2 3 4",
            "x a 2 3",
            "1 a -2 3",
            "1 a 2 0",
            "1 a 18446744073709551615 1",
            "1  2 3",
            "1 a 2 99999999999999999999",
        ] {
            let error = parse(&format!("# first\n{line}\n")).unwrap_err();
            assert!(error.to_string().starts_with("line 2: "), "{line}: {error}");
        }
    }

    #[test]
    fn sequential_reads_keep_their_steps_and_seeks_are_scaled() {
        let trace =
            reads(&[(0, 4096), (4096, 4096), (6 << 20, 2048), ((6 << 20) + 1024, 2048), (10 << 20, 6 << 20)]);
        let laid = mapped_to(&trace, 160 << 20);
        assert_eq!(
            laid,
            [
                (0, 4095),
                (4096, 8191),
                (60 << 20, (60 << 20) + 2047),
                ((60 << 20) + 1024, (60 << 20) + 3071),
                (100 << 20, (106 << 20) - 1),
            ]
        );
    }

    #[test]
    fn reads_stay_within_a_smaller_file() {
        let laid = mapped_to(&reads(&[(0, 1 << 20), (7 << 20, 1 << 20), (1, 9 << 20)]), 2 << 20);
        // The second read starts at 7 MiB of 9 MiB + 1 and would pass the end.
        let second = (7 << 20) * (2 << 20) / ((9 << 20) + 1) / BLOCK * BLOCK;
        assert!(second + (1 << 20) > 2 << 20);
        assert_eq!(laid, [(0, (1 << 20) - 1), (1 << 20, (2 << 20) - 1), (0, (2 << 20) - 1)]);
    }

    #[test]
    fn recorded_traces_are_valid() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
        let traces = open_all(&folder).unwrap();
        assert!(traces.len() >= 8, "{}", traces.len());
        for trace in traces {
            for (first, last) in mapped_to(&trace, 1 << 30) {
                assert!(first <= last && last < 1 << 30);
            }
        }
    }

    proptest! {
        #[test]
        fn any_trace_fits_any_file(
            of in proptest::collection::vec((0..u64::MAX / 2, 1..u64::MAX / 2), 1..20),
            total in 1..u64::MAX / 2,
        ) {
            for ((first, last), read) in mapped_to(&reads(&of), total).into_iter().zip(&of) {
                prop_assert!(first <= last && last < total);
                prop_assert_eq!(last - first + 1, read.1.min(total));
            }
        }
    }
}
