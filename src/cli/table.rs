//! Text tables with aligned columns.

use super::output::escape_controls;

/// The text between two columns.
const GAP: &str = "  ";

/// A table with aligned columns. Control characters in cells are escaped.
#[derive(Debug)]
pub(super) struct TextTable<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> TextTable<COLUMNS> {
    pub(super) fn new(header: [&str; COLUMNS]) -> Self {
        Self { rows: vec![header.map(str::to_owned)] }
    }

    pub(super) fn push(&mut self, cells: [&str; COLUMNS]) {
        self.rows
            .push(cells.map(|cell| if cell.is_empty() { "-".to_owned() } else { escape_controls(cell) }));
    }

    /// Returns `true` if the table has only its header.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    pub(super) fn to_text(&self) -> String {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            text.push_str(cells.collect::<Vec<_>>().join(GAP).trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_control_characters_escaped() {
        let mut table = TextTable::new(["NAME", "ID"]);
        assert!(table.is_empty());
        table.push(["a\u{1b}[31m\nb", "1"]);
        table.push(["", "é2"]);
        assert_eq!(table.to_text(), "NAME            ID\na\\u{1b}[31m\\nb  1\n-               é2\n");
    }
}
