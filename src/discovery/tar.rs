//! A tar archive of small files, the same bytes on every machine.

/// Bytes in a block.
const BLOCK: usize = 512;

/// Archives files that only root may read. Names may begin with a slash, and may be as long as the format has room for;
/// a longer one is left out of the header's main field and goes into its prefix.
pub(super) fn of_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, contents) in files {
        let len = u64::try_from(contents.len()).unwrap_or(u64::MAX);
        archive.extend_from_slice(&header(name, len, 0));
        archive.extend_from_slice(contents);
        archive.extend_from_slice(&padding(len));
    }
    if !archive.is_empty() {
        archive.extend_from_slice(&END);
    }
    archive
}

/// What comes after the last file.
pub(crate) const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// What comes after the contents of a file.
pub(crate) fn padding(len: u64) -> Vec<u8> {
    const BLOCK_LEN: u64 = 512;
    vec![0; usize::try_from(len.wrapping_neg() % BLOCK_LEN).unwrap_or_default()]
}

/// A header as POSIX has it: fields one after the other, numbers as octal digits. The time is in seconds since 1970.
pub(crate) fn header(name: &str, len: u64, written_at: u64) -> Vec<u8> {
    /// Bytes of the field for a name, and of the one for what stands before it.
    const NAME: usize = 100;
    const PREFIX: usize = 155;
    let (prefix, name) = if name.len() <= NAME {
        ("", name)
    } else {
        name.match_indices('/')
            .map(|(at, _)| (name.get(..at).unwrap_or_default(), name.get(at + 1..).unwrap_or_default()))
            .find(|(prefix, rest)| rest.len() <= NAME && prefix.len() <= PREFIX)
            .unwrap_or(("", name))
    };
    let mut block = Vec::with_capacity(BLOCK);
    push(&mut block, name, NAME);
    for (number, width) in [(0o600, 8), (0, 8), (0, 8), (len, 12), (written_at, 12)] {
        push(&mut block, &format!("{number:0width$o}", width = width - 1), width);
    }
    let checksum_at = block.len();
    push(&mut block, "        ", 8);
    push(&mut block, "0", 1);
    push(&mut block, "", NAME);
    push(&mut block, "ustar\x0000root", 8 + 32);
    push(&mut block, "root", 32);
    push(&mut block, "0000000", 8);
    push(&mut block, "0000000", 8);
    push(&mut block, prefix, PREFIX);
    block.resize(BLOCK, 0);
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    for (place, byte) in block.iter_mut().skip(checksum_at).zip(format!("{sum:06o}\0 ").bytes()) {
        *place = byte;
    }
    block
}

/// A text in a field of a width, cut if it is longer.
fn push(block: &mut Vec<u8>, text: &str, width: usize) {
    let end = block.len() + width;
    block.extend(text.bytes().take(width));
    block.resize(end, 0);
}
