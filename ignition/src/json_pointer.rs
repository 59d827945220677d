//! JSON pointers as chains of borrowed parts. A pointer is converted to text only if a finding or an error needs it.

use std::fmt;

use crate::position::escape_part;

/// The JSON pointer of a value, relative to the pointer of the value that contains it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JsonPointer<'a> {
    /// The pointer of the whole config.
    Root,
    /// A field of an object.
    Field(&'a Self, &'a str),
    /// An entry of a list.
    Entry(&'a Self, usize),
    /// An entry of a list that is a field of an object.
    FieldEntry(&'a Self, &'a str, usize),
}

/// Writes the pointer as text (RFC 6901).
impl fmt::Display for JsonPointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(outer, name) => write!(f, "{outer}/{}", escape_part(name)),
            Self::Entry(outer, index) => write!(f, "{outer}/{index}"),
            Self::FieldEntry(outer, name, index) => write!(f, "{outer}/{}/{index}", escape_part(name)),
        }
    }
}

#[test]
fn pointer_text_escapes_special_characters() {
    let storage = JsonPointer::Field(&JsonPointer::Root, "storage");
    let file = JsonPointer::FieldEntry(&storage, "files", 3);
    assert_eq!(JsonPointer::Field(&file, "a/b~c").to_string(), "/storage/files/3/a~1b~0c");
    assert_eq!(JsonPointer::Entry(&JsonPointer::Field(&storage, "links"), 0).to_string(), "/storage/links/0");
    assert_eq!(JsonPointer::Root.to_string(), "");
}
