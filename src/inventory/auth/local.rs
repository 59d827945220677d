//! The policy `local`: tokens that this service signs itself.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use chrono::Utc;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::keys::LocalKeys;
use super::token::{Grant, TokenError, Verified};
use super::{AuthKind, Scope};
use crate::api_error::ApiError;
use crate::inventory::id::InfraEnvId;
use crate::inventory::store::{Key, Kind, Records};
use crate::recent::Recent;

/// How many tokens are known to be good without another look at their signature. A token of each host of a large site.
const MOST_SEEN: usize = 4096;

/// Judges tokens by one key pair. Clones are the same policy.
#[derive(Clone)]
pub struct LocalPolicy(Arc<Parts>);

struct Parts {
    keys: LocalKeys,
    /// Good tokens by their digests: what was compared with a token tells nobody anything of another one.
    seen: Mutex<Recent<[u8; 32], Verified>>,
}

impl fmt::Debug for LocalPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalPolicy(<redacted>)")
    }
}

impl LocalPolicy {
    /// A policy of a key pair.
    #[must_use]
    pub fn new(keys: LocalKeys) -> Self {
        Self(Arc::new(Parts { keys, seen: Mutex::new(Recent::new(MOST_SEEN)) }))
    }

    /// The key pair.
    #[must_use]
    pub fn keys(&self) -> &LocalKeys {
        &self.0.keys
    }

    /// What a token reaches that stands where those of a kind do.
    pub(super) async fn judge(
        &self,
        records: &Records,
        kind: AuthKind,
        token: &str,
    ) -> Result<Scope, ApiError> {
        let token = if kind == AuthKind::User { without_scheme(token) } else { token };
        match (kind, self.verify(token).map_err(|error| unauthenticated(error.to_string()))?) {
            (AuthKind::User, Grant::User) => Ok(Scope::Everything),
            (AuthKind::Agent | AuthKind::Url, Grant::InfraEnv(id)) => {
                require_there(records, Kind::InfraEnv, id.0).await?;
                Ok(Scope::InfraEnv(id))
            }
            (AuthKind::Agent | AuthKind::Url, Grant::Cluster(id)) => {
                require_there(records, Kind::Cluster, id.0).await?;
                Ok(Scope::Cluster(id))
            }
            _ => Err(unauthenticated(format!("the token is not for {kind}"))),
        }
    }

    /// Whether a token is one of an infra-env.
    pub(super) fn is_of(&self, infra_env: InfraEnvId, token: &str) -> bool {
        self.verify(token) == Ok(Grant::InfraEnv(infra_env))
    }

    fn verify(&self, token: &str) -> Result<Grant, TokenError> {
        let now = Utc::now();
        let digest: [u8; 32] = Sha256::digest(token).into();
        let seen = self.seen(|seen| seen.get(digest));
        if let Some(verified) = seen {
            if verified.is_over(now) {
                self.seen(|seen| seen.remove(&digest));
                return Err(TokenError::Expired);
            }
            return Ok(verified.grant);
        }
        let verified = self.0.keys.verify(token, now)?;
        self.seen(|seen| seen.insert(digest, verified));
        Ok(verified.grant)
    }

    fn seen<T>(&self, use_it: impl FnOnce(&mut Recent<[u8; 32], Verified>) -> T) -> T {
        // Whoever panicked over the map left it whole: no entry is more than a note of what can be found out again.
        use_it(&mut self.0.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A token of a person, without the name of a scheme that most clients put before it.
fn without_scheme(token: &str) -> &str {
    match token.split_at_checked("bearer ".len()) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer ") => token.trim_start(),
        _ => token,
    }
}

/// A token is as good as what it was made for is there. The database is asked each time, so that a token ends with its
/// infra-env in all replicas at once.
async fn require_there(records: &Records, kind: Kind, id: Uuid) -> Result<(), ApiError> {
    let key = Key { kind, parent: None, id };
    match records.store().is_there(key).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(unauthenticated(format!("{key} does not exist"))),
        Err(error) => Err(super::unavailable(&error)),
    }
}

fn unauthenticated(reason: String) -> ApiError {
    ApiError::at_gate(StatusCode::UNAUTHORIZED, reason)
}
