//! Images over HTTP: which one a URL means, what goes into it, and the plan that is kept for the next range.
//!
//! A request for an image takes four steps. [`Artifact`] says what the URL means. [`ImageInputs`] says whether the caller may have it, and
//! in which revision it is now. [`Plans`] has the plan of that revision, or makes it once. The rest is HTTP, which
//! [`Content`](crate::http::content::Content) does. The answer is remembered for half a second: a machine reads its image in thousands of
//! ranges under one URL.

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
