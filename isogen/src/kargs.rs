//! The kernel arguments of an image: the embed areas that contain them, and edits of them.
//!
//! The configs of the boot loaders contain the command line of the base image. On s390x the boot image contains it.
//! Each copy is in an embed area. An area contains the arguments, an end character and filler, and all areas have the
//! same length. In a boot loader config, the last `#` of the filler line is after the area, so a full area is still
//! followed by a comment line.

use bytes::Bytes;

use crate::error::{Error, KargsError, OrInternal, Result};
use crate::extent::Extent;
use crate::plan::{Patch, Segment};
use crate::source::Source;

/// A kernel-argument area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KargsArea {
    /// Position of the area in the image.
    pub extent: Extent,
    /// The filler after the arguments, if the image specifies one.
    pub pad: Option<char>,
    /// The character that ends the arguments, if the image specifies one.
    pub end: Option<char>,
    pub(crate) contents: Bytes,
}

/// The mechanism by which the areas were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum KargsOrigin {
    /// `coreos/kargs.json` lists the areas.
    Description,
    /// The header `coreKarg` in the system area lists the areas.
    Header,
    /// The areas were found by a search for the marker in the boot loaders' configs.
    Marker,
}

/// All kernel-argument areas of an image, with their contents.
#[derive(Debug, Clone)]
pub struct KargsAreas {
    pub(crate) file: String,
    /// Whether an in-place edit was not completed. The contents of the areas are then unknown.
    pub(crate) is_interrupted: bool,
    areas: Vec<KargsArea>,
    area_len: u64,
    default: Option<String>,
    /// The mechanism by which the areas were found.
    pub(crate) origin: KargsOrigin,
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

    /// Returns the arguments in the area, without the filler.
    ///
    /// # Errors
    ///
    /// Returns an error if the area is not text.
    pub(crate) fn text(&self) -> Result<&str, KargsError> {
        let text = std::str::from_utf8(&self.contents).map_err(|error| KargsError::NotText {
            offset: self.extent.offset(),
            invalid_at: error.valid_up_to(),
        })?;
        Ok(text.trim_end_matches(self.pad()).trim_end_matches(self.end()).trim())
    }

    /// Returns the contents of an area of `capacity` bytes that holds `kargs`.
    pub(crate) fn fill_to_len(&self, kargs: &str, capacity: usize) -> Result<Bytes, KargsError> {
        let mut bytes = format!("{kargs}{}", self.end()).into_bytes();
        if bytes.len() > capacity {
            return Err(KargsError::TooLarge { len: bytes.len(), capacity });
        }
        // Use only the low byte of the filler character, like other tools that write these areas.
        let [pad, ..] = u32::from(self.pad()).to_le_bytes();
        bytes.resize(capacity, pad);
        Ok(bytes.into())
    }
}

impl KargsAreas {
    /// Creates a list of areas of equal length, sorted by offset. Returns an error with the reason if the list is empty
    /// or two areas overlap.
    pub(crate) fn new(
        source: &Source,
        mut areas: Vec<KargsArea>,
        default: Option<String>,
        origin: KargsOrigin,
    ) -> Result<Self, String> {
        areas.sort_by_key(|area| area.extent);
        // An area listed twice is one area.
        areas.dedup_by(|a, b| a.extent == b.extent && a.pad == b.pad && a.end == b.end);
        let Some(area_len) = areas.first().map(|area| area.extent.len()) else {
            return Err("it names no areas".into());
        };
        if let Some((a, b)) =
            areas.iter().zip(areas.iter().skip(1)).find(|(a, b)| a.extent.overlaps(b.extent))
        {
            return Err(format!("the areas {} and {} overlap", a.extent, b.extent));
        }
        Ok(Self { file: source.name().to_owned(), is_interrupted: false, areas, area_len, default, origin })
    }

    /// Returns the areas in ascending order of their position in the image.
    #[must_use]
    pub fn areas(&self) -> &[KargsArea] {
        &self.areas
    }

    /// Returns the length of each area in bytes. The maximum length of a command line is one byte less.
    #[must_use]
    pub fn area_len(&self) -> u64 {
        self.area_len
    }

    /// Returns the default arguments, set by the image builder.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not record them.
    pub fn default(&self) -> Result<&str> {
        self.default.as_deref().ok_or_else(|| self.kargs_error(KargsError::NoDefault))
    }

    pub(crate) fn kargs_error(&self, reason: KargsError) -> Error {
        Error::Kargs { file: self.file.clone(), reason }
    }

    /// Returns the current arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if the areas are not text, if they differ from each other, or if an in-place edit was not
    /// completed.
    pub fn current(&self) -> Result<&str> {
        if self.is_interrupted {
            return Err(Error::Interrupted { file: self.file.clone() });
        }
        let (first, others) = self.areas.split_first().or_internal("no kernel-argument areas", 0)?;
        common_text(first, others).map_err(|reason| self.kargs_error(reason))
    }

    /// Applies an edit to the arguments and returns the result. It does not check the length;
    /// [`patches`](Self::patches) does.
    ///
    /// # Errors
    ///
    /// Returns an error if the arguments cannot be read or an operation of the edit is not valid.
    pub(crate) fn apply_edit(&self, edit: &KargsEdit) -> Result<String> {
        let edited = match edit {
            KargsEdit::Set(kargs) => check_no_control_characters(kargs).map(|()| kargs.trim().to_owned()),
            KargsEdit::Reset => Ok(self.default()?.to_owned()),
            KargsEdit::Current(operations) => operations.apply(self.current()?),
            KargsEdit::Default(operations) => operations.apply(self.default()?),
        };
        edited.map_err(|reason| self.kargs_error(reason))
    }

    /// Returns `true` if `kargs` fits into every area.
    pub(crate) fn fits(&self, kargs: &str) -> bool {
        self.areas.iter().all(|area| kargs.len() + area.end().len_utf8() <= area.contents.len())
    }

    /// Returns the patches that write `kargs` into every area.
    ///
    /// # Errors
    ///
    /// Returns an error if `kargs` does not fit.
    pub(crate) fn patches(&self, kargs: &str) -> Result<Vec<Patch>> {
        let patch = |area: &KargsArea| {
            let filled = area.fill_to_len(kargs, area.contents.len());
            let segment = Segment::Bytes(filled.map_err(|reason| self.kargs_error(reason))?);
            Ok(Patch { offset: area.extent.offset(), segment })
        };
        self.areas.iter().map(patch).collect()
    }
}

/// Returns the arguments of the areas, which must be the same in all of them.
fn common_text<'a>(first: &'a KargsArea, others: &[KargsArea]) -> Result<&'a str, KargsError> {
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

/// An edit of the kernel arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KargsEdit {
    /// Replaces all arguments with this command line.
    Set(String),
    /// Restores the default arguments.
    Reset,
    /// Applies operations to the current arguments.
    Current(KargsOperations),
    /// Applies operations to the default arguments.
    Default(KargsOperations),
}

/// Operations on a command line. They run in the order of the fields.
///
/// An argument is the text between two spaces. Quotes have no meaning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KargsOperations {
    /// Arguments to remove. A value that contains spaces matches several consecutive arguments.
    pub delete: Vec<String>,
    /// Arguments to append.
    pub append: Vec<String>,
    /// Replacements of the form `KEY=OLD=NEW`, which change `KEY=OLD` to `KEY=NEW`.
    pub replace: Vec<String>,
}

impl KargsOperations {
    /// Returns `true` if there are no operations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.delete.is_empty() && self.append.is_empty() && self.replace.is_empty()
    }

    /// Applies the operations to a command line.
    ///
    /// # Errors
    ///
    /// Returns an error if a replacement is malformed or an argument contains control characters.
    pub(crate) fn apply(&self, kargs: &str) -> Result<String, KargsError> {
        let mut line = format!(" {kargs} ");
        for argument in &self.delete {
            line = line.replace(&format!(" {} ", argument.trim()), " ");
        }
        for argument in &self.append {
            check_no_control_characters(argument)?;
            line.push_str(argument.trim());
            line.push(' ');
        }
        for replacement in &self.replace {
            check_no_control_characters(replacement)?;
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
        _ => Err(KargsError::InvalidReplacement { value: value.to_owned() }),
    }
}

fn check_no_control_characters(value: &str) -> Result<(), KargsError> {
    // White space around an argument, including line breaks, is trimmed before use.
    let leading = value.len() - value.trim_start().len();
    let mut characters = value.trim().char_indices();
    let Some((at, found)) = characters.find(|(_, it)| it.is_control()) else { return Ok(()) };
    Err(KargsError::ControlCharacter { value: value.to_owned(), offset: leading + at, found })
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
    fn operations_are_applied_in_the_order_of_the_fields() {
        assert_eq!(apply("a b c", &["b"], &["k=1"], &["k=1=2"]).unwrap(), "a c k=2");
    }

    #[test]
    fn delete_matches_whole_arguments_and_keeps_inner_spaces() {
        assert_eq!(apply("rw  foo foobar", &["foo"], &[], &[]).unwrap(), "rw  foobar");
        assert_eq!(apply("a b c d", &["b c"], &[], &[]).unwrap(), "a d");
    }

    /// Two neighbouring duplicates share a space, so one of them remains. Scripts may depend on this behaviour of
    /// `coreos-installer`.
    #[test]
    fn delete_of_adjacent_duplicates_leaves_one() {
        assert_eq!(apply("a a a", &["a"], &[], &[]).unwrap(), "a");
    }

    #[test]
    fn rejects_replacements_without_three_parts() {
        for bad in ["a", "a=b", "a=b=c=d", "=b=c", "a==c", "a=b="] {
            assert!(
                matches!(apply("a=b", &[], &[], &[bad]), Err(KargsError::InvalidReplacement { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn rejects_line_breaks_in_arguments() {
        let error = apply("a", &[], &["b\nc"], &[]).unwrap_err();
        assert_eq!(error, KargsError::ControlCharacter { value: "b\nc".into(), offset: 1, found: '\n' });
        let error = apply("a", &[], &["  b\nc\n"], &[]).unwrap_err();
        assert_eq!(error, KargsError::ControlCharacter { value: "  b\nc\n".into(), offset: 3, found: '\n' });
    }

    fn area(text: &str, len: usize) -> KargsArea {
        let mut contents = text.as_bytes().to_vec();
        contents.resize(len, b'#');
        let extent = Extent::new(0, len as u64).unwrap();
        KargsArea { extent, pad: None, end: None, contents: contents.into() }
    }

    #[test]
    fn area_holds_one_byte_less_than_its_length() {
        let area = area("quiet\n", 10);
        assert_eq!(area.text().unwrap(), "quiet");
        assert_eq!(area.fill_to_len("123456789", 10).unwrap(), "123456789\n");
        assert_eq!(area.fill_to_len("1234567890", 10), Err(KargsError::TooLarge { len: 11, capacity: 10 }));
    }

    #[test]
    fn argument_that_ends_in_filler_is_kept() {
        let filled = area("", 10).fill_to_len("a#", 10).unwrap();
        assert_eq!(filled, "a#\n#######");
        let read = KargsArea { contents: filled, ..area("", 10) };
        assert_eq!(read.text().unwrap(), "a#");
    }
}
