//! `kindling infra-env create`: registers an infra-env in a service.

use std::io::{self, IsTerminal};

use anyhow::Result;
use assisted::client::ApiClient;
use assisted::infra_env::{InfraEnv, InfraEnvCreateParams};
use clap::Args;
use ignition::network::KeyfileCache;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::EXIT_CODES;
use crate::cli::connection::UserConnectionOptions;
use crate::cli::discovery::{SharedInfraEnvOptions, option_text, parse_architecture, read_optional_file};
use crate::cli::grouped_findings::report_lines;
use crate::cli::output::{escape_controls, print_json, print_line};
use crate::cli::refusal::RefusedInputs;
use crate::cli::shell::program_command;
use discovery::{Checked, Draft, Located, SourceLocation};
use inventory::catalogue::CpuArchitecture;
use inventory::infra_env::create_params;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Create {
    /// Print the API's resource as JSON
    #[arg(long)]
    json: bool,
    /// Name of the infra-env [default: the name of the InfraEnv in the manifests]
    #[arg(value_name = "NAME", required_unless_present = "manifests")]
    name: Option<String>,
    /// OpenShift version of the base image [default: the version in the manifests, or the newest version
    /// of the service]
    #[arg(long, value_name = "VERSION", help_heading = "Infra-env")]
    openshift_version: Option<String>,
    /// CPU architecture of the machines [default: the architecture in the manifests, or x86_64]
    #[arg(
        long,
        visible_alias = "cpu-architecture",
        value_name = "ARCH",
        value_parser = parse_architecture,
        help_heading = "Infra-env"
    )]
    arch: Option<CpuArchitecture>,
    /// Type of the image [default: the type in the manifests, or the default of the service]
    #[arg(long, value_name = "TYPE", value_parser = ["full-iso", "minimal-iso"], help_heading = "Infra-env")]
    image_type: Option<String>,
    /// File with the pull secret
    #[arg(long, value_name = "FILE", required_unless_present = "manifests", help_heading = "Infra-env")]
    pull_secret: Option<String>,
    #[command(flatten)]
    infra_env: SharedInfraEnvOptions,
    #[command(flatten)]
    connection: UserConnectionOptions,
}

impl Create {
    pub(super) fn run(self) -> Result<()> {
        const NOTHING_CREATED: &str = "no infra-env was created";
        let (draft, mut findings) = self.infra_env.draft(self.own_draft()?, NOTHING_CREATED)?;
        let params = match create_params(&draft, &KeyfileCache::default()) {
            Ok(Checked { value, warnings }) => {
                findings.append(warnings);
                Some(value)
            }
            Err(more) => {
                findings.append(more);
                None
            }
        };
        let Some(params) = params.filter(|_| !findings.is_fatal()) else {
            return Err(RefusedInputs::print_and_refuse(findings, false, NOTHING_CREATED).into());
        };
        eprint!("{}", report_lines(&findings));
        if self.json {
            print_json(&self.register::<Map<String, Value>>(&params)?)
        } else {
            self.print_created(&self.register(&params)?)
        }
    }

    fn register<T: DeserializeOwned>(&self, params: &InfraEnvCreateParams) -> Result<T> {
        let register = async |client: ApiClient| Ok(client.register_infra_env_as(params).await?);
        self.connection.call(|builder| builder, register)
    }

    /// Prints the id. On a terminal, also prints the next commands to run.
    fn print_created(&self, created: &InfraEnv) -> Result<()> {
        print_line(created.id)?;
        if io::stderr().is_terminal() {
            let (kindling, options) = (program_command(), self.connection.repeated_options());
            eprintln!("Boot machines from {}", escape_controls(created.download_url.reveal()));
            eprintln!("Then list them with `{kindling} infra-env hosts {}{options}`", created.id);
        }
        Ok(())
    }

    /// Returns a draft with the options that only this command has.
    fn own_draft(&self) -> Result<Draft> {
        let architecture = self.arch.map(|arch| arch.to_string());
        Ok(Draft {
            name: self.name.clone().map(|name| Located::new(name, SourceLocation::whole("NAME"))),
            version: option_text("--openshift-version", self.openshift_version.as_ref()),
            architecture: option_text("--arch", architecture.as_ref()),
            image_type: option_text("--image-type", self.image_type.as_ref()),
            pull_secret: read_optional_file("--pull-secret", self.pull_secret.as_deref())?,
            ..Draft::default()
        })
    }
}
