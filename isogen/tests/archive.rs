//! Proves that archives read back as they were packed, in every encoding and every combination, and that no damage to
//! one makes the reader panic or lose count of what it spends.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code over small archives of its own")]

use std::collections::BTreeMap;

use isogen::initrd::{Limits, newc};
use isogen::{Archive, ArchiveError, Encoding, Packed};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const LIMITS: Limits = Limits { decoded: 4 << 20, kept: 1 << 20, members: 1000 };

fn archive(members: &BTreeMap<String, Vec<u8>>) -> Archive {
    let mut archive = Archive::new();
    members.iter().for_each(|(name, contents)| archive.insert(name.clone(), contents.clone()));
    archive
}

/// Names of one to five components, of any characters that a file name may hold.
fn name() -> impl Strategy<Value = String> {
    vec("[^/\0]{1,12}", 1..6).prop_map(|components| components.join("/"))
}

fn members() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let contents = prop_oneof![
        vec(any::<u8>(), 0..300),
        (any::<u8>(), 0..20_000_usize).prop_map(|(byte, len)| vec![byte; len]),
    ];
    btree_map(name(), contents, 0..8)
}

fn encoding() -> impl Strategy<Value = Encoding> {
    // The largest preset of xz takes much memory and time to begin with, so it comes up less often.
    prop_oneof![1 => Just(Encoding::Xz), 6 => Just(Encoding::Gzip), 6 => Just(Encoding::Stored)]
}

/// One of several archives behind each other, and the zeros behind it.
fn part() -> impl Strategy<Value = (BTreeMap<String, Vec<u8>>, Encoding, usize)> {
    (members(), encoding(), select(vec![0_usize, 4, 508, 70_000]))
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn what_was_packed_reads_back(members in members(), encoding in encoding()) {
        let archive = archive(&members);
        let packed = archive.pack(encoding).unwrap();
        prop_assert_eq!(packed.len() % 4, 0);
        prop_assert_eq!(packed.is_empty(), members.is_empty());
        prop_assert_eq!(&Archive::read(&packed.as_bytes()[..], LIMITS).unwrap(), &archive);
        prop_assert_eq!(packed, archive.pack(encoding).unwrap(), "the same members give the same bytes");
        let always = archive.pack_always(encoding).unwrap();
        prop_assert_eq!(&Archive::read(&always.as_bytes()[..], LIMITS).unwrap(), &archive);
    }

    #[test]
    fn archives_behind_each_other_are_one_and_the_later_member_wins(parts in vec(part(), 0..4)) {
        let mut bytes = Vec::new();
        let mut expected = BTreeMap::new();
        for (members, encoding, zeros) in parts {
            bytes.extend_from_slice(archive(&members).pack_always(encoding).unwrap().as_bytes());
            bytes.resize(bytes.len() + zeros, 0);
            expected.extend(members);
        }
        prop_assert_eq!(Archive::read(&bytes[..], LIMITS).unwrap(), archive(&expected));
    }

    #[test]
    fn a_member_that_comes_again_replaces_the_one_of_before(
        names in vec(name(), 1..4),
        order in vec(any::<Index>(), 1..12),
    ) {
        let mut bytes = Vec::new();
        let mut expected = BTreeMap::new();
        for (number, index) in order.iter().enumerate() {
            let name = index.get(&names);
            let contents = vec![u8::try_from(number).unwrap(); number * 3];
            let data_len = u32::try_from(contents.len()).unwrap();
            let member = newc::Member { name, inode: 0, mode: newc::FILE_MODE, data_len };
            bytes.extend(member.to_header());
            bytes.extend_from_slice(&contents);
            bytes.extend(newc::padding(contents.len() as u64));
            expected.insert(name.clone(), contents);
        }
        bytes.extend(newc::Member { name: newc::TRAILER, inode: 0, mode: 0, data_len: 0 }.to_header());
        prop_assert_eq!(Archive::read(&bytes[..], LIMITS).unwrap(), archive(&expected));
    }

    #[test]
    fn only_what_is_wanted_is_kept(members in members(), encoding in encoding(), wanted in any::<Index>()) {
        let packed = archive(&members).pack(encoding).unwrap();
        let wanted = members.keys().nth(wanted.index(members.len().max(1))).cloned().unwrap_or_default();
        let found = Archive::read_matching(&packed.as_bytes()[..], LIMITS, |name| name == wanted).unwrap();
        let expected = members.get(&wanted).map(|contents| (&wanted[..], &contents[..]));
        prop_assert_eq!(found.iter().map(|(name, contents)| (name, &contents[..])).next(), expected);
        prop_assert!(found.len() <= 1);
    }

    #[test]
    fn no_archive_reads_beyond_its_limits(
        members in members(),
        encoding in encoding(),
        limits in (0..30_000_u64, 0..30_000_u64, 0..10_u64),
    ) {
        let packed = archive(&members).pack(encoding).unwrap();
        let (decoded, kept, count) = limits;
        let limits = Limits { decoded, kept, members: count };
        match Archive::read(&packed.as_bytes()[..], limits) {
            Ok(read) => {
                let kept: usize = read.iter().map(|(_, contents)| contents.len()).sum();
                prop_assert!(kept as u64 <= limits.kept && read.len() as u64 <= limits.members);
                prop_assert_eq!(read, archive(&members));
            }
            Err(error) => prop_assert!(matches!(error, ArchiveError::Limit { .. }), "{}", error),
        }
    }
}

/// A damage: what to do at a place.
#[derive(Debug, Clone)]
enum Damage {
    Set(Index, u8),
    Overwrite(Index, Vec<u8>),
    Cut(Index),
    Insert(Index, Vec<u8>),
    Copy(Index, Index, u8),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len();
        if len == 0 {
            return;
        }
        match self {
            Self::Set(at, byte) => bytes[at.index(len)] = *byte,
            Self::Overwrite(at, with) => {
                let at = at.index(len);
                let end = len.min(at + with.len());
                bytes[at..end].copy_from_slice(&with[..end - at]);
            }
            Self::Cut(at) => bytes.truncate(at.index(len)),
            Self::Insert(at, with) => {
                let at = at.index(len);
                bytes.splice(at..at, with.iter().copied());
            }
            Self::Copy(from, to, count) => {
                let (from, to) = (from.index(len), to.index(len));
                let copied = bytes[from..len.min(from + usize::from(*count))].to_vec();
                bytes.splice(to..to, copied);
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let digits = select(vec!["00000000", "FFFFFFFF", "7FFFFFFF", "0000000B", "00001000", "TRAILER!!!"]);
    let magic =
        select(vec![&b"070701"[..], b"\x1F\x8B", b"\xFD7zXZ\0", b"\x28\xB5\x2F\xFD", b"\x50\x2A\x4D\x18"]);
    prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        2 => (any::<Index>(), digits).prop_map(|(at, text)| Damage::Overwrite(at, text.into())),
        1 => (any::<Index>(), magic).prop_map(|(at, bytes)| Damage::Insert(at, bytes.to_vec())),
        1 => any::<Index>().prop_map(Damage::Cut),
        1 => (any::<Index>(), vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        1 => any::<(Index, Index, u8)>().prop_map(|(from, to, count)| Damage::Copy(from, to, count)),
    ]
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn damaged_archives_are_read_or_refused(
        parts in vec((members(), prop_oneof![Just(Encoding::Gzip), Just(Encoding::Stored)]), 1..3),
        damages in vec(damage(), 1..5),
    ) {
        let mut bytes = Vec::new();
        for (members, encoding) in &parts {
            bytes.extend_from_slice(archive(members).pack_always(*encoding).unwrap().as_bytes());
        }
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        if let Ok(read) = Archive::read(&bytes[..], LIMITS) {
            let kept: usize = read.iter().map(|(_, contents)| contents.len()).sum();
            prop_assert!(kept as u64 <= LIMITS.kept && read.len() as u64 <= LIMITS.members);
        }
    }
}

/// The slow encoding apart: one archive, damaged at many places.
#[test]
fn a_damaged_xz_stream_is_refused_or_harmless() {
    let members = BTreeMap::from([("config.ign".to_owned(), b"{\"ignition\":{}}".repeat(40))]);
    let archive = archive(&members);
    let packed = archive.pack(Encoding::Xz).unwrap().as_bytes().to_vec();
    for at in 0..packed.len() {
        for change in [0x01, 0x80, 0xFF] {
            let mut bytes = packed.clone();
            bytes[at] ^= change;
            // The check of xz covers the contents, and each header has one of its own.
            match Archive::read(&bytes[..], LIMITS) {
                Ok(read) => assert!(read == archive, "byte {at} with {change:#x}"),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

#[test]
fn names_that_no_reader_should_meet_are_not_packed() {
    for name in ["", newc::TRAILER, "TRAILER!!!/x", "a\0b", &"n".repeat(4096)] {
        let archive = archive(&BTreeMap::from([(name.to_owned(), Vec::new())]));
        assert!(matches!(archive.pack(Encoding::Stored), Err(ArchiveError::Member { .. })), "{name:?}");
    }
    let longest = archive(&BTreeMap::from([("n".repeat(4095), Vec::new())]));
    let packed: Packed = longest.pack(Encoding::Stored).unwrap();
    assert_eq!(Archive::read(&packed.as_bytes()[..], LIMITS).unwrap(), longest);
}
