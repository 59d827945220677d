//! Mirrors of container registries that images contain.

use ignition::discovery::{CertificateBundle, InputError, Mirrors};
use serde::{Deserialize, Serialize};

/// Mirrors of container registries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorRegistries {
    /// The text of podman's `registries.conf`.
    pub registries_conf: String,
    /// The authorities that signed the certificates of the mirrors, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}

impl MirrorRegistries {
    /// Returns the mirrors without white space around the certificates, which images do not contain.
    pub(crate) fn trimmed(self) -> Self {
        let ca_bundle = self.ca_bundle.map(|pem| pem.trim().to_owned()).filter(|pem| !pem.is_empty());
        Self { ca_bundle, ..self }
    }

    /// Returns the mirrors as an input of images.
    ///
    /// # Errors
    ///
    /// Returns an error that names the field if podman would reject `registries.conf`, or if the certificates are
    /// invalid.
    pub(crate) fn parse(&self) -> Result<Mirrors, InputError> {
        let authority = self.ca_bundle.as_deref();
        let authority = authority.map(|pem| CertificateBundle::parse("mirror_registries.ca-bundle.crt", pem));
        Mirrors::new(&self.registries_conf, authority.transpose()?)
    }
}
