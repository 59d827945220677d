//! The serving certificate of the webhooks, and the certificate authority (CA) that the API server trusts for it.

mod rotation;
mod secret;
mod served;

pub(crate) use rotation::{CertificateState, RotationError};
pub(crate) use secret::{read, write};
pub(crate) use served::{ServedCertificate, follow_files, follow_secret};

/// The name of the Secret that contains the certificates and keys.
pub const SECRET: &str = "kindling-webhook-certificates";
