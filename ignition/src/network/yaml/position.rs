//! Converts the parser's positions to lines and columns as editors show them.
//!
//! Only `\n` ends a line, alone or after `\r`, as in [`str::lines`] and in JSON. YAML's parser also counts a lone `\r`,
//! U+0085, U+2028 and U+2029, so this module uses only the byte offsets of the parser's marks.

use libyaml_safer::Mark;

/// Returns the line and the column of a mark, both counted from 1. The column is in characters.
///
/// The end of a text counts as the end of its last line. Otherwise, an error at the end would be on the first line of
/// the text that follows in the file.
pub(super) fn position(text: &str, mark: Mark) -> (usize, usize) {
    let last_line_end = text.strip_suffix('\n').unwrap_or(text);
    let end = byte_offset(mark).min(last_line_end.len());
    let before = (0..=end).rev().find_map(|end| last_line_end.get(..end)).unwrap_or_default();
    let column = before.chars().rev().take_while(|it| *it != '\n').count();
    (count_line_ends(before.as_bytes()).saturating_add(1), column.saturating_add(1))
}

/// Converts several marks to line numbers in one pass over the text. The marks must be in ascending order.
pub(super) struct LineCounter<'a> {
    text: &'a [u8],
    offset: usize,
    line: usize,
}

impl<'a> LineCounter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), offset: 0, line: 1 }
    }

    /// Returns the line of the next mark.
    pub(super) fn advance_to(&mut self, mark: Mark) -> usize {
        let end = byte_offset(mark).min(self.text.len());
        if let Some(passed) = self.text.get(self.offset..end) {
            self.line = self.line.saturating_add(count_line_ends(passed));
            self.offset = end;
        }
        self.line
    }
}

fn byte_offset(mark: Mark) -> usize {
    usize::try_from(mark.index).unwrap_or(usize::MAX)
}

fn count_line_ends(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}
