//! Writes a plan: to a stream, to a new file, or over its own base. All three write the same bytes.

mod in_place;
mod new_file;
mod stream;

pub(crate) use in_place::EDIT_MARKER;
pub use new_file::{Access, NewFile};
pub use stream::PlanReader;
