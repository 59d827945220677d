//! Registries that stand in for others.

use super::certificate::CertificateBundle;
use super::input::InputError;
use super::parts::Parts;
use super::registries;
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

    /// Takes the text of a `registries.conf` of version 2, which podman reads as it is.
    ///
    /// # Errors
    ///
    /// When podman would refuse the text, naming the line; and when it has no `[[registry]]` table, holds a control
    /// character, or is longer than [`Self::MAX_LEN`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::Mirrors;
    ///
    /// let error = Mirrors::new("[[registry]]\nlocation = 'https://quay.io'\n", None).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "mirror_registries.registries.conf \"location = 'https://quay.io'\": \
    ///      line 2: location has the scheme of a URL, where a host begins"
    /// );
    /// ```
    pub fn new(registries: &str, authority: Option<CertificateBundle>) -> Result<Self, InputError> {
        const FIELD: &str = "mirror_registries.registries.conf";
        if registries.len() > Self::MAX_LEN {
            let reason = format!("is longer than {} bytes", Self::MAX_LEN);
            return Err(InputError::new(FIELD, registries, reason));
        }
        if registries.chars().any(|it| it.is_control() && !"\n\r\t".contains(it)) {
            return Err(InputError::new(FIELD, registries, "holds a control character"));
        }
        registries::check(registries).map_err(|it| InputError::new(FIELD, it.line, it.reason))?;
        Ok(Self { registries: registries.to_owned(), authority })
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
        for bad in ["", "# [[registry]]", "[registry]", "[[registry]]\0", &"#".repeat((1 << 20) + 1)] {
            let error = Mirrors::new(bad, None).unwrap_err().to_string();
            assert!(error.starts_with("mirror_registries.registries.conf \""), "{error}");
        }
    }
}
