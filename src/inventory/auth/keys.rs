//! The key pair that tokens are signed with: ECDSA over P-256, in PEM.

use std::fmt;

use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, ParsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jsonwebtoken::{DecodingKey, EncodingKey};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::inventory::Secret;

/// The longest text that is looked at for a key. Keys with all that people put around them have a few hundred bytes.
const MAX_TEXT: usize = 64 << 10;
/// The blocks that a private key may come in: SEC 1, and PKCS #8.
const PRIVATE_LABELS: [&str; 2] = ["EC PRIVATE KEY", "PRIVATE KEY"];
/// The blocks that a public key may come in. Both hold the same; the first one is what the Assisted Installer writes.
const PUBLIC_LABELS: [&str; 2] = ["EC PUBLIC KEY", "PUBLIC KEY"];

/// A key cannot be used. What is in it is not said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no such block in the text.
    #[error("the {0} key is neither PEM, with a block {labels}, nor base64 of such a text", labels = .0.labels())]
    NoPem(KeyHalf),
    /// There is, with something else in it.
    #[error("the {0} key is no key of the curve P-256")]
    NoP256(KeyHalf),
    /// Each is good for itself.
    #[error("the public key does not belong to the private key")]
    Strangers,
    /// The system gives no randomness.
    #[error("no key pair can be made: the system gives no random numbers")]
    NoRandomness,
}

/// One key of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHalf {
    /// The one that makes tokens.
    Private,
    /// The one that checks them.
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

/// A key pair as text.
#[derive(Clone, Debug)]
pub struct KeyTexts {
    /// The private key, in PEM.
    pub private: Secret,
    /// The public key, in PEM.
    pub public: String,
}

impl KeyTexts {
    /// A new key pair.
    ///
    /// # Errors
    ///
    /// When the system gives no randomness.
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

/// The key pair of a service. Its clones are the same one.
#[derive(Clone)]
pub struct LocalKeys {
    id: Uuid,
    pub(super) signing: EncodingKey,
    pub(super) verifying: DecodingKey,
}

impl fmt::Debug for LocalKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKeys(<redacted>)")
    }
}

impl LocalKeys {
    /// Takes a private key: PEM, or base64 of PEM in one line. The public key follows from it; one that is given has to be
    /// the same.
    ///
    /// # Errors
    ///
    /// When a text is no key of P-256, or the two do not belong together.
    pub fn parse(private: &str, public: Option<&str>) -> Result<Self, KeyError> {
        let der = decode(KeyHalf::Private, private)?;
        let pair = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, &der)
            .map_err(|_| KeyError::NoP256(KeyHalf::Private))?;
        if let Some(public) = public {
            check_belongs(&pair, &decode(KeyHalf::Public, public)?)?;
        }
        let pkcs8 = pair.to_pkcs8v1().map_err(|_| KeyError::NoP256(KeyHalf::Private))?;
        Ok(Self {
            id: id_of(pair.public_key().as_ref()),
            signing: EncodingKey::from_ec_der(pkcs8.as_ref()),
            verifying: DecodingKey::from_ec_der(pair.public_key().as_ref()),
        })
    }

    /// What names the pair. It tells nothing of the private key.
    pub(super) fn id(&self) -> Uuid {
        self.id
    }
}

/// What names a key pair: a digest of its public key.
fn id_of(public: &[u8]) -> Uuid {
    let digest: [u8; 32] = Sha256::digest(public).into();
    uuid::Builder::from_custom_bytes(digest.first_chunk().copied().unwrap_or_default()).into_uuid()
}

/// Two keys belong together if one confirms what the other signs.
fn check_belongs(pair: &EcdsaKeyPair, public: &[u8]) -> Result<(), KeyError> {
    const PROBE: &[u8] = b"these two keys belong together";
    let public = ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
        .map_err(|_| KeyError::NoP256(KeyHalf::Public))?;
    let signature = pair.sign(&SystemRandom::new(), PROBE).map_err(|_| KeyError::NoRandomness)?;
    public.verify_sig(PROBE, signature.as_ref()).map_err(|_| KeyError::Strangers)
}

/// What the first fitting block of a text holds.
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
    fn pairs_are_read_as_they_are_written() {
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
    fn a_key_of_pkcs8_is_as_good() {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let text = pem::encode(&pem::Pem::new("PRIVATE KEY", pair.to_pkcs8v1().unwrap().as_ref()));
        LocalKeys::parse(&text, None).unwrap();
    }

    #[test]
    fn other_keys_are_refused_without_showing_them() {
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
            r#"the public key is neither PEM, with a block "EC PUBLIC KEY" or "PUBLIC KEY", nor base64 of such a text"#
        );
    }
}
