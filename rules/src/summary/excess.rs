//! The parts of replies that exceed a limit of a summary, and are therefore truncated.

use std::collections::BTreeMap;
use std::fmt;

use assisted::step::StepType;
use serde::{Deserialize, Serialize};

use super::memory::{HeapLen, no_heap};

/// A part of a reply that exceeds its limit. The summary contains only its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Excess {
    /// The step that the agent replied to.
    pub step: StepType,
    /// The kind of list or text that was too long.
    pub part: ExcessPart,
    /// Number of items in the reply; for texts, the length of the longest one in bytes.
    pub found: usize,
    /// Number of items in the summary; for texts, the length in bytes.
    pub kept: usize,
}
no_heap!(Excess);

/// A kind of list or text that has a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExcessPart {
    /// Disks in an inventory report.
    Disks,
    /// Reasons of the agent why a disk is not eligible.
    Reasons,
    /// Network interfaces in an inventory report.
    Nics,
    /// Addresses of a network interface, of a peer, or of a domain name.
    Addresses,
    /// Routes in an inventory report.
    Routes,
    /// Graphics cards in an inventory report.
    Gpus,
    /// Hosts in a connectivity report.
    Peers,
    /// Addresses that large packets do not reach.
    BrokenMtu,
    /// Addresses that several MAC addresses claim.
    Collisions,
    /// MAC addresses that claim the same address.
    Macs,
    /// Networks with a list of unused addresses. Networks that are too large also count as excess.
    Networks,
    /// Time servers in a report of NTP sources.
    TimeSources,
    /// Domain names in a report of DNS lookups.
    Names,
    /// Canonical names of one domain name.
    Cnames,
    /// Virtual IP addresses in a report of their verification.
    Vips,
    /// Tang servers in an Ignition config.
    TangServers,
    /// Disks with a measured write speed.
    DiskSpeeds,
    /// Container images in a report of their availability.
    Images,
    /// A text. Its length is counted in bytes.
    Text,
}

/// Writes the plural noun, for messages to users.
impl fmt::Display for ExcessPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disks => "disks",
            Self::Reasons => "reasons for an ineligible disk",
            Self::Nics => "network interfaces",
            Self::Addresses => "addresses of one interface, host or name",
            Self::Routes => "routes",
            Self::Gpus => "graphics cards",
            Self::Peers => "hosts",
            Self::BrokenMtu => "addresses of one host with a broken MTU",
            Self::Collisions => "address collisions",
            Self::Macs => "MAC addresses with the same IP address",
            Self::Networks => "networks with unused addresses",
            Self::TimeSources => "time servers",
            Self::Names => "DNS names",
            Self::Cnames => "canonical names of one DNS name",
            Self::Vips => "virtual IP addresses",
            Self::TangServers => "Tang servers",
            Self::DiskSpeeds => "disk speeds",
            Self::Images => "container images",
            Self::Text => "bytes in one text",
        })
    }
}

/// Writes a message for users, such as `1000 disks reported, the first 256 are used`.
impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, found, kept, .. } = self;
        match part {
            // Networks that are too large are omitted wherever they are in the list.
            ExcessPart::Networks => {
                write!(f, "{found} {part} reported, {kept} of at most 1024 addresses are used")
            }
            _ => write!(f, "{found} {part} reported, the first {kept} are used"),
        }
    }
}

/// The limits for one kind of list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListLimit {
    pub(super) part: ExcessPart,
    /// Maximum number of items.
    pub(super) items: usize,
    /// Maximum number of heap bytes of all items together.
    pub(super) heap_bytes: usize,
}

impl ListLimit {
    pub(super) const fn new(part: ExcessPart, items: usize) -> Self {
        Self { part, items, heap_bytes: usize::MAX }
    }

    pub(super) const fn with_heap_bytes(self, heap_bytes: usize) -> Self {
        Self { heap_bytes, ..self }
    }
}

/// A log of the lists and texts that exceed a limit. It also applies the limits while a reply is converted.
#[derive(Debug)]
pub(super) struct ExcessLog {
    step: StepType,
    /// For each part, the reported number and the used number. If a reply has several lists of one kind, these are the
    /// numbers of the longest list.
    parts: BTreeMap<ExcessPart, (usize, usize)>,
}

impl ExcessLog {
    pub(super) fn new(step: StepType) -> Self {
        Self { step, parts: BTreeMap::new() }
    }

    pub(super) fn step(&self) -> StepType {
        self.step
    }

    /// Returns all parts that exceeded a limit.
    pub(super) fn into_excess(self) -> impl Iterator<Item = Excess> {
        let step = self.step;
        self.parts.into_iter().map(move |(part, (reported, used))| Excess {
            step,
            part,
            found: reported,
            kept: used,
        })
    }

    pub(super) fn record(&mut self, part: ExcessPart, reported: usize, used: usize) {
        if reported > used {
            let numbers = self.parts.entry(part).or_default();
            *numbers = (*numbers).max((reported, used));
        }
    }

    /// Truncates a text to `max` bytes.
    pub(super) fn text(&mut self, text: &str, max: usize) -> Box<str> {
        self.record(ExcessPart::Text, text.len(), max);
        cut(text, max).into()
    }

    /// Truncates a comma-separated list of names to `max` bytes. Each name is kept or dropped as a whole.
    pub(super) fn comma_separated(&mut self, names: &str, max: usize) -> Box<str> {
        if names.len() <= max {
            return names.into();
        }
        self.record(ExcessPart::Text, names.len(), max);
        // The extra byte may be the comma after the last name that fits.
        cut(names, max.saturating_add(1)).rsplit_once(',').map_or("", |(names, _)| names).into()
    }

    /// Converts the first items, within the limits.
    pub(super) fn list<T, U: HeapLen>(
        &mut self,
        limit: ListLimit,
        items: impl IntoIterator<Item = T>,
        mut read: impl FnMut(&mut Self, T) -> U,
    ) -> Vec<U> {
        let (mut list, mut count, mut heap_bytes) = (Vec::new(), 0_usize, 0_usize);
        let mut is_full = false;
        for item in items {
            count = count.saturating_add(1);
            is_full |= list.len() >= limit.items;
            if is_full {
                continue;
            }
            let item = read(self, item);
            heap_bytes = heap_bytes.saturating_add(item.heap_len());
            is_full = heap_bytes > limit.heap_bytes;
            if !is_full {
                list.push(item);
            }
        }
        self.record(limit.part, count, list.len());
        list.shrink_to_fit();
        list
    }
}

/// Returns the longest prefix of the text that has at most `max` bytes and ends between two characters.
pub(super) fn cut(text: &str, max: usize) -> &str {
    let mut ends = (0..=max.min(text.len())).rev();
    ends.find_map(|end| text.get(..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("aé", 1), "a");
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("", 3), "");
    }

    #[test]
    fn names_separated_by_commas_are_not_cut() {
        for (names, expected) in
            [("dm-1,dm-12", "dm-1"), ("dm-1,d", "dm-1,d"), ("dm-123456", ""), ("dm-123,4", "dm-123")]
        {
            assert_eq!(&*ExcessLog::new(StepType::Inventory).comma_separated(names, 6), expected, "{names}");
        }
    }

    #[test]
    fn list_ends_before_the_first_item_over_the_limit() {
        let mut log = ExcessLog::new(StepType::Inventory);
        let limit = ListLimit::new(ExcessPart::Disks, 3).with_heap_bytes(5);
        let list = log.list(limit, ["ab", "cdef", "g"], |log, text| log.text(text, 9));
        assert_eq!(list, ["ab".into()]);
        assert_eq!(log.parts, [(ExcessPart::Disks, (3, 1))].into());
    }
}
