//! The id of a request, which connects the request with the events that it causes.

use uuid::Uuid;

/// The id of a request. Events caused by the request contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(pub Uuid);

impl RequestId {
    /// Creates a random id.
    #[must_use]
    pub fn fresh() -> Self {
        Self(Uuid::new_v4())
    }
}
