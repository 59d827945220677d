//! The base image that a connection sends at the moment.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::base_files::BaseFile;

/// The file whose mapped bytes a connection sends, for its socket: hyper passes on bytes alone.
///
/// A connection sends one response at a time. If bytes of an earlier one are still buffered, the socket finds that they
/// are not of this file, and copies them.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct SendingFile(Arc<Mutex<Weak<BaseFile>>>);

impl SendingFile {
    /// Sets the file of the answer that begins.
    pub(in crate::http) fn begin_answer(&self, file: Weak<BaseFile>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = file;
    }

    /// Returns the file, unless the answer has ended and no other user of the file is left.
    pub(super) fn current_file(&self) -> Option<Arc<BaseFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}
