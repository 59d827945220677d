//! Where in a config a value stands: a JSON pointer that is written only once there is something to say about it.

use std::fmt;

use crate::position::escape;

/// The place of a value, by that of the value around it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// The whole config.
    Root,
    /// A field of an object.
    Field(&'a Self, &'a str),
    /// An entry of a list.
    Entry(&'a Self, usize),
    /// An entry of the list that a field of an object is.
    FieldEntry(&'a Self, &'a str, usize),
}

/// The JSON pointer.
impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(outer, name) => write!(f, "{outer}/{}", escape(name)),
            Self::Entry(outer, index) => write!(f, "{outer}/{index}"),
            Self::FieldEntry(outer, name, index) => write!(f, "{outer}/{}/{index}", escape(name)),
        }
    }
}

#[test]
fn a_place_is_written_as_a_pointer() {
    let storage = Place::Field(&Place::Root, "storage");
    let file = Place::FieldEntry(&storage, "files", 3);
    assert_eq!(Place::Field(&file, "a/b~c").to_string(), "/storage/files/3/a~1b~0c");
    assert_eq!(Place::Entry(&Place::Field(&storage, "links"), 0).to_string(), "/storage/links/0");
    assert_eq!(Place::Root.to_string(), "");
}
