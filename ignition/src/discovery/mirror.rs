//! Registries that stand in for others.

use super::certificate::CertificateBundle;
use super::input::InputError;
use super::parts::Parts;
use crate::builder::FileMode;

/// Mirrors of container registries: podman's `registries.conf`, and who signs their certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrors {
    registries: String,
    authority: Option<CertificateBundle>,
}

impl Mirrors {
    /// Most bytes of a `registries.conf`.
    pub const MAX_LEN: usize = 1 << 20;

    /// Takes the text of a `registries.conf` of version 2.
    ///
    /// The text is TOML that podman reads. Only what makes it pointless is refused here.
    ///
    /// # Errors
    ///
    /// When the text has no `[[registry]]` table, holds a control character, or is longer than [`Self::MAX_LEN`].
    pub fn new(registries: &str, authority: Option<CertificateBundle>) -> Result<Self, InputError> {
        const FIELD: &str = "mirror_registries.registries.conf";
        let is_table = |line: &str| line.split_whitespace().collect::<String>().starts_with("[[registry]]");
        let reason = if registries.len() > Self::MAX_LEN {
            format!("is longer than {} bytes", Self::MAX_LEN)
        } else if registries.chars().any(|it| it.is_control() && !"\n\r\t".contains(it)) {
            "holds a control character".to_owned()
        } else if !registries.lines().any(is_table) {
            "has no [[registry]] table".to_owned()
        } else {
            return Ok(Self { registries: registries.to_owned(), authority });
        };
        Err(InputError::new(FIELD, registries, reason))
    }

    /// Trusts who signed the mirrors' certificates.
    pub(super) fn add_authority(&self, parts: &mut Parts) {
        if let Some(authority) = &self.authority {
            parts.anchor("domain.crt", authority);
        }
    }

    /// Tells podman of the mirrors.
    pub(super) fn add_registries(&self, parts: &mut Parts) {
        parts.file("/etc/containers/registries.conf", FileMode::PUBLIC, &self.registries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_needs_a_registry() {
        let text = "unqualified-search-registries = []\n [[ registry ]] # mine\nlocation = \"quay.io\"\n";
        assert_eq!(Mirrors::new(text, None).unwrap().registries, text);
        for bad in ["", "# [[registry]]", "[registry]", "[[registry]]\0"] {
            let error = Mirrors::new(bad, None).unwrap_err().to_string();
            assert!(error.starts_with("mirror_registries.registries.conf \""), "{error}");
        }
    }
}
