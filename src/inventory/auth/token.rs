//! Tokens: what they say, how they are made and how they are checked.
//!
//! A token is a JWT, signed with ES256. One for machines says one thing: `infra_env_id` or `cluster_id`. One for people says
//! `"auth_scheme": "userAuth"`. Each may have an end, `exp`; those that go into URLs and images have none.

use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header, encode};
use serde::{Deserialize, Serialize};

use super::keys::LocalKeys;
use crate::inventory::Secret;
use crate::inventory::id::{ClusterId, InfraEnvId};

/// The longest token that is looked at. Ours have about 200 bytes.
const MAX_TOKEN: usize = 4 << 10;
/// What tokens of people say.
const USER_SCHEME: &str = "userAuth";

#[derive(Debug, Default, Serialize, Deserialize)]
struct Claims {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    infra_env_id: Option<InfraEnvId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster_id: Option<ClusterId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auth_scheme: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
}

/// What a token opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    User,
    InfraEnv(InfraEnvId),
    Cluster(ClusterId),
}

/// What a good token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verified {
    pub(super) grant: Grant,
    expires: Option<i64>,
}

impl Verified {
    /// Whether its time is over.
    pub(super) fn is_over(&self, now: DateTime<Utc>) -> bool {
        self.expires.is_some_and(|end| end <= now.timestamp())
    }
}

/// Why a token is not good. Clients hear it, so it says nothing of the token itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("the token cannot be read as a JWT of ES256")]
    Malformed,
    #[error("the token is not signed with the key of this service")]
    Signature,
    #[error("the token has expired")]
    Expired,
    #[error("the token does not say what it is for")]
    Claims,
}

impl LocalKeys {
    /// A token for the machines and URLs of an infra-env. It never expires. As of all tokens: should signing fail, which
    /// takes a system without random numbers, it is empty and opens nothing.
    #[must_use]
    pub fn infra_env_token(&self, id: InfraEnvId) -> Secret {
        self.sign(&Claims { infra_env_id: Some(id), ..Claims::default() })
    }

    /// A token for the URLs of a cluster. It never expires.
    #[must_use]
    pub fn cluster_token(&self, id: ClusterId) -> Secret {
        self.sign(&Claims { cluster_id: Some(id), ..Claims::default() })
    }

    /// A token for a person, or a program that acts for one.
    #[must_use]
    pub fn user_token(&self, expires: Option<DateTime<Utc>>) -> Secret {
        let (auth_scheme, exp) = (Some(USER_SCHEME.to_owned()), expires.map(|end| end.timestamp()));
        self.sign(&Claims { auth_scheme, exp, ..Claims::default() })
    }

    fn sign(&self, claims: &Claims) -> Secret {
        match encode(&Header::new(Algorithm::ES256), claims, &self.signing) {
            Ok(token) => Secret::new(token),
            Err(error) => {
                tracing::error!(%error, "a token cannot be signed");
                Secret::default()
            }
        }
    }

    /// Checks a token.
    pub(super) fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Verified, TokenError> {
        use jsonwebtoken::errors::ErrorKind;
        let is_ours = |header: Header| header.alg == Algorithm::ES256;
        if token.len() > MAX_TOKEN || !decode_header(token).is_ok_and(is_ours) {
            return Err(TokenError::Malformed);
        }
        let mut rules = Validation::new(Algorithm::ES256);
        // The end is checked here, by the same clock and to the same second as that of tokens that were seen before.
        rules.required_spec_claims.clear();
        rules.validate_exp = false;
        rules.validate_nbf = true;
        let claims =
            decode::<Claims>(token, &self.verifying, &rules).map_err(|error| match error.kind() {
                ErrorKind::InvalidSignature => TokenError::Signature,
                ErrorKind::Json(_) | ErrorKind::InvalidAudience | ErrorKind::ImmatureSignature => {
                    TokenError::Claims
                }
                _ => TokenError::Malformed,
            })?;
        let verified = Verified { grant: grant(&claims.claims)?, expires: claims.claims.exp };
        if verified.is_over(now) { Err(TokenError::Expired) } else { Ok(verified) }
    }
}

/// A token that names both an infra-env and a cluster is one of the infra-env. One that speaks of a person as well says two
/// things at once, and so nothing.
fn grant(claims: &Claims) -> Result<Grant, TokenError> {
    match (claims.auth_scheme.as_deref(), claims.infra_env_id, claims.cluster_id) {
        (Some(USER_SCHEME), None, None) => Ok(Grant::User),
        (None, Some(infra_env), _) => Ok(Grant::InfraEnv(infra_env)),
        (None, None, Some(cluster)) => Ok(Grant::Cluster(cluster)),
        _ => Err(TokenError::Claims),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
    use chrono::TimeDelta;
    use serde_json::{Value, json};

    use super::super::keys::KeyTexts;
    use super::*;

    fn keys() -> LocalKeys {
        LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap()
    }

    fn payload(token: &Secret) -> Value {
        let part = token.reveal().split('.').nth(1).unwrap();
        serde_json::from_slice(&BASE64.decode(part).unwrap()).unwrap()
    }

    fn signed(keys: &LocalKeys, claims: &Value) -> String {
        encode(&Header::new(Algorithm::ES256), claims, &keys.signing).unwrap()
    }

    #[test]
    fn tokens_say_one_thing() {
        let (keys, now) = (keys(), Utc::now());
        let (infra_env, cluster) = (InfraEnvId::fresh(), ClusterId::fresh());
        let token = keys.infra_env_token(infra_env);
        assert_eq!(payload(&token), json!({"infra_env_id": infra_env}));
        assert_eq!(keys.verify(token.reveal(), now).unwrap().grant, Grant::InfraEnv(infra_env));
        let token = keys.cluster_token(cluster);
        assert_eq!(payload(&token), json!({"cluster_id": cluster}));
        assert_eq!(keys.verify(token.reveal(), now).unwrap().grant, Grant::Cluster(cluster));
        let token = keys.user_token(None);
        assert_eq!(payload(&token), json!({"auth_scheme": "userAuth"}));
        assert_eq!(keys.verify(token.reveal(), now).unwrap().grant, Grant::User);
        // In a URL of an image, with a base of usual length, no more than 255 characters.
        assert!(keys.infra_env_token(infra_env).reveal().len() < 210);
    }

    #[test]
    fn time_ends_to_the_second() {
        let (keys, now) = (keys(), Utc::now());
        let token = keys.user_token(Some(now + TimeDelta::seconds(1)));
        let verified = keys.verify(token.reveal(), now).unwrap();
        assert!(!verified.is_over(now));
        assert!(verified.is_over(now + TimeDelta::seconds(1)));
        assert_eq!(keys.verify(token.reveal(), now + TimeDelta::seconds(1)), Err(TokenError::Expired));
    }

    #[test]
    fn claims_that_contradict_are_none() {
        let (keys, now) = (keys(), Utc::now());
        let (infra_env, cluster) = (InfraEnvId::fresh(), ClusterId::fresh());
        let both = json!({"infra_env_id": infra_env, "cluster_id": cluster});
        assert_eq!(keys.verify(&signed(&keys, &both), now).unwrap().grant, Grant::InfraEnv(infra_env));
        for claims in [
            json!({}),
            json!([]),
            json!({"sub": infra_env}),
            json!({"infra_env_id": "*"}),
            json!({"infra_env_id": [infra_env]}),
            json!({"infra_env_id": infra_env, "exp": "tomorrow"}),
            json!({"infra_env_id": infra_env, "nbf": 32_503_680_000_i64}),
            json!({"infra_env_id": infra_env, "aud": "another service"}),
            json!({"infra_env_id": infra_env, "auth_scheme": "userAuth"}),
            json!({"auth_scheme": "agentAuth"}),
            json!({"auth_scheme": ""}),
        ] {
            assert_eq!(keys.verify(&signed(&keys, &claims), now), Err(TokenError::Claims), "{claims}");
        }
    }
}
