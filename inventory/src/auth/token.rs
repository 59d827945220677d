//! Creates and verifies tokens.
//!
//! A token is a JWT signed with ES256. A token for agents and URLs has one claim, `infra_env_id` or `cluster_id`. A
//! token for users has `"auth_scheme": "userAuth"`, a ticket for the stream of changes `"auth_scheme": "ticket"`. A
//! ticket has an expiry time, `exp`. Other tokens may have one, but tokens in URLs and images have none.
//!
//! Tokens of users and tickets also contain the time when they were issued, as `iat` and `nbf`. Tokens in URLs do not:
//! the Assisted Service creates them with one claim, and image URLs must fit in the 255 characters that some BMCs
//! accept.

use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header, encode};
use serde::{Deserialize, Serialize};

use super::keys::{KeyError, LocalKeys};
use crate::Secret;
use crate::id::{ClusterId, InfraEnvId};

/// Maximum length of an accepted token, in bytes. Tokens of this service are about 200 bytes long.
const MAX_TOKEN: usize = 4 << 10;
/// Maximum time by which the clock of a machine that issues tokens may be ahead of this machine's clock.
const MAX_CLOCK_SKEW: TimeDelta = TimeDelta::seconds(60);
/// Value of `auth_scheme` in tokens of users.
const USER_SCHEME: &str = "userAuth";
/// Value of `auth_scheme` in tickets.
const TICKET_SCHEME: &str = "ticket";

#[derive(Debug, Default, Serialize, Deserialize)]
struct Claims {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    infra_env_id: Option<InfraEnvId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster_id: Option<ClusterId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auth_scheme: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iat: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbf: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
}

impl Claims {
    /// Returns the claims of a token issued at `now`.
    fn of_scheme(scheme: &str, now: DateTime<Utc>) -> Self {
        let now = Some(now.timestamp());
        Self { auth_scheme: Some(scheme.to_owned()), iat: now, nbf: now, ..Self::default() }
    }
}

/// The resource that a token grants access to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    User,
    Ticket,
    InfraEnv(InfraEnvId),
    Cluster(ClusterId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    pub(crate) grant: Grant,
    expires: Option<i64>,
}

impl Verified {
    pub(crate) fn is_over(&self, now: DateTime<Utc>) -> bool {
        self.expires.is_some_and(|end| end <= now.timestamp())
    }
}

/// The reason why a token is invalid. Clients receive these texts, so the texts contain no part of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the token is not a valid ES256 JWT")]
    Malformed,
    #[error("the token is not signed with the key of this service")]
    Signature,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    NotYetValid,
    #[error("the token is for another audience")]
    Audience,
    #[error("the token does not name a scope")]
    Claims,
}

impl LocalKeys {
    /// Signs a token for the hosts and URLs of an infra-env. The token never expires.
    ///
    /// # Errors
    ///
    /// Returns an error if signing fails, for example because the system provides no random numbers.
    pub fn infra_env_token(&self, id: InfraEnvId) -> Result<Secret, KeyError> {
        self.sign(&Claims { infra_env_id: Some(id), ..Claims::default() })
    }

    /// Signs a token for the URLs of a cluster. The token never expires.
    ///
    /// # Errors
    ///
    /// Returns an error if signing fails.
    pub fn cluster_token(&self, id: ClusterId) -> Result<Secret, KeyError> {
        self.sign(&Claims { cluster_id: Some(id), ..Claims::default() })
    }

    /// Signs a token for a user, or for a program that acts for one. The token is valid from `now`.
    ///
    /// # Errors
    ///
    /// Returns an error if signing fails.
    pub fn user_token(&self, now: DateTime<Utc>, expires: Option<DateTime<Utc>>) -> Result<Secret, KeyError> {
        let exp = expires.map(|end| end.timestamp());
        self.sign(&Claims { exp, ..Claims::of_scheme(USER_SCHEME, now) })
    }

    /// Signs a ticket for the stream of changes. The ticket is valid from `now`.
    ///
    /// # Errors
    ///
    /// Returns an error if signing fails.
    pub fn ticket(&self, now: DateTime<Utc>, expires: DateTime<Utc>) -> Result<Secret, KeyError> {
        self.sign(&Claims { exp: Some(expires.timestamp()), ..Claims::of_scheme(TICKET_SCHEME, now) })
    }

    fn sign(&self, claims: &Claims) -> Result<Secret, KeyError> {
        // The optional `typ` is omitted, so that an image URL with a token and a revision fits into 255 characters.
        let header = Header { typ: None, ..Header::new(Algorithm::ES256) };
        let token = encode(&header, claims, &self.signing);
        token.map(Secret::new).map_err(|error| {
            tracing::error!(%error, "cannot sign a token");
            KeyError::Signing
        })
    }

    /// Verifies a token: its form, signature, claims and expiry time.
    pub(crate) fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Verified, TokenError> {
        use jsonwebtoken::errors::ErrorKind;
        let is_ours = |header: Header| header.alg == Algorithm::ES256;
        if token.len() > MAX_TOKEN || !decode_header(token).is_ok_and(is_ours) {
            return Err(TokenError::Malformed);
        }
        let mut rules = Validation::new(Algorithm::ES256);
        // The times are checked below, with the same clock and precision as for cached tokens.
        rules.required_spec_claims.clear();
        rules.validate_exp = false;
        let claims =
            decode::<Claims>(token, &self.verifying, &rules).map_err(|error| match error.kind() {
                ErrorKind::InvalidSignature => TokenError::Signature,
                // Every audience is wrong, because this service has no name.
                ErrorKind::InvalidAudience => TokenError::Audience,
                ErrorKind::Json(_) => TokenError::Claims,
                _ => TokenError::Malformed,
            })?;
        let latest = now.checked_add_signed(MAX_CLOCK_SKEW).unwrap_or(now);
        if claims.claims.nbf.is_some_and(|begin| begin > latest.timestamp()) {
            return Err(TokenError::NotYetValid);
        }
        let verified = Verified { grant: grant(&claims.claims)?, expires: claims.claims.exp };
        if verified.is_over(now) { Err(TokenError::Expired) } else { Ok(verified) }
    }
}

/// Returns the resource that the claims name. A token that names both an infra-env and a cluster is for the infra-env.
/// A token that names a resource and has an `auth_scheme` is invalid, and so is a ticket that never expires.
fn grant(claims: &Claims) -> Result<Grant, TokenError> {
    match (claims.auth_scheme.as_deref(), claims.infra_env_id, claims.cluster_id) {
        (Some(USER_SCHEME), None, None) => Ok(Grant::User),
        (Some(TICKET_SCHEME), None, None) if claims.exp.is_some() => Ok(Grant::Ticket),
        (None, Some(infra_env), _) => Ok(Grant::InfraEnv(infra_env)),
        (None, None, Some(cluster)) => Ok(Grant::Cluster(cluster)),
        _ => Err(TokenError::Claims),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
    use serde_json::{Value, json};

    use super::super::keys::KeyTexts;
    use super::super::policy::Policy;
    use super::*;

    const NOW: DateTime<Utc> = DateTime::from_timestamp(1_800_000_000, 0).unwrap();

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
    fn token_grants_what_its_claim_names() {
        let (keys, now) = (keys(), NOW);
        let (infra_env, cluster) = (InfraEnvId::fresh(), ClusterId::fresh());
        let token = keys.infra_env_token(infra_env).unwrap();
        assert_eq!(payload(&token), json!({"infra_env_id": infra_env}));
        assert_eq!(keys.verify(token.reveal(), now).unwrap().grant, Grant::InfraEnv(infra_env));
        let token = keys.cluster_token(cluster).unwrap();
        assert_eq!(payload(&token), json!({"cluster_id": cluster}));
        assert_eq!(keys.verify(token.reveal(), now).unwrap().grant, Grant::Cluster(cluster));
        let token = keys.user_token(now, None).unwrap();
        let issued_at = now.timestamp();
        assert_eq!(payload(&token), json!({"auth_scheme": "userAuth", "iat": issued_at, "nbf": issued_at}));
        assert_eq!(keys.verify(token.reveal(), now).unwrap().grant, Grant::User);
        let end = now + chrono::TimeDelta::seconds(60);
        let token = keys.ticket(now, end).unwrap();
        let claims =
            json!({"auth_scheme": "ticket", "iat": issued_at, "nbf": issued_at, "exp": end.timestamp()});
        assert_eq!(payload(&token), claims);
        assert_eq!(keys.verify(token.reveal(), now).unwrap().grant, Grant::Ticket);
        // An image URL with a base URL of usual length then has at most 255 characters.
        assert!(keys.infra_env_token(infra_env).unwrap().reveal().len() < 190);
    }

    #[test]
    fn token_that_cannot_be_signed_is_an_error() {
        let mut keys = keys();
        // An HMAC key cannot sign ES256.
        keys.signing = jsonwebtoken::EncodingKey::from_secret(b"a");
        assert_eq!(keys.infra_env_token(InfraEnvId::fresh()), Err(KeyError::Signing));
        assert_eq!(keys.cluster_token(ClusterId::fresh()), Err(KeyError::Signing));
        assert_eq!(keys.user_token(NOW, None), Err(KeyError::Signing));
        let policy = Policy::local(keys);
        assert_eq!(
            policy.url_token(InfraEnvId::fresh()).unwrap_err().kind(),
            crate::error::ErrorKind::Internal
        );
    }

    #[test]
    fn token_expires_at_the_second() {
        let (keys, now) = (keys(), NOW);
        let token = keys.user_token(now, Some(now + TimeDelta::seconds(1))).unwrap();
        let verified = keys.verify(token.reveal(), now).unwrap();
        assert!(!verified.is_over(now));
        assert!(verified.is_over(now + TimeDelta::seconds(1)));
        assert_eq!(keys.verify(token.reveal(), now + TimeDelta::seconds(1)), Err(TokenError::Expired));
    }

    #[test]
    fn token_is_valid_from_its_time_with_a_small_clock_skew() {
        let (keys, now, infra_env) = (keys(), NOW, InfraEnvId::fresh());
        let from = |begin: TimeDelta| {
            let claims = json!({"infra_env_id": infra_env, "nbf": (now + begin).timestamp()});
            keys.verify(&signed(&keys, &claims), now).map(|verified| verified.grant)
        };
        for valid in [TimeDelta::days(-1), TimeDelta::zero(), MAX_CLOCK_SKEW] {
            assert_eq!(from(valid), Ok(Grant::InfraEnv(infra_env)));
        }
        for early in [MAX_CLOCK_SKEW + TimeDelta::seconds(1), TimeDelta::days(365)] {
            assert_eq!(from(early), Err(TokenError::NotYetValid));
        }
    }

    #[test]
    fn rejects_tokens_for_an_audience() {
        let (keys, now, infra_env) = (keys(), NOW, InfraEnvId::fresh());
        for audience in [json!("another service"), json!(["kindling"])] {
            let claims = json!({"infra_env_id": infra_env, "aud": audience});
            assert_eq!(keys.verify(&signed(&keys, &claims), now), Err(TokenError::Audience));
        }
    }

    #[test]
    fn tokens_of_earlier_releases_are_valid() {
        let (keys, now) = (keys(), NOW);
        let user = signed(&keys, &json!({"auth_scheme": "userAuth"}));
        assert_eq!(keys.verify(&user, now).unwrap().grant, Grant::User);
        let ticket = json!({"auth_scheme": "ticket", "exp": now.timestamp() + 10});
        assert_eq!(keys.verify(&signed(&keys, &ticket), now).unwrap().grant, Grant::Ticket);
    }

    #[test]
    fn rejects_contradictory_claims() {
        let (keys, now) = (keys(), NOW);
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
            json!({"infra_env_id": infra_env, "auth_scheme": "userAuth"}),
            json!({"auth_scheme": "agentAuth"}),
            json!({"auth_scheme": "ticket"}),
            json!({"auth_scheme": "ticket", "exp": 32_503_680_000_i64, "infra_env_id": infra_env}),
            json!({"auth_scheme": ""}),
        ] {
            assert_eq!(keys.verify(&signed(&keys, &claims), now), Err(TokenError::Claims), "{claims}");
        }
    }
}
