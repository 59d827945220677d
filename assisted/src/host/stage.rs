//! Roles, installation stages and log states of hosts.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::string_enum::string_enum;

string_enum! {
    /// Role of a host in its cluster.
    #[derive(Default)]
    HostRole as host_role {
        /// The service chooses the role.
        #[default]
        AutoAssign = "auto-assign",
        /// A control plane node.
        Master = "master",
        /// The arbiter of a control plane with two nodes.
        Arbiter = "arbiter",
        /// A worker node.
        Worker = "worker",
        /// The bootstrap host.
        Bootstrap = "bootstrap",
    }

    /// A role that users can choose.
    ChosenRole as host_role_update_params {
        /// The service chooses the role.
        AutoAssign = "auto-assign",
        /// A control plane node.
        Master = "master",
        /// The arbiter of a control plane with two nodes.
        Arbiter = "arbiter",
        /// A worker node.
        Worker = "worker",
    }

    /// A stage of an installation.
    HostStage as host_stage {
        /// The installer started.
        Starting = "Starting installation",
        /// Waiting for the control plane that the host joins.
        WaitingForControlPlane = "Waiting for control plane",
        /// Waiting for the bootstrap host's control plane.
        WaitingForBootkube = "Waiting for bootkube",
        /// Waiting for the controller in the cluster.
        WaitingForController = "Waiting for controller",
        /// Downloading the files to install.
        Installing = "Installing",
        /// Writing the system to disk.
        WritingImage = "Writing image to disk",
        /// Writing the container registry of the image to disk.
        CopyingRegistry = "Copying registry data to disk",
        /// Booting from disk.
        Rebooting = "Rebooting",
        /// The host has not fetched its Ignition config yet.
        WaitingForIgnition = "Waiting for ignition",
        /// The host fetched its Ignition config.
        Configuring = "Configuring",
        /// The host is a node of the cluster.
        Joined = "Joined",
        /// The node is ready.
        Done = "Done",
        /// The installation failed.
        Failed = "Failed",
    }
}

/// State of the log upload of a host or a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LogsState {
    /// Logs were not requested.
    #[default]
    #[serde(rename = "")]
    None,
    /// Logs were requested.
    #[serde(rename = "requested")]
    Requested,
    /// Logs are being collected.
    #[serde(rename = "collecting")]
    Collecting,
    /// Logs were uploaded.
    #[serde(rename = "completed")]
    Completed,
    /// Logs did not arrive in time.
    #[serde(rename = "timeout")]
    Timeout,
}

impl LogsState {
    /// All values.
    pub const ALL: [Self; 5] =
        [Self::Requested, Self::Collecting, Self::Completed, Self::Timeout, Self::None];

    /// Returns the string that the API uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Requested => "requested",
            Self::Collecting => "collecting",
            Self::Completed => "completed",
            Self::Timeout => "timeout",
        }
    }
}

impl fmt::Display for LogsState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<ChosenRole> for HostRole {
    fn from(role: ChosenRole) -> Self {
        match role {
            ChosenRole::AutoAssign => Self::AutoAssign,
            ChosenRole::Master => Self::Master,
            ChosenRole::Arbiter => Self::Arbiter,
            ChosenRole::Worker => Self::Worker,
        }
    }
}

#[cfg(feature = "openapi")]
mod schema {
    use std::borrow::Cow;

    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
    use utoipa::{PartialSchema, ToSchema};

    use super::LogsState;

    /// Implemented by hand, because a derived schema omits the empty string.
    impl PartialSchema for LogsState {
        fn schema() -> RefOr<Schema> {
            let values = Self::ALL.map(Self::as_str);
            ObjectBuilder::new().schema_type(Type::String).enum_values(Some(values)).build().into()
        }
    }

    impl ToSchema for LogsState {
        fn name() -> Cow<'static, str> {
            Cow::Borrowed("logs_state")
        }
    }
}
