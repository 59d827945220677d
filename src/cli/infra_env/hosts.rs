//! `kindling infra-env hosts`: lists the hosts of an infra-env.

use std::ops::ControlFlow;

use anyhow::Result;
use clap::Args;
use serde::Deserialize;

use super::{EXIT_CODES, allow_long_lists, find_infra_env};
use crate::cli::connection::UserConnectionOptions;
use crate::cli::output::{JsonListOutput, print_bytes};
use crate::cli::table::TextTable;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Hosts {
    /// Print the API's resources as a JSON list, with all reports of the hosts
    #[arg(long)]
    json: bool,
    /// Id or name of the infra-env
    #[arg(value_name = "ID|NAME")]
    infra_env: String,
    #[command(flatten)]
    connection: UserConnectionOptions,
}

/// The columns of a host. Does not keep the reports of the host, which take tens of kilobytes.
#[derive(Default, Deserialize)]
#[serde(default)]
struct HostRow {
    requested_hostname: String,
    id: String,
    status: String,
    role: Option<String>,
    suggested_role: Option<String>,
    status_info: String,
}

impl HostRow {
    /// Formats the role. Adds the suggested role if the user did not choose one.
    fn role_text(&self) -> String {
        let role = self.role.as_deref().unwrap_or_default();
        match self.suggested_role.as_deref() {
            Some(suggested) if role == "auto-assign" && suggested != role && !suggested.is_empty() => {
                format!("{role} ({suggested})")
            }
            _ => role.to_owned(),
        }
    }
}

impl Hosts {
    pub(super) fn run(self) -> Result<()> {
        if self.json {
            let mut list = JsonListOutput::default();
            let result = self.connection.call(allow_long_lists, async |client| {
                let id = find_infra_env(&client, &self.infra_env).await?;
                Ok(client.visit_hosts(id, |item| list.push(&item)).await?)
            });
            return list.finish(result);
        }
        let mut table = TextTable::new(["NAME", "ID", "STATUS", "ROLE", "STATUS INFO"]);
        let add_row = |row: HostRow| {
            table.push([&row.requested_hostname, &row.id, &row.status, &row.role_text(), &row.status_info]);
            ControlFlow::Continue(())
        };
        self.connection.call(allow_long_lists, async |client| {
            let id = find_infra_env(&client, &self.infra_env).await?;
            Ok(client.visit_hosts(id, add_row).await?)
        })?;
        if table.is_empty() {
            eprintln!("no hosts yet; machines register when they boot the image of the infra-env");
            return Ok(());
        }
        print_bytes(table.to_text().as_bytes())
    }
}
