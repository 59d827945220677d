//! Certificate bundles that machines trust.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::input::InputError;

const BEGIN_MARKER: &str = "-----BEGIN CERTIFICATE-----";
const END_MARKER: &str = "-----END CERTIFICATE-----";
/// The start of every PEM block, including blocks that are not certificates.
const ANY_BEGIN_MARKER: &str = "-----BEGIN ";

/// One or more certificates in PEM form.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateBundle {
    pem: String,
    count: usize,
}

impl CertificateBundle {
    /// Maximum length of a bundle in bytes.
    pub const MAX_LEN: usize = 1 << 20;

    /// Parses a bundle. White space around it is removed. Comments before a certificate are allowed.
    ///
    /// Parsing checks the structure of each certificate, but not its signature or its validity period.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is too long, has no certificate, contains another kind of block or a damaged
    /// certificate, or has text after the last certificate.
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
        // The error must not contain the text: errors are logged, and a user may have pasted a private key by mistake.
        let refuse =
            |line: usize, reason: &str| InputError::secret(field, format!("line {}: {reason}", line + 1));
        let mut count = 0;
        // The first line of text after the last certificate.
        let mut text_at = None;
        let mut open: Option<(usize, String)> = None;
        for (number, line) in pem.lines().map(str::trim).enumerate() {
            open = match open.take() {
                Some((start, body)) if line == END_MARKER => {
                    if !is_certificate(&body) {
                        return Err(refuse(start, "the certificate is damaged"));
                    }
                    count += 1;
                    text_at = None;
                    None
                }
                Some((start, body)) => Some((start, body + line)),
                None if line == BEGIN_MARKER => Some((number, String::new())),
                None if line.starts_with(ANY_BEGIN_MARKER) => {
                    return Err(refuse(number, "the block is not a certificate"));
                }
                None => {
                    text_at = text_at.or((!line.is_empty()).then_some(number));
                    None
                }
            };
        }
        if let Some((start, _)) = open {
            return Err(refuse(start, "the certificate has no END line"));
        }
        match text_at.or((count == 0).then_some(0)) {
            Some(number) => Err(refuse(number, "expected a PEM certificate")),
            None => Ok(Self { pem: format!("{pem}\n"), count }),
        }
    }

    /// Returns the bundle as PEM with a final newline.
    pub(crate) fn as_pem(&self) -> &str {
        &self.pem
    }
}

/// Returns `true` if the decoded base64 text is exactly one DER sequence.
fn is_certificate(base64: &str) -> bool {
    const DER_SEQUENCE: u8 = 0x30;
    let Ok(der) = BASE64.decode(base64) else { return false };
    let [DER_SEQUENCE, first, rest @ ..] = der.as_slice() else { return false };
    // DER encodes a length below 128 in one byte. A longer length is preceded by the number of its bytes.
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

    const ONE_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMAMC\nAQE=\n-----END CERTIFICATE-----";

    #[test]
    fn bundles_with_blanks_and_comments_are_accepted() {
        let text =
            format!("\n# mine\n{ONE_CERTIFICATE}\n\nother\r\n{}\n \n", ONE_CERTIFICATE.replace('\n', "\r\n"));
        let bundle = CertificateBundle::parse("f", &text).unwrap();
        assert_eq!(bundle.as_pem(), format!("{}\n", text.trim()));
        assert_eq!(format!("{bundle:?}"), "CertificateBundle(2 of them)");
    }

    #[test]
    fn rejects_invalid_bundles() {
        for (bad, reason) in [
            (String::new(), "line 1: expected"),
            ("hunter2".to_owned(), "line 1: expected"),
            (format!("{ONE_CERTIFICATE}\nhunter2"), "line 5: expected"),
            (ONE_CERTIFICATE.replace("CERTIFICATE", "PRIVATE KEY"), "line 1: the block"),
            (ONE_CERTIFICATE.replace("AQE=", "AQE"), "line 1: the certificate is damaged"),
            (ONE_CERTIFICATE.replace("MAMC", "MAQC"), "line 1: the certificate is damaged"),
            (ONE_CERTIFICATE.replace("MAMC", "MQMC"), "line 1: the certificate is damaged"),
            (ONE_CERTIFICATE.replace("MAMC\nAQE=\n", ""), "damaged"),
            (ONE_CERTIFICATE.replace("MAMC\nAQE=", "MP//////"), "damaged"),
            (
                ONE_CERTIFICATE.replace("-----END CERTIFICATE-----", ""),
                "line 1: the certificate has no END line",
            ),
            ("x".repeat(CertificateBundle::MAX_LEN + 1), "longer"),
        ] {
            let error = CertificateBundle::parse("f", &bad).unwrap_err().to_string();
            assert!(error.starts_with("f: ") && error.contains(reason), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
