//! The policy `local`: the service accepts tokens signed with its own key.

use std::fmt;
use std::num::NonZero;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use lru::LruCache;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::facts::TokenFacts;
use super::keys::LocalKeys;
use super::kind::{AuthKind, Scope};
use super::token::{Grant, TokenError, Verified};
use super::unavailable::unavailable;
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::store::{Key, Kind, Records};

/// Maximum number of cached verified tokens. A large site has one token per host.
const MAX_SEEN: NonZero<usize> = NonZero::new(8192).unwrap();

/// A policy that checks tokens with one key pair. Clones share the key pair and the cache.
#[derive(Clone)]
pub struct LocalPolicy(Arc<LocalPolicyParts>);

struct LocalPolicyParts {
    keys: LocalKeys,
    /// Verified tokens by their SHA-256 digest. The duration of a lookup reveals nothing about a cached token.
    seen: Mutex<LruCache<[u8; 32], Verified>>,
}

impl fmt::Debug for LocalPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalPolicy(<redacted>)")
    }
}

impl LocalPolicy {
    /// Creates a policy that checks tokens with a key pair.
    #[must_use]
    pub fn new(keys: LocalKeys) -> Self {
        Self(Arc::new(LocalPolicyParts { keys, seen: Mutex::new(LruCache::new(MAX_SEEN)) }))
    }

    /// Returns the key pair that signs and verifies the tokens.
    #[must_use]
    pub fn keys(&self) -> &LocalKeys {
        &self.0.keys
    }

    /// Returns the scope of a token. `kind` determines the header or parameter that carried the token.
    pub(crate) async fn judge(
        &self,
        facts: &impl TokenFacts,
        kind: AuthKind,
        token: &str,
    ) -> Result<Scope, Error> {
        let token = if kind == AuthKind::User { without_scheme(token) } else { token };
        let grant = self.verify(token, facts.now());
        match (kind, grant.map_err(|error| unauthenticated(error.to_string()))?) {
            (AuthKind::User, Grant::User) | (AuthKind::Ticket, Grant::Ticket) => Ok(Scope::Everything),
            // Agents poll often, so the database is not queried. The cache notices within a second that another replica
            // removed the infra-env. In addition, no operation of an agent succeeds without its host, which is removed
            // earlier.
            (AuthKind::Agent, Grant::InfraEnv(id)) if facts.is_known_infra_env(id) => Ok(Scope::InfraEnv(id)),
            (AuthKind::Agent | AuthKind::Url, Grant::InfraEnv(id)) => {
                require_exists(facts.records(), Kind::InfraEnv, id.0).await?;
                Ok(Scope::InfraEnv(id))
            }
            (AuthKind::Agent | AuthKind::Url, Grant::Cluster(id)) => {
                require_exists(facts.records(), Kind::Cluster, id.0).await?;
                Ok(Scope::Cluster(id))
            }
            _ => Err(unauthenticated(format!("the token is not for {kind}"))),
        }
    }

    /// Returns `true` if the token is valid at `now` and was issued for this infra-env.
    pub(crate) fn is_for_infra_env(&self, now: DateTime<Utc>, infra_env: InfraEnvId, token: &str) -> bool {
        self.verify(token, now) == Ok(Grant::InfraEnv(infra_env))
    }

    fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Grant, TokenError> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let cached = self.with_verified_tokens(|cache| cache.get(&digest).copied());
        if let Some(verified) = cached {
            if verified.is_over(now) {
                self.with_verified_tokens(|cache| cache.pop(&digest));
                return Err(TokenError::Expired);
            }
            return Ok(verified.grant);
        }
        let verified = self.0.keys.verify(token, now)?;
        self.with_verified_tokens(|cache| cache.put(digest, verified));
        Ok(verified.grant)
    }

    fn with_verified_tokens<T>(&self, use_it: impl FnOnce(&mut LruCache<[u8; 32], Verified>) -> T) -> T {
        let mut cache = self.0.seen.lock().unwrap_or_else(|poisoned| {
            // The cache decides access, and a panic may have left it inconsistent, so clear it. The tokens are then
            // verified again.
            let mut cache = poisoned.into_inner();
            *cache = LruCache::new(MAX_SEEN);
            self.0.seen.clear_poison();
            cache
        });
        use_it(&mut cache)
    }
}

/// Removes the `Bearer` scheme, which most clients put before a user's token.
fn without_scheme(token: &str) -> &str {
    match token.split_at_checked("bearer ".len()) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer ") => token.trim_start(),
        _ => token,
    }
}

/// Returns an error if the infra-env or cluster of a token does not exist. The check queries the database, so that all
/// replicas refuse the token as soon as the infra-env or cluster is removed.
async fn require_exists(records: &Records, kind: Kind, id: Uuid) -> Result<(), Error> {
    let key = Key { kind, parent: None, id };
    match records.store().exists(key).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(unauthenticated(format!("{key} does not exist"))),
        Err(error) => Err(unavailable(&error)),
    }
}

fn unauthenticated(reason: String) -> Error {
    Error::unauthorized(reason)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::keys::KeyTexts;
    use super::*;

    #[test]
    fn poisoned_token_cache_is_cleared() {
        let texts = KeyTexts::generate().unwrap();
        let policy = LocalPolicy::new(LocalKeys::parse(texts.private.reveal(), None).unwrap());
        let now = DateTime::UNIX_EPOCH;
        let token = policy.keys().user_token(now, None).unwrap();
        let verified = policy.keys().verify(token.reveal(), now).unwrap();
        let half_changed = catch_unwind(AssertUnwindSafe(|| {
            policy.with_verified_tokens(|cache| {
                cache.put(Sha256::digest("forged").into(), verified);
                panic!("half-changed");
            })
        }));
        assert!(half_changed.is_err());
        assert_eq!(policy.verify("forged", now), Err(TokenError::Malformed));
        assert_eq!(policy.verify(token.reveal(), now), Ok(Grant::User));
        policy.with_verified_tokens(|cache| assert_eq!(cache.len(), 1));
    }
}
