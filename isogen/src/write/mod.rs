//! Writes a plan to a stream, to a new file, or to the file of its base image. The bytes are the same in all cases.

mod full_disk;
mod in_place;
mod new_file;
mod stream;

pub use full_disk::explain_full_disk;
pub(crate) use in_place::EDIT_MARKER;
pub use new_file::{FileAccess, NewFile};
pub use stream::PlanReader;
