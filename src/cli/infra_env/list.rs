//! `kindling infra-env list`: lists the infra-envs of a service.

use std::ops::ControlFlow;

use anyhow::Result;
use assisted::Micros;
use clap::Args;
use serde::Deserialize;

use super::{EXIT_CODES, allow_long_lists, time_text};
use crate::cli::connection::UserConnectionOptions;
use crate::cli::output::{JsonListOutput, print_bytes};
use crate::cli::table::TextTable;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct List {
    /// Print the API's resources as a JSON list
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: UserConnectionOptions,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InfraEnvRow {
    name: String,
    id: String,
    openshift_version: String,
    cpu_architecture: Option<String>,
    #[serde(rename = "type")]
    image_type: String,
    created_at: Micros,
}

impl List {
    pub(super) fn run(self) -> Result<()> {
        if self.json {
            let mut list = JsonListOutput::default();
            let result = self.connection.call(allow_long_lists, async |client| {
                Ok(client.visit_infra_envs(|item| list.push(&item)).await?)
            });
            return list.finish(result);
        }
        let mut table = TextTable::new(["NAME", "ID", "VERSION", "ARCH", "TYPE", "CREATED"]);
        let add_row = |row: InfraEnvRow| {
            let arch = row.cpu_architecture.unwrap_or_default();
            let created = time_text(row.created_at);
            table.push([&row.name, &row.id, &row.openshift_version, &arch, &row.image_type, &created]);
            ControlFlow::Continue(())
        };
        self.connection
            .call(allow_long_lists, async |client| Ok(client.visit_infra_envs(add_row).await?))?;
        if table.is_empty() {
            eprintln!("no infra-envs; `kindling infra-env create` creates one");
            return Ok(());
        }
        print_bytes(table.to_text().as_bytes())
    }
}
