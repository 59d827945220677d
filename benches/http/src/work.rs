//! Defines the work for which servers are measured.

use std::fmt;

use crate::servers::Transport;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// From the start of the server to its first response.
    Start,
    /// Whole images for this many concurrent clients.
    Stream {
        clients: usize,
    },
    /// Random ranges of this length.
    Ranges {
        len: u64,
        connections: usize,
    },
    /// Recorded reads of booting machines: this many concurrently, or all in turn if there is one.
    Replay {
        machines: usize,
    },
    SlowReaders {
        readers: usize,
    },
    /// The first bytes of images that were never requested before.
    NewImages {
        images: usize,
    },
    /// From the creation of an infra-env to the first byte of its image.
    PostToFirstByte {
        images: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) transport: Transport,
    pub(crate) task: Task,
}

impl Work {
    /// Returns `true` if only Kindling can do this work, because other servers have no infra-envs.
    pub(crate) fn is_own(self) -> bool {
        matches!(self.task, Task::NewImages { .. } | Task::PostToFirstByte { .. })
    }

    /// Returns `true` if a minimal server can do this work, which must need only the bytes of one file.
    pub(crate) fn is_bare(self) -> bool {
        let is_reading = matches!(self.task, Task::Stream { .. } | Task::Ranges { .. } | Task::Replay { .. });
        is_reading && self.transport == Transport::Plain
    }

    /// Returns `true` if every request is for one range.
    pub(crate) fn is_of_ranges(self) -> bool {
        matches!(self.task, Task::Ranges { .. } | Task::Replay { .. })
    }

    /// Returns the short name of the work, for `--only` and for tables that compare runs.
    pub(crate) fn key(self) -> String {
        let transport = match self.transport {
            Transport::Plain => "http",
            Transport::Tls => "tls",
        };
        format!("{transport}-{}", Key(self.task))
    }

    pub(crate) fn title(self) -> String {
        format!("{}, {}", self.task, self.transport.title())
    }
}

struct Key(Task);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Task::Start => f.write_str("start"),
            Task::Stream { clients } => write!(f, "stream-{clients}"),
            Task::Ranges { len, connections } => write!(f, "ranges-{}k-{connections}", len >> 10),
            Task::Replay { machines } => write!(f, "replay-{machines}"),
            Task::SlowReaders { readers } => write!(f, "slow-{readers}"),
            Task::NewImages { images } => write!(f, "new-images-{images}"),
            Task::PostToFirstByte { .. } => f.write_str("post-to-first-byte"),
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start to first response"),
            Self::Stream { clients: 1 } => f.write_str("whole image, 1 client"),
            Self::Stream { clients } => write!(f, "whole image, {clients} clients"),
            Self::Ranges { len, connections: 1 } => write!(f, "ranges of {} KiB, 1 connection", len >> 10),
            Self::Ranges { len, connections } => {
                write!(f, "ranges of {} KiB, {connections} connections", len >> 10)
            }
            Self::Replay { machines: 1 } => f.write_str("recorded boots, 1 machine"),
            Self::Replay { machines } => write!(f, "recorded boots, {machines} machines"),
            Self::SlowReaders { readers } => write!(f, "{readers} slow readers"),
            Self::NewImages { images } => write!(f, "{images} concurrent new images"),
            Self::PostToFirstByte { .. } => f.write_str("a new infra-env and its image"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Full,
    /// A small amount, to check that the bench works.
    Small,
}

impl Size {
    fn scale_down(self, full: usize) -> usize {
        if self == Self::Full { full } else { full / 10 }
    }
}

/// Returns all work over one transport.
fn all(transport: Transport, size: Size) -> Vec<Work> {
    let mut tasks = Vec::new();
    if transport == Transport::Plain {
        tasks.push(Task::Start);
    }
    let clients: &[usize] = if transport == Transport::Plain { &[1, 4, 16, 64] } else { &[1, 4] };
    tasks.extend(clients.iter().map(|&clients| Task::Stream { clients }));
    for connections in [1, 32] {
        tasks.extend([2, 16, 64, 512].map(|kib| Task::Ranges { len: kib << 10, connections }));
    }
    if transport == Transport::Plain {
        tasks.extend([1, 32].map(|machines| Task::Replay { machines }));
    }
    tasks.push(Task::SlowReaders { readers: size.scale_down(1000) });
    if transport == Transport::Plain {
        tasks.extend([
            Task::NewImages { images: size.scale_down(200) },
            Task::PostToFirstByte { images: size.scale_down(50) },
        ]);
    }
    tasks.into_iter().map(|task| Work { transport, task }).collect()
}

/// Selects the work with exactly this key, otherwise the work whose keys contain it.
pub(crate) fn chosen(only: Option<&str>, size: Size) -> Vec<Work> {
    let mut works: Vec<Work> =
        [Transport::Plain, Transport::Tls].into_iter().flat_map(|transport| all(transport, size)).collect();
    if let Some(only) = only {
        let is_key = works.iter().any(|work| work.key() == only);
        works.retain(|work| if is_key { work.key() == only } else { work.key().contains(only) });
    }
    works
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_titles_are_all_different() {
        let works = chosen(None, Size::Full);
        for name in [|work: &Work| work.key(), |work: &Work| work.title()] {
            let mut names: Vec<String> = works.iter().map(name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), works.len());
        }
    }

    #[test]
    fn key_is_built_from_its_parts() {
        let work = Work { transport: Transport::Tls, task: Task::Ranges { len: 16 << 10, connections: 32 } };
        assert_eq!(work.key(), "tls-ranges-16k-32");
        assert_eq!(work.title(), "ranges of 16 KiB, 32 connections, TLS");
    }

    #[test]
    fn work_is_selected_by_key_or_part_of_it() {
        let keys = |only| chosen(Some(only), Size::Full).into_iter().map(Work::key).collect::<Vec<_>>();
        assert_eq!(keys("http-stream-1"), ["http-stream-1"]);
        assert_eq!(keys("stream-1"), ["http-stream-1", "http-stream-16", "tls-stream-1"]);
        assert!(keys("nothing").is_empty());
    }
}
