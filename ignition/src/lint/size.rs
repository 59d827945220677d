//! Rules for the size of a config in an image.

use super::Linter;
use crate::config::Config;
use crate::report::ConfigRule;
use crate::resource;

/// Size of the embed area for the compressed config.
const EMBED_AREA_LEN: usize = 256 << 10;

/// Additional bytes of the archive around a config: a header, a file name, the trailer and padding.
const ARCHIVE_OVERHEAD: usize = 512;

impl Linter {
    /// Warns if the compressed config is larger than the embed area. Compresses a config only if it is too large
    /// uncompressed.
    pub(super) fn lint_size(&mut self, config: &Config) {
        let json = match config.to_json() {
            Ok(json) => json,
            Err(error) => return self.error(String::new(), ConfigRule::Syntax, error.to_string()),
        };
        if json.len() + ARCHIVE_OVERHEAD <= EMBED_AREA_LEN {
            return;
        }
        let packed = resource::gzip(json.as_bytes()).len() + ARCHIVE_OVERHEAD;
        if packed > EMBED_AREA_LEN {
            let message = format!(
                "the config takes about {packed} bytes compressed; the embed area of an image has {EMBED_AREA_LEN}"
            );
            self.warning(String::new(), ConfigRule::Size, message);
        }
    }
}
