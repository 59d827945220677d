//! Certificates that the machine shall trust.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::input::InputError;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
/// What begins every PEM block, certificate or not.
const ANY_BEGIN: &str = "-----BEGIN ";

/// One or more certificates in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateBundle {
    pem: String,
    count: usize,
}

impl CertificateBundle {
    /// Most bytes of a bundle.
    pub const MAX_LEN: usize = 1 << 20;

    /// Reads a bundle. Blanks around it are dropped; comments may stand before a certificate.
    ///
    /// The form of each certificate is checked, not its signature or its time.
    ///
    /// # Errors
    ///
    /// When the text is too long, has no certificate, a block of another kind, a damaged one, or something behind the
    /// last one.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::CertificateBundle;
    ///
    /// let error = CertificateBundle::parse("additional_trust_bundle", "hunter2").unwrap_err();
    /// assert_eq!(error.to_string(), "additional_trust_bundle: line 1: expected a PEM certificate");
    /// ```
    pub fn parse(field: &'static str, pem: &str) -> Result<Self, InputError> {
        let pem = pem.trim();
        if pem.len() > Self::MAX_LEN {
            return Err(InputError::secret(field, format!("is longer than {} bytes", Self::MAX_LEN)));
        }
        // Who pastes a key by mistake shall not find it in a log.
        let refuse =
            |line: usize, reason: &str| InputError::secret(field, format!("line {}: {reason}", line + 1));
        let mut count = 0;
        // The line of text that no certificate follows so far.
        let mut text_at = None;
        let mut open: Option<(usize, String)> = None;
        for (number, line) in pem.lines().map(str::trim).enumerate() {
            open = match open.take() {
                Some((start, body)) if line == END => {
                    if !is_certificate(&body) {
                        return Err(refuse(start, "the certificate is damaged"));
                    }
                    count += 1;
                    text_at = None;
                    None
                }
                Some((start, body)) => Some((start, body + line)),
                None if line == BEGIN => Some((number, String::new())),
                None if line.starts_with(ANY_BEGIN) => {
                    return Err(refuse(number, "the block is no certificate"));
                }
                None => {
                    text_at = text_at.or((!line.is_empty()).then_some(number));
                    None
                }
            };
        }
        if let Some((start, _)) = open {
            return Err(refuse(start, "the certificate has no end"));
        }
        match text_at.or((count == 0).then_some(0)) {
            Some(number) => Err(refuse(number, "expected a PEM certificate")),
            None => Ok(Self { pem: format!("{pem}\n"), count }),
        }
    }

    /// The text, with a line break at its end.
    #[must_use]
    pub fn as_pem(&self) -> &str {
        &self.pem
    }
}

/// Whether base64 holds one DER sequence, and nothing behind it.
fn is_certificate(base64: &str) -> bool {
    const SEQUENCE: u8 = 0x30;
    let Ok(der) = BASE64.decode(base64) else { return false };
    let [SEQUENCE, first, rest @ ..] = der.as_slice() else { return false };
    // A length below 128 stands in one byte, a longer one behind the number of its bytes.
    let (len, body) = match first {
        0..0x80 => (usize::from(*first), rest),
        _ => {
            let Some((digits, body)) = rest.split_at_checked(usize::from(first & 0x7F)) else { return false };
            if digits.len() > 4 {
                return false;
            }
            (digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit)), body)
        }
    };
    len > 0 && len == body.len()
}

impl fmt::Debug for CertificateBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CertificateBundle({} of them)", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "-----BEGIN CERTIFICATE-----\nMAMC\nAQE=\n-----END CERTIFICATE-----";

    #[test]
    fn bundles_are_trimmed_and_may_have_comments() {
        let text = format!("\n# mine\n{ONE}\n\nother\r\n{}\n \n", ONE.replace('\n', "\r\n"));
        let bundle = CertificateBundle::parse("f", &text).unwrap();
        assert_eq!(bundle.as_pem(), format!("{}\n", text.trim()));
        assert_eq!(format!("{bundle:?}"), "CertificateBundle(2 of them)");
    }

    #[test]
    fn what_is_no_bundle_is_refused() {
        for (bad, reason) in [
            (String::new(), "line 1: expected"),
            ("hunter2".to_owned(), "line 1: expected"),
            (format!("{ONE}\nhunter2"), "line 5: expected"),
            (ONE.replace("CERTIFICATE", "PRIVATE KEY"), "line 1: the block"),
            (ONE.replace("AQE=", "AQE"), "line 1: the certificate is damaged"),
            (ONE.replace("MAMC", "MAQC"), "line 1: the certificate is damaged"),
            (ONE.replace("MAMC", "MQMC"), "line 1: the certificate is damaged"),
            (ONE.replace("MAMC\nAQE=\n", ""), "damaged"),
            (ONE.replace("MAMC\nAQE=", "MP//////"), "damaged"),
            (ONE.replace("-----END CERTIFICATE-----", ""), "line 1: the certificate has no end"),
            ("x".repeat(CertificateBundle::MAX_LEN + 1), "longer"),
        ] {
            let error = CertificateBundle::parse("f", &bad).unwrap_err().to_string();
            assert!(error.starts_with("f: ") && error.contains(reason), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
