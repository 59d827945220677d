//! Times in the formats of the API.

pub(crate) use assisted::time::parse;
pub use assisted::time::{Micros, Millis};
