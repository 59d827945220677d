//! `kindling infra-env`: creates and shows the infra-envs of a service, and lists their hosts.

mod create;
mod hosts;
mod list;
mod show;

use std::time::Duration;

use anyhow::{Result, bail};
use assisted::client::{ApiClient, ApiClientBuilder};
use assisted::{InfraEnvId, Micros};
use clap::Subcommand;

use super::serve::value::parse_id;

const EXIT_CODES: &str =
    "Exit code: 0 success, 1 the service refuses the request or cannot be reached, 2 wrong usage.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create an infra-env, and print its id
    ///
    /// The infra-env comes from options, from a directory of Kubernetes manifests as `discovery create` reads them
    /// (InfraEnv, NMStateConfig, Secret, ...), or from both: options override manifests. Everything is checked before
    /// anything is sent; findings go to stderr, with file and line.
    Create(Box<create::Create>),
    /// List the infra-envs of a service
    List(list::List),
    /// Show an infra-env, the URL of its image, and findings about its networks, config and addresses
    Show(show::Show),
    /// List the hosts of an infra-env
    Hosts(hosts::Hosts),
}

impl Command {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Self::Create(command) => command.run(),
            Self::List(command) => command.run(),
            Self::Show(command) => command.run(),
            Self::Hosts(command) => command.run(),
        }
    }
}

/// Raises the timeout, because a list may be hundreds of megabytes long, and the reader of stdout may pause.
fn allow_long_lists(builder: ApiClientBuilder) -> ApiClientBuilder {
    builder.timeout(Duration::from_secs(600))
}

/// Returns the id of the infra-env that an argument names by id or by name.
async fn find_infra_env(client: &ApiClient, argument: &str) -> Result<InfraEnvId> {
    if let Ok(id) = parse_id::<InfraEnvId>(argument) {
        return Ok(id);
    }
    match client.infra_envs_with_name(argument).await?.as_slice() {
        [id] => Ok(*id),
        [] => bail!("no infra-env has the name {argument:?}; `kindling infra-env list` shows all"),
        ids => {
            let ids: Vec<String> = ids.iter().map(InfraEnvId::to_string).collect();
            bail!("{} infra-envs have the name {argument:?}; use an id: {}", ids.len(), ids.join(", "))
        }
    }
}

fn time_text(time: Micros) -> String {
    time.0.map_or_else(|| "unknown".to_owned(), |time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}
