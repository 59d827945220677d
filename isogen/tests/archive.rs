//! Archives read back as they were packed, in every encoding and combination. No damaged archive makes the reader panic
//! or exceed its limits.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code over its own small archives")]

use std::collections::BTreeMap;

use isogen::initrd::ArchiveLimits;
use isogen::{Archive, ArchiveError, Encoding, PackedArchive};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const LIMITS: ArchiveLimits = ArchiveLimits { decoded_bytes: 4 << 20, kept_bytes: 1 << 20, members: 1000 };

fn archive_from(members: &BTreeMap<String, Vec<u8>>) -> Archive {
    let mut archive = Archive::new();
    members.iter().for_each(|(name, contents)| archive.insert(name.clone(), contents.clone()));
    archive
}

/// Generates names of one to five path components, with any characters that a file name may contain.
fn member_name() -> impl Strategy<Value = String> {
    vec("[^/\0]{1,12}", 1..6).prop_map(|components| components.join("/"))
}

fn members() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let contents = prop_oneof![
        vec(any::<u8>(), 0..300),
        (any::<u8>(), 0..20_000_usize).prop_map(|(byte, len)| vec![byte; len]),
    ];
    btree_map(member_name(), contents, 0..8)
}

fn any_encoding() -> impl Strategy<Value = Encoding> {
    // Preset 9 of xz needs much memory and time, so this encoding is less frequent.
    prop_oneof![1 => Just(Encoding::Xz), 6 => Just(Encoding::Gzip), 6 => Just(Encoding::Stored)]
}

/// Generates one of several concatenated archives, and the number of zeros after the archive.
fn concatenated_archive() -> impl Strategy<Value = (BTreeMap<String, Vec<u8>>, Encoding, usize)> {
    (members(), any_encoding(), select(vec![0_usize, 4, 508, 70_000]))
}

fn proptest_config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Encodes a member of a cpio archive in the `newc` format. The fields are inode, mode, user, group, links, time,
/// length, four device numbers, length of the name, and checksum.
fn cpio_member(name: &str, mode: u32, contents: &[u8]) -> Vec<u8> {
    let len = u32::try_from(contents.len()).unwrap();
    let name_len = u32::try_from(name.len() + 1).unwrap();
    let fields = [0, mode, 0, 0, 1, 0, len, 0, 0, 0, 0, name_len, 0].map(|field| format!("{field:08x}"));
    let mut bytes = format!("070701{}{name}\0", fields.concat()).into_bytes();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend_from_slice(contents);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

proptest! {
    #![proptest_config(proptest_config(64))]

    #[test]
    fn packed_archive_reads_back(members in members(), encoding in any_encoding()) {
        let archive = archive_from(&members);
        let packed = archive.pack(encoding).unwrap();
        prop_assert_eq!(packed.len() % 4, 0);
        prop_assert_eq!(packed.is_empty(), members.is_empty());
        prop_assert_eq!(&Archive::read(&packed.as_bytes()[..], LIMITS).unwrap(), &archive);
        prop_assert_eq!(packed, archive.pack(encoding).unwrap(), "packing the same members twice");
        let always = archive.pack_even_if_empty(encoding).unwrap();
        prop_assert_eq!(&Archive::read(&always.as_bytes()[..], LIMITS).unwrap(), &archive);
    }

    #[test]
    fn later_member_wins_in_concatenated_archives(parts in vec(concatenated_archive(), 0..4)) {
        let mut bytes = Vec::new();
        let mut expected = BTreeMap::new();
        for (members, encoding, zeros) in parts {
            bytes.extend_from_slice(archive_from(&members).pack_even_if_empty(encoding).unwrap().as_bytes());
            bytes.resize(bytes.len() + zeros, 0);
            expected.extend(members);
        }
        prop_assert_eq!(Archive::read(&bytes[..], LIMITS).unwrap(), archive_from(&expected));
    }

    #[test]
    fn repeated_member_replaces_the_earlier_one(
        names in vec(member_name(), 1..4),
        order in vec(any::<Index>(), 1..12),
    ) {
        let mut bytes = Vec::new();
        let mut expected = BTreeMap::new();
        for (number, index) in order.iter().enumerate() {
            let name = index.get(&names);
            let contents = vec![u8::try_from(number).unwrap(); number * 3];
            bytes.extend(cpio_member(name, 0o100_600, &contents));
            expected.insert(name.clone(), contents);
        }
        bytes.extend(cpio_member("TRAILER!!!", 0, &[]));
        prop_assert_eq!(Archive::read(&bytes[..], LIMITS).unwrap(), archive_from(&expected));
    }

    #[test]
    fn only_selected_members_are_kept(members in members(), encoding in any_encoding(), index in any::<Index>()) {
        let packed = archive_from(&members).pack(encoding).unwrap();
        let selected = members.keys().nth(index.index(members.len().max(1))).cloned().unwrap_or_default();
        let archive = Archive::read_matching(&packed.as_bytes()[..], LIMITS, |name| name == selected).unwrap();
        let expected = members.get(&selected).map(|contents| (&selected[..], &contents[..]));
        prop_assert_eq!(archive.iter().map(|(name, contents)| (name, &contents[..])).next(), expected);
        prop_assert!(archive.len() <= 1);
    }

    #[test]
    fn archive_reader_keeps_its_limits(
        members in members(),
        encoding in any_encoding(),
        limits in (0..30_000_u64, 0..30_000_u64, 0..10_u64),
    ) {
        let packed = archive_from(&members).pack(encoding).unwrap();
        let (decoded, kept_bytes, count) = limits;
        let limits = ArchiveLimits { decoded_bytes: decoded, kept_bytes, members: count };
        match Archive::read(&packed.as_bytes()[..], limits) {
            Ok(read) => {
                let kept_bytes: usize = read.iter().map(|(_, contents)| contents.len()).sum();
                prop_assert!(kept_bytes as u64 <= limits.kept_bytes && read.len() as u64 <= limits.members);
                prop_assert_eq!(read, archive_from(&members));
            }
            Err(error) => prop_assert!(matches!(error, ArchiveError::Limit { .. }), "{}", error),
        }
    }
}

/// A kind of damage and its position.
#[derive(Debug, Clone)]
enum ArchiveDamage {
    Set(Index, u8),
    Overwrite(Index, Vec<u8>),
    Cut(Index),
    Insert(Index, Vec<u8>),
    Copy(Index, Index, u8),
}

impl ArchiveDamage {
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

fn damage() -> impl Strategy<Value = ArchiveDamage> {
    let digits = select(vec!["00000000", "FFFFFFFF", "7FFFFFFF", "0000000B", "00001000", "TRAILER!!!"]);
    let magic =
        select(vec![&b"070701"[..], b"\x1F\x8B", b"\xFD7zXZ\0", b"\x28\xB5\x2F\xFD", b"\x50\x2A\x4D\x18"]);
    prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| ArchiveDamage::Set(at, byte)),
        2 => (any::<Index>(), digits).prop_map(|(at, text)| ArchiveDamage::Overwrite(at, text.into())),
        1 => (any::<Index>(), magic).prop_map(|(at, bytes)| ArchiveDamage::Insert(at, bytes.to_vec())),
        1 => any::<Index>().prop_map(ArchiveDamage::Cut),
        1 => (any::<Index>(), vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| ArchiveDamage::Insert(at, bytes)),
        1 => any::<(Index, Index, u8)>().prop_map(|(from, to, count)| ArchiveDamage::Copy(from, to, count)),
    ]
}

proptest! {
    #![proptest_config(proptest_config(400))]

    #[test]
    fn damaged_archives_are_read_or_refused(
        parts in vec((members(), prop_oneof![Just(Encoding::Gzip), Just(Encoding::Stored)]), 1..3),
        damages in vec(damage(), 1..5),
    ) {
        let mut bytes = Vec::new();
        for (members, encoding) in &parts {
            bytes.extend_from_slice(archive_from(members).pack_even_if_empty(*encoding).unwrap().as_bytes());
        }
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        if let Ok(read) = Archive::read(&bytes[..], LIMITS) {
            let kept_bytes: usize = read.iter().map(|(_, contents)| contents.len()).sum();
            prop_assert!(kept_bytes as u64 <= LIMITS.kept_bytes && read.len() as u64 <= LIMITS.members);
        }
    }
}

/// xz is slow, so this test damages a single archive at many positions.
#[test]
fn damaged_xz_stream_is_refused_or_harmless() {
    let members = BTreeMap::from([("config.ign".to_owned(), b"{\"ignition\":{}}".repeat(40))]);
    let archive = archive_from(&members);
    let packed = archive.pack(Encoding::Xz).unwrap().as_bytes().to_vec();
    for at in 0..packed.len() {
        for change in [0x01, 0x80, 0xFF] {
            let mut bytes = packed.clone();
            bytes[at] ^= change;
            // A changed byte never results in other contents, because the xz checksum covers the contents, and each
            // header has its own checksum.
            match Archive::read(&bytes[..], LIMITS) {
                Ok(read) => assert!(read == archive, "byte {at} with {change:#x}"),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

#[test]
fn rejects_unusable_member_names() {
    for name in ["", "TRAILER!!!", "TRAILER!!!/x", "a\0b", &"n".repeat(4096)] {
        let archive = archive_from(&BTreeMap::from([(name.to_owned(), Vec::new())]));
        assert!(matches!(archive.pack(Encoding::Stored), Err(ArchiveError::Member { .. })), "{name:?}");
    }
    let longest = archive_from(&BTreeMap::from([("n".repeat(4095), Vec::new())]));
    let packed: PackedArchive = longest.pack(Encoding::Stored).unwrap();
    assert_eq!(Archive::read(&packed.as_bytes()[..], LIMITS).unwrap(), longest);
}
