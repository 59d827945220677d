//! Sets of ASCII characters as lookup tables. They make it fast to check each byte of a config with megabytes of
//! contents.

/// A set of visible ASCII characters.
pub(crate) struct ByteSet([bool; 256]);

impl ByteSet {
    /// Creates the set of all visible ASCII characters except `others`.
    #[expect(
        clippy::indexing_slicing,
        reason = "sets are made at compile time, where a wrong index is an error"
    )]
    pub(crate) const fn graphic_except(others: &[u8]) -> Self {
        let mut set = [false; 256];
        let mut byte = 0_u8;
        while byte < 128 {
            set[byte as usize] = byte.is_ascii_graphic();
            byte += 1;
        }
        let mut at = 0;
        while at < others.len() {
            set[others[at] as usize] = false;
            at += 1;
        }
        Self(set)
    }

    fn contains(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte)).is_some_and(|is_in| *is_in)
    }

    /// Returns the first character of a text that is not in the set, or `None` if all characters are in the set.
    pub(crate) fn first_outside(&self, text: &str) -> Option<char> {
        let at = text.bytes().position(|byte| !self.contains(byte))?;
        // All bytes before `at` are ASCII, so a character begins here.
        text.split_at(at).1.chars().next()
    }
}

#[test]
fn set_contains_visible_characters_except_the_given_ones() {
    let graphic = ByteSet::graphic_except(b"<>");
    assert!((0..=255).all(|it: u8| graphic.contains(it) == (it.is_ascii_graphic() && !b"<>".contains(&it))));
    assert_eq!((graphic.first_outside("a-b\u{e4}<"), graphic.first_outside("a%b")), (Some('\u{e4}'), None));
}
