//! The base image of the response that a connection is sending.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::base_files::BaseFile;

/// The file of the base image in the current response. The socket needs it to send pages, because hyper passes only
/// bytes.
///
/// A connection sends one response at a time. If bytes of an earlier response are still buffered, the socket detects
/// that they do not belong to this file, and copies them.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct SendingFile(Arc<Mutex<Weak<BaseFile>>>);

impl SendingFile {
    /// Sets the file at the start of a response.
    pub(in crate::http) fn begin_answer(&self, file: Weak<BaseFile>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = file;
    }

    /// Returns the file. Returns `None` if the response has ended and the file has no other users.
    pub(super) fn current_file(&self) -> Option<Arc<BaseFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}
