//! `kindling auth token`: makes a token for a user, or for the hosts of an infra-env or cluster.

use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use serde_json::json;

use super::KeyOptions;
use crate::cli::duration;
use crate::cli::output::{print_json, print_line};
use crate::cli::serve::value::parse_id;
use inventory::clock::{Clock, SystemClock};
use inventory::id::{ClusterId, InfraEnvId};

/// Make a token for a service with `--auth-type local`
///
/// Only the private key of the service is needed; the service does not have to run.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("whose").required(true))]
pub(in crate::cli) struct Token {
    /// Make a token for a user or a user's program (Authorization header). It grants access to everything
    #[arg(long, group = "whose")]
    user: bool,
    /// Make a token for the hosts of an infra-env (X-Secret-Key header) and for its URLs (api_key); it never expires
    #[arg(long, value_name = "ID", group = "whose", value_parser = parse_id::<InfraEnvId>)]
    infra_env: Option<InfraEnvId>,
    /// Make a token for the hosts of a cluster (X-Secret-Key header) and for its URLs (api_key); it never expires
    #[arg(long, value_name = "ID", group = "whose", value_parser = parse_id::<ClusterId>)]
    cluster: Option<ClusterId>,
    /// Lifetime of a user token, such as 12h or 30d, or `never`
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = Lifetime::parse, conflicts_with_all = ["infra_env", "cluster"])]
    expires: Lifetime,
    /// Print JSON: the token and when it expires
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keys: KeyOptions,
}

#[derive(Clone, Copy, Debug)]
enum Lifetime {
    Of(Duration),
    Endless,
}

impl Lifetime {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "never" { Ok(Self::Endless) } else { duration::parse_duration(text).map(Self::Of) }
    }

    fn expiry(self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        let Self::Of(duration) = self else { return Ok(None) };
        let delta = chrono::TimeDelta::from_std(duration).ok();
        let end = delta.and_then(|delta| now.checked_add_signed(delta));
        end.map(Some).context("--expires is too far in the future")
    }
}

impl Token {
    pub(super) fn run(self) -> Result<()> {
        let keys = self.keys.read_keys()?;
        let now = SystemClock.now();
        let expiry = if self.user { self.expires.expiry(now)? } else { None };
        let token = match (self.infra_env, self.cluster) {
            (Some(id), _) => keys.infra_env_token(id),
            (None, Some(id)) => keys.cluster_token(id),
            (None, None) => keys.user_token(now, expiry),
        }?;
        if self.json {
            let expiry = expiry.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true));
            return print_json(&json!({"token": token.reveal(), "expires_at": expiry}));
        }
        print_line(token.reveal())
    }
}
