//! The error for a failed database lookup.

use crate::error::Error;
use crate::store::StoreError;

/// Returns the error for a failed database lookup. The status is 503, which agents retry. After a final error, an agent
/// would stop until the host is booted again.
pub(super) fn unavailable(error: &StoreError) -> Error {
    error.log("cannot check a token");
    Error::unavailable("the database does not respond; try again").of_request()
}
