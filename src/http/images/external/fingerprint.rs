//! Compares configs without the random signatures of the tokens in them.

use std::sync::LazyLock;

use isogen::Digest;
use regex::bytes::{Captures, Regex};

/// The length of an ES256 signature: 64 bytes in base64. ES256 signatures are random.
const SIGNATURE: usize = 86;

/// Returns the digest of a config without its ES256 signatures, which differ in each response.
pub(super) fn fingerprint(config: &[u8]) -> Digest {
    // `None` if the pattern does not compile. Then signatures count too, and configs with tokens are never equal.
    static TOKEN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?-u)(eyJ[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_-]+\.)([A-Za-z0-9_-]+)").ok());
    let without_signature = |token: &Captures<'_>| {
        let (all, [signed, signature]) = token.extract();
        if signature.len() == SIGNATURE { signed.to_vec() } else { all.to_vec() }
    };
    match &*TOKEN {
        Some(token) => Digest::from_data(&token.replace_all(config, without_signature)),
        None => Digest::from_data(config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed_config(claims: &str, signature: &str) -> Vec<u8> {
        let token = format!("eyJhbGciOiJFUzI1NiJ9.eyJ{claims}.{signature}");
        format!(r#"{{"contents":"TOKEN={token}\nOTHER={token}\n","a":1}}"#).into_bytes()
    }

    #[test]
    fn fingerprint_ignores_only_random_signatures() {
        let (one, other) = ("A".repeat(SIGNATURE), "b_-".repeat(28) + "cd");
        let print = |claims: &str, signature: &str| fingerprint(&signed_config(claims, signature));
        assert_eq!(print("a", &one), print("a", &other));
        assert_ne!(print("a", &one), print("b", &one));
        for len in [43, SIGNATURE - 1, SIGNATURE + 1, 342] {
            assert_ne!(print("a", &"A".repeat(len)), print("a", &"B".repeat(len)), "{len}");
        }
        assert_ne!(fingerprint(b"{}"), fingerprint(b"{ }"));
        let plain = br#"{"a": "eyJ.eyJ.x"}"#;
        assert_eq!(fingerprint(plain), Digest::from_data(plain));
    }
}
