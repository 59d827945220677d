//! Serves images over HTTP: parses their URLs, gets their inputs, and caches their plans.
//!
//! A request for an image takes four steps:
//!
//! 1. The URL selects an [`Artifact`].
//! 2. [`ImageInputs`] checks the caller's access and returns the current revision of the infra-env.
//! 3. The plan cache returns the plan of that revision, and creates it if it is missing. A URL can also contain a
//!    revision. Then the plan must have this revision.
//! 4. [`ServedFile`](crate::http::content::ServedFile) creates the HTTP response.
//!
//! The response is cached for half a second, because a host reads its image in thousands of ranges from one URL.

mod added_images;
mod artifact;
mod boot_trace;
mod cached_response;
mod counted_body;
mod description;
mod digest_file;
mod download_log;
mod embedded;
mod external;
mod inputs;
mod listing;
mod plans;
mod recent_answers;
mod request_slots;
mod requested_image;
mod revisions;
mod routes;
mod server;
mod serving;
mod shared_digest;
mod source_error;

pub use added_images::follow_added_images;
pub use artifact::{Artifact, BaseImageFile};
pub(crate) use counted_body::CountedBody;
pub use embedded::EmbeddedInputs;
pub use external::{ExternalError, ExternalInputs, ExternalSettings};
pub use inputs::{Currency, ImageCredentials, ImageInputs, InfraEnvSnapshot, SnapshotState, SourceStatus};
pub(crate) use recent_answers::Requester;
pub(crate) use request_slots::MAX_REQUESTS;
pub(in crate::http) use routes::document;
pub(crate) use server::BASE_IMAGE_WAIT;
pub use server::ImageServer;
pub use source_error::SourceError;
