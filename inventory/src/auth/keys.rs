//! The key pair that signs tokens: ECDSA over P-256, in PEM.

use std::fmt;

use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, ParsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jsonwebtoken::{DecodingKey, EncodingKey};
use sha2::digest::array::Array;
use sha2::digest::consts::U16;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::Secret;

/// Maximum length of the text of a key, in bytes. A key with its PEM lines is a few hundred bytes long.
const MAX_TEXT: usize = 64 << 10;
/// PEM labels of a private key: SEC 1 and PKCS #8.
const PRIVATE_LABELS: [&str; 2] = ["EC PRIVATE KEY", "PRIVATE KEY"];
/// PEM labels of a public key. Both labels stand for the same content. The Assisted Installer writes the first label.
const PUBLIC_LABELS: [&str; 2] = ["EC PUBLIC KEY", "PUBLIC KEY"];

/// The reason why a key is unusable. The error texts do not contain the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text has no PEM block with an accepted label.
    #[error("the {0} key is neither PEM with a block {labels} nor base64-encoded PEM", labels = .0.labels())]
    NoPem(KeyHalf),
    /// The block does not contain a key of the curve P-256.
    #[error("the {0} key is not a key of curve P-256")]
    NoP256(KeyHalf),
    /// The private key and the public key are valid, but are not a pair.
    #[error("the public key does not belong to the private key")]
    Strangers,
    /// The system cannot return random numbers.
    #[error("cannot generate a key pair: the operating system provides no random numbers")]
    NoRandomness,
    /// A token cannot be signed.
    #[error("cannot sign a token")]
    Signing,
}

/// One key of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHalf {
    /// The key that signs tokens.
    Private,
    /// The key that checks signatures.
    Public,
}

impl KeyHalf {
    fn labels(self) -> String {
        let labels = if self == Self::Private { PRIVATE_LABELS } else { PUBLIC_LABELS };
        labels.map(|label| format!("{label:?}")).join(" or ")
    }
}

impl fmt::Display for KeyHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Private { "private" } else { "public" })
    }
}

/// A key pair in text form.
#[derive(Clone, Debug)]
pub struct KeyTexts {
    /// The private key, in PEM.
    pub private: Secret,
    /// The public key, in PEM.
    pub public: String,
}

impl KeyTexts {
    /// Generates a new key pair.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot return random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING);
        let pair = pair.map_err(|_| KeyError::NoRandomness)?;
        let private: Result<EcPrivateKeyRfc5915Der<'_>, _> = pair.private_key().as_der();
        let public: Result<PublicKeyX509Der<'_>, _> = pair.public_key().as_der();
        let (Ok(private), Ok(public)) = (private, public) else { return Err(KeyError::NoRandomness) };
        let write = |label: &str, der: &[u8]| {
            let lines = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
            pem::encode_config(&pem::Pem::new(label, der), lines)
        };
        let [private_label, ..] = PRIVATE_LABELS;
        let [public_label, ..] = PUBLIC_LABELS;
        Ok(Self {
            private: Secret::new(write(private_label, private.as_ref())),
            public: write(public_label, public.as_ref()),
        })
    }
}

/// The key pair of a service. Clones share it.
#[derive(Clone)]
pub struct LocalKeys {
    id: Uuid,
    pub(crate) signing: EncodingKey,
    pub(crate) verifying: DecodingKey,
}

impl fmt::Debug for LocalKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKeys(<redacted>)")
    }
}

impl LocalKeys {
    /// Parses a private key, in PEM or in base64 of PEM. The public key is derived from the private key. If `public` is
    /// set, this public key must belong to the private key.
    ///
    /// # Errors
    ///
    /// Returns an error if a text is not a P-256 key, or if the two keys are not a pair.
    pub fn parse(private: &str, public: Option<&str>) -> Result<Self, KeyError> {
        let der = decode(KeyHalf::Private, private)?;
        let pair = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, &der)
            .map_err(|_| KeyError::NoP256(KeyHalf::Private))?;
        if let Some(public) = public {
            check_keys_match(&pair, &decode(KeyHalf::Public, public)?)?;
        }
        let pkcs8 = pair.to_pkcs8v1().map_err(|_| KeyError::NoP256(KeyHalf::Private))?;
        Ok(Self {
            id: key_pair_id(pair.public_key().as_ref()),
            signing: EncodingKey::from_ec_der(pkcs8.as_ref()),
            verifying: DecodingKey::from_ec_der(pair.public_key().as_ref()),
        })
    }

    /// Returns the id of the pair. The id does not reveal the private key.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }
}

/// Returns the id of a key pair: the first 16 bytes of the public key's SHA-256 digest.
fn key_pair_id(public: &[u8]) -> Uuid {
    let (id, _): (Array<u8, U16>, _) = Sha256::digest(public).split();
    uuid::Builder::from_custom_bytes(id.into()).into_uuid()
}

/// Checks that the public key verifies a signature of the private key.
fn check_keys_match(pair: &EcdsaKeyPair, public: &[u8]) -> Result<(), KeyError> {
    const PROBE: &[u8] = b"these two keys belong together";
    let public = ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
        .map_err(|_| KeyError::NoP256(KeyHalf::Public))?;
    let signature = pair.sign(&SystemRandom::new(), PROBE).map_err(|_| KeyError::NoRandomness)?;
    public.verify_sig(PROBE, signature.as_ref()).map_err(|_| KeyError::Strangers)
}

/// Decodes the first PEM block of the text that has a label for this half.
fn decode(half: KeyHalf, text: &str) -> Result<Vec<u8>, KeyError> {
    let labels = if half == KeyHalf::Private { PRIVATE_LABELS } else { PUBLIC_LABELS };
    if text.len() > MAX_TEXT {
        return Err(KeyError::NoPem(half));
    }
    let text = if text.contains("-----BEGIN") {
        text.to_owned()
    } else {
        let packed: String = text.split_ascii_whitespace().collect();
        let bytes = BASE64.decode(packed).map_err(|_| KeyError::NoPem(half))?;
        String::from_utf8(bytes).map_err(|_| KeyError::NoPem(half))?
    };
    let blocks = pem::parse_many(text).map_err(|_| KeyError::NoPem(half))?;
    let block = blocks.into_iter().find(|block| labels.contains(&block.tag()));
    block.map(pem::Pem::into_contents).ok_or(KeyError::NoPem(half))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::ECDSA_P384_SHA384_FIXED_SIGNING;

    use super::*;

    #[test]
    fn key_pair_round_trips_in_all_forms() {
        let texts = KeyTexts::generate().unwrap();
        let private = texts.private.reveal();
        assert!(private.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
        assert!(texts.public.starts_with("-----BEGIN EC PUBLIC KEY-----\n"));
        LocalKeys::parse(private, None).unwrap();
        LocalKeys::parse(private, Some(&texts.public)).unwrap();
        let surrounded = format!(
            "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{private}"
        );
        LocalKeys::parse(&surrounded, Some(&texts.public.replace("EC PUBLIC", "PUBLIC"))).unwrap();
        LocalKeys::parse(&BASE64.encode(private), Some(&format!("{}\n", BASE64.encode(&texts.public))))
            .unwrap();
        LocalKeys::parse(&private.replace('\n', "\r\n"), Some(&texts.public)).unwrap();
    }

    #[test]
    fn pkcs8_private_key_is_accepted() {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let text = pem::encode(&pem::Pem::new("PRIVATE KEY", pair.to_pkcs8v1().unwrap().as_ref()));
        LocalKeys::parse(&text, None).unwrap();
    }

    #[test]
    fn rejects_invalid_and_mismatched_keys_without_revealing_them() {
        let (texts, other) = (KeyTexts::generate().unwrap(), KeyTexts::generate().unwrap());
        let private = texts.private.reveal();
        let p384 = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap();
        let p384 = pem::encode(&pem::Pem::new("PRIVATE KEY", p384.to_pkcs8v1().unwrap().as_ref()));
        let refused = |private: &str, public: &str| LocalKeys::parse(private, Some(public)).unwrap_err();
        assert_eq!(refused(private, &other.public), KeyError::Strangers);
        assert_eq!(refused(private, private), KeyError::NoPem(KeyHalf::Public));
        assert_eq!(refused(&texts.public, &texts.public), KeyError::NoPem(KeyHalf::Private));
        assert_eq!(refused(&p384, &texts.public), KeyError::NoP256(KeyHalf::Private));
        assert_eq!(refused("", ""), KeyError::NoPem(KeyHalf::Private));
        assert_eq!(refused(&"A".repeat(MAX_TEXT + 1), ""), KeyError::NoPem(KeyHalf::Private));
        let cut: String = private.lines().filter(|line| !line.ends_with("==")).take(2).collect();
        assert_eq!(refused(&cut, &texts.public), KeyError::NoPem(KeyHalf::Private));
        let keys = LocalKeys::parse(private, None).unwrap();
        assert_eq!(format!("{keys:?} {texts:?}").matches("redacted").count(), 2);
        let message = KeyError::NoPem(KeyHalf::Public).to_string();
        assert_eq!(
            message,
            r#"the public key is neither PEM with a block "EC PUBLIC KEY" or "PUBLIC KEY" nor base64-encoded PEM"#
        );
    }
}
