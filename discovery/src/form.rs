//! Forms of a discovery image: full ISO, minimal ISO or initrd.

use std::fmt;

use ignition::discovery::{HttpUrl, InputError};
use serde::{Deserialize, Serialize};

/// The form of a discovery image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "FormDocument", into = "FormDocument")]
pub enum Form {
    /// An ISO that contains the root file system.
    Full,
    /// An ISO that downloads its root file system at boot.
    Minimal {
        /// The URL to download the root file system from.
        rootfs_url: HttpUrl,
    },
    /// The initrd for hosts that boot over the network.
    Initrd,
}

/// A form in a plan file. All variants have braces, because serde accepts unknown fields in variants without braces.
#[derive(Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "lowercase", deny_unknown_fields)]
enum FormDocument {
    Full {},
    Minimal { rootfs_url: String },
    Initrd {},
}

impl TryFrom<FormDocument> for Form {
    type Error = InputError;

    fn try_from(document: FormDocument) -> Result<Self, InputError> {
        Ok(match document {
            FormDocument::Full {} => Self::Full,
            FormDocument::Minimal { rootfs_url } => {
                Self::Minimal { rootfs_url: HttpUrl::parse("rootfs_url", &rootfs_url)? }
            }
            FormDocument::Initrd {} => Self::Initrd,
        })
    }
}

impl From<Form> for FormDocument {
    fn from(form: Form) -> Self {
        match form {
            Form::Full => Self::Full {},
            Form::Minimal { rootfs_url } => Self::Minimal { rootfs_url: rootfs_url.as_str().to_owned() },
            Form::Initrd => Self::Initrd {},
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full => "full ISO",
            Self::Minimal { .. } => "minimal ISO",
            Self::Initrd => "initrd",
        })
    }
}
