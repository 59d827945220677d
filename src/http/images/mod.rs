//! Images over HTTP: URLs, inputs, and cached plans.
//!
//! A request for an image takes four steps. An [`Artifact`] identifies the file that the URL selects. [`ImageInputs`]
//! checks the access of the caller and returns the current revision. [`Plans`] returns the plan of that revision, and
//! makes it once. [`Content`](crate::http::content::Content) does the HTTP part. The answer is kept for half a second:
//! a host reads its image in thousands of ranges under one URL.

mod artifact;
mod cached_response;
mod counted_body;
mod digest_file;
mod embedded;
mod external;
mod inputs;
mod listing;
mod plans;
mod recent_answers;
mod request_slots;
mod requested;
mod routes;
mod server;
mod serving;
mod trace;

pub use artifact::{Artifact, BootFile};
pub(crate) use counted_body::CountedBody;
pub use embedded::Embedded;
pub use external::{External, ExternalError, ExternalSettings, QUIET, TRUST};
pub use inputs::{Access, Current, ImageInputs, Origin};
pub use plans::{Plans, What};
pub(crate) use recent_answers::Requester;
pub use request_slots::MAX_REQUESTS;
pub use server::ImageServer;
