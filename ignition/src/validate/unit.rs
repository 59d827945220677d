//! Parses unit files with the same syntax checks as Ignition.

/// Maximum length of a line in a unit file, in bytes.
const MAX_LINE_LEN: usize = 2047;

/// The reason why a text is not a valid unit file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnitError {
    #[error("line {line} of the unit is too long: {len} bytes (limit {MAX_LINE_LEN})")]
    LongLine { line: usize, len: usize },
    #[error("line {line} of the unit starts a section that does not end with ]")]
    OpenSection { line: usize },
    #[error("line {line} of the unit has text after the ] of the section")]
    BehindSection { line: usize },
    #[error("line {line} of the unit has no =")]
    NoValue { line: usize },
}

/// The sections of a unit file with their options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnitFile {
    sections: Vec<(String, Vec<(String, String)>)>,
}

impl UnitFile {
    /// Returns `true` if a section has options. An empty section counts as absent.
    pub(crate) fn has_section(&self, name: &str) -> bool {
        self.sections.iter().any(|(section, options)| section == name && !options.is_empty())
    }

    /// Returns the values of an option in all sections with a given name.
    pub(crate) fn values(&self, section: &str, name: &str) -> impl Iterator<Item = &str> {
        let options =
            self.sections.iter().filter(move |(it, _)| it == section).flat_map(|(_, options)| options);
        options.filter(move |(option, _)| option == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) fn parse(text: &str) -> Result<UnitFile, UnitError> {
    let long = text.split('\n').enumerate().find(|(_, line)| line.len() > MAX_LINE_LEN);
    if let Some((index, line)) = long {
        return Err(UnitError::LongLine { line: index + 1, len: line.len() });
    }
    let mut file = UnitFile::default();
    let Some(start) = text.find('[') else { return Ok(file) };
    let mut reader = UnitFileReader { text, at: start };
    while let Some(first) = reader.peek() {
        match first {
            '[' => file.sections.push((reader.section()?, Vec::new())),
            '#' | ';' => {
                reader.line();
            }
            _ => {
                let option = reader.option()?;
                if let Some((_, options)) = file.sections.last_mut() {
                    options.push(option);
                }
            }
        }
    }
    Ok(file)
}

struct UnitFileReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> UnitFileReader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    /// Returns the rest of the line without its line break.
    fn line(&mut self) -> &'a str {
        let rest = self.rest();
        let line = rest.split('\n').next().unwrap_or_default();
        self.at += rest.len().min(line.len() + 1);
        line
    }

    /// Returns the line number of an offset. Only errors contain line numbers.
    fn line_number(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }

    fn section(&mut self) -> Result<String, UnitError> {
        let start = self.at;
        let rest = self.rest().get(1..).unwrap_or_default();
        let Some(end) = rest.find(']') else {
            return Err(UnitError::OpenSection { line: self.line_number(start) });
        };
        let name = rest.get(..end).unwrap_or_default();
        self.at += end + 2;
        if !self.line().trim().is_empty() {
            return Err(UnitError::BehindSection { line: self.line_number(start) });
        }
        Ok(name.to_owned())
    }

    fn option(&mut self) -> Result<(String, String), UnitError> {
        let rest = self.rest();
        let end =
            rest.find(['=', '\n', '\r']).filter(|end| rest.get(*end..).is_some_and(|it| it.starts_with('=')));
        let Some(end) = end else { return Err(UnitError::NoValue { line: self.line_number(self.at) }) };
        self.at += end + 1;
        let mut value = self.line().to_owned();
        while value.ends_with('\\') && !self.rest().is_empty() {
            value.push('\n');
            value.push_str(self.line());
        }
        Ok((rest.get(..end).unwrap_or_default().trim().to_owned(), value.trim().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_belong_to_their_sections() {
        let text = "junk\n[Unit]\n# a comment [x\n; b\n\nA = b \n[Service]\nExec=a \\\n  b\n[Install]\n[Service]\nExec=\n";
        let file = parse(text).unwrap();
        assert_eq!(file.values("Unit", "A").collect::<Vec<_>>(), ["b"]);
        assert_eq!(file.values("Service", "Exec").collect::<Vec<_>>(), ["a \\\n  b", ""]);
        assert!(file.has_section("Unit") && !file.has_section("Install"));
        assert_eq!(parse("").unwrap(), UnitFile::default());
        assert_eq!(parse("no section = at all").unwrap(), UnitFile::default());
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(parse("\n[Unit"), Err(UnitError::OpenSection { line: 2 }));
        assert_eq!(parse("[Unit] x\n"), Err(UnitError::BehindSection { line: 1 }));
        assert_eq!(parse("[Unit]\nA\n=b"), Err(UnitError::NoValue { line: 2 }));
        assert_eq!(parse("[Unit]\n\nA"), Err(UnitError::NoValue { line: 3 }));
        let line = |len: usize| parse(&format!("[Unit]\n#{}\nA=b", "x".repeat(len - 1)));
        assert!(line(2047).is_ok());
        assert_eq!(line(2048), Err(UnitError::LongLine { line: 2, len: 2048 }));
    }
}
