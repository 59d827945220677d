//! Container registry mirrors that images include.

use ignition::discovery::{CertificateBundle, InputError, Mirrors};
use serde::{Deserialize, Serialize};

/// Container registry mirrors for an infra-env's images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorRegistries {
    /// The content of `/etc/containers/registries.conf`, in TOML.
    pub registries_conf: String,
    /// Certificates of the authorities that signed the mirrors' certificates, in PEM format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}

impl MirrorRegistries {
    /// Removes white space around the certificates, because images do not contain it.
    pub(crate) fn trimmed(self) -> Self {
        let ca_bundle = self.ca_bundle.map(|pem| pem.trim().to_owned()).filter(|pem| !pem.is_empty());
        Self { ca_bundle, ..self }
    }

    /// Parses the mirrors for the generation of images.
    ///
    /// # Errors
    ///
    /// Returns an error that names the field if podman would reject `registries_conf`, or if the certificates are
    /// invalid.
    pub(crate) fn parse(&self) -> Result<Mirrors, InputError> {
        let authority = self.ca_bundle.as_deref();
        let authority = authority.map(|pem| CertificateBundle::parse("mirror_registries.ca-bundle.crt", pem));
        Mirrors::new(&self.registries_conf, authority.transpose()?)
    }
}
