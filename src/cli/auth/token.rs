//! `kindling auth token`.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Utc};
use clap::Args;

use super::KeyOptions;
use crate::cli::duration;
use crate::cli::output::print_line;
use crate::cli::serve::value::id;
use crate::inventory::id::{ClusterId, InfraEnvId};

/// Make a token for a service with `--auth-type local`
///
/// It needs the private key of the service, and nothing else: the service is not asked.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("whose").required(true))]
pub(in crate::cli) struct Token {
    /// Make a token for a person, or a program that acts for one: it opens everything, in the header Authorization
    #[arg(long, group = "whose")]
    user: bool,
    /// Make a token for the machines of an infra-env, in X-Secret-Key, and for its URLs, in api_key; it never expires
    #[arg(long, value_name = "ID", group = "whose", value_parser = id::<InfraEnvId>)]
    infra_env: Option<InfraEnvId>,
    /// Make a token for the machines of a cluster, in X-Secret-Key, and for its URLs, in api_key; it never expires
    #[arg(long, value_name = "ID", group = "whose", value_parser = id::<ClusterId>)]
    cluster: Option<ClusterId>,
    /// How long the token of a person is good: a duration such as 12h or 30d, or `never` for one that does not expire
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = Life::parse, conflicts_with_all = ["infra_env", "cluster"])]
    expires: Life,
    #[command(flatten)]
    keys: KeyOptions,
}

/// How long a token is good.
#[derive(Clone, Copy, Debug)]
enum Life {
    Of(Duration),
    Endless,
}

impl Life {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "never" { Ok(Self::Endless) } else { duration::parse(text).map(Self::Of) }
    }

    fn end(self) -> Result<Option<DateTime<Utc>>> {
        let Self::Of(duration) = self else { return Ok(None) };
        let delta = chrono::TimeDelta::from_std(duration).ok();
        let end = delta.and_then(|delta| Utc::now().checked_add_signed(delta));
        end.map(Some).context("the token would expire after the end of time")
    }
}

impl Token {
    pub(super) fn run(self) -> Result<()> {
        let keys = self.keys.read()?;
        let token = match (self.infra_env, self.cluster) {
            (Some(id), _) => keys.infra_env_token(id),
            (None, Some(id)) => keys.cluster_token(id),
            (None, None) => keys.user_token(self.expires.end()?),
        };
        if token.is_empty() {
            bail!("no token can be signed: the system gives no random numbers");
        }
        print_line(token.reveal())
    }
}
