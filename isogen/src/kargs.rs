//! Kernel arguments: the embed areas that contain them, and edits.
//!
//! A base image has its command line in the configs of its boot loaders (on s390x: in its boot image). Each copy is in
//! an area of the same length: the arguments, an end character, then filler. The last byte of the filler's line is
//! outside of the area, so that a full area still ends in a comment line.

use bytes::Bytes;

use crate::error::{Error, KargsError, Result};
use crate::extent::Extent;
use crate::plan::{Patch, Segment};
use crate::source::Source;

/// A kernel-argument area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KargsArea {
    /// Its bytes in the image.
    pub extent: Extent,
    /// The filler after the arguments, if the image names one.
    pub pad: Option<char>,
    /// The character that ends the arguments, if the image names one.
    pub end: Option<char>,
    pub(crate) contents: Bytes,
}

/// The description that named the areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum KargsOrigin {
    /// `coreos/kargs.json` names them.
    Description,
    /// The header `coreKarg` in the system area names them.
    Header,
    /// A search of the boot loaders' configs for the marker.
    Marker,
}

/// All kernel-argument areas of an image.
#[derive(Debug, Clone)]
pub struct KargsAreas {
    /// The name of the image.
    pub(crate) file: String,
    /// Whether an in-place edit was not completed, so that the contents of the areas are unknown.
    pub(crate) interrupted: bool,
    areas: Vec<KargsArea>,
    default: Option<String>,
    origin: KargsOrigin,
}

impl KargsArea {
    pub(crate) fn read(source: &Source, extent: Extent) -> Result<Self> {
        Ok(Self { extent, pad: None, end: None, contents: source.read_extent(extent)?.into() })
    }

    fn pad(&self) -> char {
        self.pad.unwrap_or('#')
    }

    pub(crate) fn end(&self) -> char {
        self.end.unwrap_or('\n')
    }

    /// Returns the arguments in the area.
    ///
    /// # Errors
    ///
    /// Returns an error if the area is not text.
    pub fn text(&self) -> Result<&str, KargsError> {
        let text = std::str::from_utf8(&self.contents).map_err(|error| KargsError::NotText {
            offset: self.extent.offset(),
            bad: error.valid_up_to(),
        })?;
        Ok(text.trim_end_matches(self.pad()).trim_end_matches(self.end()).trim())
    }

    /// Returns the bytes of the area with `kargs` in it.
    fn filled(&self, kargs: &str) -> Result<Bytes, KargsError> {
        self.filled_to(kargs, self.contents.len())
    }

    /// Returns the bytes of an area of `capacity` bytes with `kargs` in it.
    pub(crate) fn filled_to(&self, kargs: &str, capacity: usize) -> Result<Bytes, KargsError> {
        let mut bytes = format!("{kargs}{}", self.end()).into_bytes();
        if bytes.len() > capacity {
            return Err(KargsError::TooLarge { len: bytes.len(), capacity });
        }
        // Other tools that write these areas use the low byte only, too.
        let [pad, ..] = u32::from(self.pad()).to_le_bytes();
        bytes.resize(capacity, pad);
        Ok(bytes.into())
    }
}

impl KargsAreas {
    /// Sorts areas by offset. Returns the reason as an error if no area is given or two share bytes.
    pub(crate) fn new(
        source: &Source,
        mut areas: Vec<KargsArea>,
        default: Option<String>,
        origin: KargsOrigin,
    ) -> Result<Self, String> {
        areas.sort_by_key(|area| area.extent);
        // The same area named twice is one area.
        areas.dedup_by(|a, b| a.extent == b.extent && a.pad == b.pad && a.end == b.end);
        if areas.is_empty() {
            return Err("it names no areas".into());
        }
        if let Some([a, b]) = areas.array_windows().find(|[a, b]| a.extent.overlaps(b.extent)) {
            return Err(format!("the areas {} and {} overlap", a.extent, b.extent));
        }
        Ok(Self { file: source.name().to_owned(), interrupted: false, areas, default, origin })
    }

    /// Returns the areas, in the order of the image.
    #[must_use]
    pub fn areas(&self) -> &[KargsArea] {
        &self.areas
    }

    /// Returns the description that named them.
    #[must_use]
    pub fn origin(&self) -> KargsOrigin {
        self.origin
    }

    /// Returns the bytes of each area. The longest command line is one byte shorter.
    #[must_use]
    pub fn area_len(&self) -> u64 {
        self.areas.first().map_or(0, |area| area.extent.len())
    }

    /// Returns the default arguments, with which the builder made the image.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not record them.
    pub fn default(&self) -> Result<&str> {
        self.default.as_deref().ok_or_else(|| self.error(KargsError::NoDefault))
    }

    fn error(&self, reason: KargsError) -> Error {
        Error::Kargs { file: self.file.clone(), reason }
    }

    /// Returns the current arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if the areas are not text or differ from each other, or after an in-place edit that was not
    /// completed.
    pub fn current(&self) -> Result<&str> {
        if self.interrupted {
            return Err(Error::Interrupted { file: self.file.clone() });
        }
        self.text().map_err(|reason| self.error(reason))
    }

    fn text(&self) -> Result<&str, KargsError> {
        let [first, others @ ..] = self.areas.as_slice() else { return Ok("") };
        let text = first.text()?;
        for other in others {
            if other.text()? != text {
                return Err(KargsError::Mismatch {
                    first: text.to_owned(),
                    first_at: first.extent.offset(),
                    other: other.text()?.to_owned(),
                    other_at: other.extent.offset(),
                });
            }
        }
        Ok(text)
    }

    /// Applies an edit and returns the new arguments. Only [`patches`](Self::patches) checks that they fit.
    ///
    /// # Errors
    ///
    /// Returns an error if the arguments cannot be read or an operation is not valid.
    pub fn edited(&self, edit: &KargsEdit) -> Result<String> {
        let edited = match edit {
            KargsEdit::Set(kargs) => check_control(kargs).map(|()| kargs.trim().to_owned()),
            KargsEdit::Reset => Ok(self.default()?.to_owned()),
            KargsEdit::Current(operations) => operations.apply(self.current()?),
            KargsEdit::Default(operations) => operations.apply(self.default()?),
        };
        edited.map_err(|reason| self.error(reason))
    }

    /// Returns `true` if `kargs` fits into every area.
    pub(crate) fn fits(&self, kargs: &str) -> bool {
        self.areas.iter().all(|area| kargs.len() + area.end().len_utf8() <= area.contents.len())
    }

    /// Returns the changes that put `kargs` into every area.
    ///
    /// # Errors
    ///
    /// Returns an error if `kargs` does not fit.
    pub fn patches(&self, kargs: &str) -> Result<Vec<Patch>> {
        let patch = |area: &KargsArea| {
            let segment = Segment::Bytes(area.filled(kargs).map_err(|reason| self.error(reason))?);
            Ok(Patch { offset: area.extent.offset(), segment })
        };
        self.areas.iter().map(patch).collect()
    }
}

/// A change of the kernel arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KargsEdit {
    /// These arguments.
    Set(String),
    /// The default arguments.
    Reset,
    /// The current arguments with operations applied.
    Current(KargsOperations),
    /// The default arguments with operations applied.
    Default(KargsOperations),
}

/// Operations on a command line, applied in the order of the fields.
///
/// Arguments are compared as text between two spaces. Quotes have no meaning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KargsOperations {
    /// Arguments to remove. A value with spaces matches several consecutive arguments.
    pub delete: Vec<String>,
    /// Arguments to add at the end.
    pub append: Vec<String>,
    /// Replacements of the form `KEY=OLD=NEW`.
    pub replace: Vec<String>,
}

impl KargsOperations {
    /// Returns `true` if there are no operations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.delete.is_empty() && self.append.is_empty() && self.replace.is_empty()
    }

    /// Applies them to a command line.
    ///
    /// # Errors
    ///
    /// Returns an error if a replacement is malformed or an argument contains control characters.
    pub fn apply(&self, kargs: &str) -> Result<String, KargsError> {
        let mut line = format!(" {kargs} ");
        for argument in &self.delete {
            line = line.replace(&format!(" {} ", argument.trim()), " ");
        }
        for argument in &self.append {
            check_control(argument)?;
            line.push_str(argument.trim());
            line.push(' ');
        }
        for replacement in &self.replace {
            check_control(replacement)?;
            let (key, old, new) = split_replacement(replacement)?;
            line = line.replace(&format!(" {key}={old} "), &format!(" {key}={new} "));
        }
        Ok(line.trim().to_owned())
    }
}

fn split_replacement(value: &str) -> Result<(&str, &str, &str), KargsError> {
    let parts: Vec<&str> = value.split('=').collect();
    match parts.as_slice() {
        [key, old, new] if parts.iter().all(|part| !part.is_empty()) => Ok((key, old, new)),
        _ => Err(KargsError::Replacement { value: value.to_owned() }),
    }
}

fn check_control(value: &str) -> Result<(), KargsError> {
    // White space around an argument is trimmed.
    let leading = value.len() - value.trim_start().len();
    match value.trim().char_indices().find(|(_, character)| character.is_control()) {
        Some((offset, found)) => {
            Err(KargsError::Control { value: value.to_owned(), offset: leading + offset, found })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(kargs: &str, delete: &[&str], append: &[&str], replace: &[&str]) -> Result<String, KargsError> {
        let strings = |values: &[&str]| values.iter().map(ToString::to_string).collect();
        let operations =
            KargsOperations { delete: strings(delete), append: strings(append), replace: strings(replace) };
        operations.apply(kargs)
    }

    #[test]
    fn operations_come_in_their_own_order() {
        assert_eq!(apply("a b c", &["b"], &["k=1"], &["k=1=2"]).unwrap(), "a c k=2");
    }

    #[test]
    fn whole_arguments_match_and_inner_spaces_stay() {
        assert_eq!(apply("rw  foo foobar", &["foo"], &[], &[]).unwrap(), "rw  foobar");
        assert_eq!(apply("a b c d", &["b c"], &[], &[]).unwrap(), "a d");
    }

    /// Neighbours share the space between them; scripts may rely on what `coreos-installer` makes of that.
    #[test]
    fn adjacent_duplicates_leave_one() {
        assert_eq!(apply("a a a", &["a"], &[], &[]).unwrap(), "a");
    }

    #[test]
    fn replacements_need_three_parts() {
        for bad in ["a", "a=b", "a=b=c=d", "=b=c", "a==c", "a=b="] {
            assert!(matches!(apply("a=b", &[], &[], &[bad]), Err(KargsError::Replacement { .. })), "{bad}");
        }
    }

    #[test]
    fn a_line_break_is_refused() {
        let error = apply("a", &[], &["b\nc"], &[]).unwrap_err();
        assert_eq!(error, KargsError::Control { value: "b\nc".into(), offset: 1, found: '\n' });
        let error = apply("a", &[], &["  b\nc\n"], &[]).unwrap_err();
        assert_eq!(error, KargsError::Control { value: "  b\nc\n".into(), offset: 3, found: '\n' });
    }

    fn area(text: &str, len: usize) -> KargsArea {
        let mut contents = text.as_bytes().to_vec();
        contents.resize(len, b'#');
        let extent = Extent::new(0, len as u64).unwrap();
        KargsArea { extent, pad: None, end: None, contents: contents.into() }
    }

    #[test]
    fn an_area_holds_one_byte_less_than_its_length() {
        let area = area("quiet\n", 10);
        assert_eq!(area.text().unwrap(), "quiet");
        assert_eq!(area.filled("123456789").unwrap(), "123456789\n");
        assert_eq!(area.filled("1234567890"), Err(KargsError::TooLarge { len: 11, capacity: 10 }));
    }

    #[test]
    fn an_argument_that_ends_in_filler_survives() {
        let filled = area("", 10).filled("a#").unwrap();
        assert_eq!(filled, "a#\n#######");
        let read = KargsArea { contents: filled, ..area("", 10) };
        assert_eq!(read.text().unwrap(), "a#");
    }
}
