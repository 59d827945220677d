//! The response to a host registration.

use serde::{Deserialize, Serialize};

use super::Host;
use crate::id::{HostId, InfraEnvId};
use crate::wire::{is_default, null_as_default};

/// A registered host, and the command that its agent runs next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = host_registration_response))]
pub struct RegisteredHost {
    /// The registered host.
    #[serde(flatten)]
    pub host: Host,
    /// Command that the agent runs next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = RunnerCommand, required = true))]
    pub next_step_runner_command: Option<RunnerCommand>,
}

/// Arguments with which an agent starts its step runner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = next_step_runner_command))]
pub struct RunnerCommand {
    /// Program to run. Services leave it empty: the agent knows the program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub command: String,
    /// Arguments: one JSON object, in a string.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub args: Vec<String>,
    /// Seconds until the agent registers again if the command fails. 0: one hour.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub retry_seconds: i64,
}

impl RunnerCommand {
    /// Returns the command with these arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if the arguments cannot be written as JSON.
    ///
    /// # Examples
    ///
    /// ```
    /// use assisted::host::{RunnerArguments, RunnerCommand};
    /// use assisted::{HostId, InfraEnvId};
    ///
    /// let arguments = RunnerArguments {
    ///     infra_env_id: InfraEnvId::fresh(),
    ///     host_id: HostId::fresh(),
    ///     agent_version: "quay.io/example/agent:1".to_owned(),
    /// };
    /// let command = RunnerCommand::new(&arguments)?;
    /// assert_eq!(command.arguments()?, arguments);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn new(arguments: &RunnerArguments) -> Result<Self, serde_json::Error> {
        Ok(Self { args: vec![serde_json::to_string(arguments)?], ..Self::default() })
    }

    /// Parses the arguments.
    ///
    /// # Errors
    ///
    /// Returns an error unless `args` is exactly one JSON object with all keys.
    pub fn arguments(&self) -> Result<RunnerArguments, serde_json::Error> {
        match self.args.as_slice() {
            [one] => serde_json::from_str(one),
            all => {
                let message = format!("next_step_runner_command has {} arguments, expected 1", all.len());
                Err(serde::de::Error::custom(message))
            }
        }
    }
}

/// The values that a registered agent needs to start its step runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerArguments {
    /// Infra-env of the host.
    pub infra_env_id: InfraEnvId,
    /// Id of the registered host.
    pub host_id: HostId,
    /// Container image of the agent, from the settings of the service.
    pub agent_version: String,
}
