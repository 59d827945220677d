//! What machines read while they booted (`benches/traces`), laid over an image of another size.
//!
//! A recorded image is small. A read that begins elsewhere than where the last one ended is moved in proportion to the sizes,
//! as the files of a larger image are farther apart; one that goes on from there, or overlaps it, keeps its distance, as
//! firmware and loaders read large files in the same steps as small ones.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::client::Bounds;

/// Reads whose distance is below this belong to the same file.
const NEAR: u64 = 1 << 20;
/// Blocks of a CD: where files begin.
const BLOCK: u64 = 2048;
/// The longest trace that is taken.
const MAX_READS: usize = 100_000;

/// One answer of a server to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) file: String,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// Reads the lines of a trace: milliseconds, file, offset, length.
///
/// # Errors
///
/// When a line has another form.
pub(crate) fn parse(text: &str) -> Result<Vec<Read>> {
    let mut reads = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let read = read(line).with_context(|| format!("line {}: {line:?}", number + 1))?;
        ensure!(reads.len() < MAX_READS, "line {}: there are more than {MAX_READS} reads", number + 1);
        reads.push(read);
    }
    Ok(reads)
}

fn read(line: &str) -> Result<Read> {
    let words: Vec<&str> = line.split(' ').collect();
    let [milliseconds, file, offset, len] = words.as_slice() else { bail!("a line has four words") };
    ensure!(!file.is_empty(), "a file without name");
    let _: u64 = milliseconds.parse().context("milliseconds")?;
    let read = Read {
        file: (*file).to_owned(),
        offset: offset.parse().context("offset")?,
        len: len.parse().context("length")?,
    };
    ensure!(read.len > 0, "a read of nothing");
    ensure!(read.offset.checked_add(read.len).is_some(), "the read ends beyond all numbers");
    Ok(read)
}

/// Lays the reads of a trace over a file of `total` bytes. All files of a trace are laid over the same one, each by its own
/// size, as far as it was read.
pub(crate) fn laid_over(reads: &[Read], total: u64) -> Vec<Bounds> {
    let size = |file: &str| {
        reads.iter().filter(|read| read.file == file).map(|read| read.offset + read.len).max().unwrap_or(1)
    };
    let mut bounds = Vec::with_capacity(reads.len());
    // The last read as it was, and where it went.
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

/// Reads all traces of a folder, in the order of their names.
///
/// # Errors
///
/// When there are none, or one of them is none.
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
    ensure!(!traces.is_empty(), "there are no traces in {}", folder.display());
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
    fn lines_are_read_and_comments_passed_over() {
        let text = "# milliseconds file offset length\n97 full.iso 34816 264192\n98 rootfs 0 1\n\n";
        let read = |file: &str, offset, len| Read { file: file.to_owned(), offset, len };
        assert_eq!(parse(text).unwrap(), [read("full.iso", 34816, 264192), read("rootfs", 0, 1)]);
    }

    #[test]
    fn lines_of_another_form_are_errors() {
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
    fn runs_keep_their_steps_and_jumps_are_scaled() {
        let trace =
            reads(&[(0, 4096), (4096, 4096), (6 << 20, 2048), ((6 << 20) + 1024, 2048), (10 << 20, 6 << 20)]);
        let laid = laid_over(&trace, 160 << 20);
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
        let laid = laid_over(&reads(&[(0, 1 << 20), (7 << 20, 1 << 20), (1, 9 << 20)]), 2 << 20);
        // The second begins at 7 MiB of 9 MiB + 1, and would end behind the end.
        let second = (7 << 20) * (2 << 20) / ((9 << 20) + 1) / BLOCK * BLOCK;
        assert!(second + (1 << 20) > 2 << 20);
        assert_eq!(laid, [(0, (1 << 20) - 1), (1 << 20, (2 << 20) - 1), (0, (2 << 20) - 1)]);
    }

    #[test]
    fn the_recorded_traces_are_traces() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
        let traces = open_all(&folder).unwrap();
        assert!(traces.len() >= 8, "{}", traces.len());
        for trace in traces {
            for (first, last) in laid_over(&trace, 1 << 30) {
                assert!(first <= last && last < 1 << 30);
            }
        }
    }

    proptest! {
        #[test]
        fn any_trace_lies_within_any_file(
            of in proptest::collection::vec((0..u64::MAX / 2, 1..u64::MAX / 2), 1..20),
            total in 1..u64::MAX / 2,
        ) {
            for ((first, last), read) in laid_over(&reads(&of), total).into_iter().zip(&of) {
                prop_assert!(first <= last && last < total);
                prop_assert_eq!(last - first + 1, read.1.min(total));
            }
        }
    }
}
