//! Mirrors of container registries.

use super::certificate::CertificateBundle;
use super::input::InputError;
use super::registries;
use crate::builder::{ConfigBuilder, FileMode};

/// Mirrors of container registries: a `registries.conf` for podman, and the certificate authorities of the mirrors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrors {
    registries: String,
    authority: Option<CertificateBundle>,
}

impl Mirrors {
    /// Maximum length of a `registries.conf` in bytes.
    pub const MAX_LEN: usize = 1 << 20;

    /// Creates mirrors from the text of a `registries.conf`, version 2. Podman reads this text unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error with the line if podman would reject the text. Also returns an error if the text has no
    /// `[[registry]]` table, contains a control character, or is longer than [`Self::MAX_LEN`].
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
    ///      line 2: location must begin with a host, not with a URL scheme"
    /// );
    /// ```
    pub fn new(registries: &str, authority: Option<CertificateBundle>) -> Result<Self, InputError> {
        const FIELD: &str = "mirror_registries.registries.conf";
        if registries.len() > Self::MAX_LEN {
            let reason = format!("is longer than {} bytes", Self::MAX_LEN);
            return Err(InputError::new(FIELD, registries, reason));
        }
        if registries.chars().any(|it| it.is_control() && !"\n\r\t".contains(it)) {
            return Err(InputError::new(FIELD, registries, "contains a control character"));
        }
        registries::check_registries(registries).map_err(|it| InputError::new(FIELD, it.line, it.reason))?;
        Ok(Self { registries: registries.to_owned(), authority })
    }

    pub(crate) fn add_authority(&self, builder: &mut ConfigBuilder) {
        if let Some(authority) = &self.authority {
            builder.add_trust_anchor("domain.crt", authority.as_pem());
        }
    }

    pub(crate) fn add_registries(&self, builder: &mut ConfigBuilder) {
        builder.replace_file("/etc/containers/registries.conf", FileMode::PUBLIC, &self.registries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_mirrors_without_registry() {
        let text = "unqualified-search-registries = []\n [[ registry ]] # mine\nlocation = \"quay.io\"\n";
        assert_eq!(Mirrors::new(text, None).unwrap().registries, text);
        for bad in ["", "# [[registry]]", "[registry]", "[[registry]]\0", &"#".repeat((1 << 20) + 1)] {
            let error = Mirrors::new(bad, None).unwrap_err().to_string();
            assert!(error.starts_with("mirror_registries.registries.conf \""), "{error}");
        }
    }
}
