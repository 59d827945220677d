//! How large a config gets in an image.

use super::Linter;
use crate::document::Document;
use crate::resource;

/// The bytes that an image has for the packed config.
pub const EMBED_AREA_LEN: usize = 256 << 10;

/// What the archive around a config takes beside it: a header, its name, the end, and padding.
const ARCHIVE_OVERHEAD: usize = 512;

impl Linter {
    /// A config that is smaller than the area needs no packing to fit.
    pub(super) fn size(&mut self, document: &Document) {
        let json = document.to_json();
        if json.len() + ARCHIVE_OVERHEAD <= EMBED_AREA_LEN {
            return;
        }
        let packed = resource::gzip(json.as_bytes()).len() + ARCHIVE_OVERHEAD;
        if packed > EMBED_AREA_LEN {
            let message = format!(
                "packed, the config takes about {packed} bytes; an image has {EMBED_AREA_LEN} for it"
            );
            self.warning(String::new(), message);
        }
    }
}
