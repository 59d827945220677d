//! Optional compressions of this crate: xz and zstd. Each needs a Cargo feature.
//!
//! Without the feature, functions of the same names return an error of the kind
//! [`Unsupported`](std::io::ErrorKind::Unsupported). A caller that knows the position in the file checks
//! [`Compression::is_supported`] first and returns an error with that position.

use std::fmt;

#[cfg(not(feature = "xz"))]
mod no_xz;
#[cfg(not(feature = "zstd"))]
mod no_zstd;
#[cfg(feature = "xz")]
mod xz;
#[cfg(feature = "zstd")]
mod zstd;

#[cfg(not(feature = "xz"))]
pub(crate) use no_xz::{lzma_decoder, pack_xz, xz_decoder};
#[cfg(not(feature = "zstd"))]
pub(crate) use no_zstd::{ZstdFrames, decode_zstd_frame};
#[cfg(feature = "xz")]
pub(crate) use xz::{lzma_decoder, pack_xz, xz_decoder};
#[cfg(feature = "zstd")]
pub(crate) use zstd::{ZstdFrames, decode_zstd_frame};

/// A compression that needs a Cargo feature of this crate.
///
/// `Display` writes the name of the compression, which is also the name of the feature.
///
/// # Examples
///
/// ```
/// assert_eq!(isogen::Compression::Xz.is_supported(), cfg!(feature = "xz"));
/// assert_eq!(isogen::Compression::Xz.to_string(), "xz");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// xz, and LZMA without a container. Needs the feature `xz`.
    Xz,
    /// Zstandard. Needs the feature `zstd`.
    Zstd,
}

impl Compression {
    /// Returns `true` if this build of the crate supports the compression.
    #[must_use]
    pub const fn is_supported(self) -> bool {
        match self {
            Self::Xz => cfg!(feature = "xz"),
            Self::Zstd => cfg!(feature = "zstd"),
        }
    }

    /// Returns the error for a function whose feature is turned off.
    #[cfg(not(all(feature = "xz", feature = "zstd")))]
    fn unsupported<T>(self) -> std::io::Result<T> {
        use std::io::{Error, ErrorKind};
        Err(Error::new(ErrorKind::Unsupported, format!("this build has no support for {self}")))
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        })
    }
}
