//! The error for a failed database lookup.

use crate::error::Error;
use crate::store::StoreError;

/// Returns the error for a failed database lookup. It is 503, because agents retry after it. After a response that an
/// agent regards as final, it stops until the machine is booted again.
pub(super) fn unavailable(error: &StoreError) -> Error {
    error.log("cannot check a token");
    Error::unavailable("the database does not answer; try again").of_request()
}
