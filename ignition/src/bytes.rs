//! Kinds of bytes.

/// A set of bytes, as a table.
pub(crate) struct ByteSet([bool; 256]);

#[expect(
    clippy::indexing_slicing,
    reason = "sets are made when this is compiled, where a wrong index is an error"
)]
impl ByteSet {
    /// Letters and digits of ASCII, and these.
    pub(crate) const fn alphanumeric_and(others: &[u8]) -> Self {
        let mut set = [false; 256];
        let mut byte = 0_u8;
        while byte < 128 {
            set[byte as usize] = byte.is_ascii_alphanumeric();
            byte += 1;
        }
        Self(set).with(others, true)
    }

    /// All visible characters of ASCII but these.
    pub(crate) const fn graphic_but(others: &[u8]) -> Self {
        let mut set = [false; 256];
        let mut byte = 0_u8;
        while byte < 128 {
            set[byte as usize] = byte.is_ascii_graphic();
            byte += 1;
        }
        Self(set).with(others, false)
    }

    const fn with(mut self, others: &[u8], is_in: bool) -> Self {
        let mut at = 0;
        while at < others.len() {
            self.0[others[at] as usize] = is_in;
            at += 1;
        }
        self
    }
}

impl ByteSet {
    /// Whether a byte is one of them.
    pub(crate) fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte)).copied().unwrap_or_default()
    }

    /// Where the first byte is that is none of them.
    pub(crate) fn first_other(&self, text: &str) -> Option<usize> {
        text.bytes().position(|byte| !self.has(byte))
    }
}

#[test]
fn sets_have_what_they_are_made_of() {
    let words = ByteSet::alphanumeric_and(b"-%");
    assert!(b"azAZ09-%".iter().all(|byte| words.has(*byte)));
    assert!(!b"_ \0\xC3\xFF".iter().any(|byte| words.has(*byte)));
    assert_eq!((words.first_other("a-b\u{e4}"), words.first_other("a%b")), (Some(3), None));
    let graphic = ByteSet::graphic_but(b"<>");
    assert!(
        (0..=255).all(|byte: u8| graphic.has(byte) == (byte.is_ascii_graphic() && !b"<>".contains(&byte)))
    );
}
