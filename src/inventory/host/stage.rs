//! How far an installation is.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::record::HostRecord;
use super::status::HostKind;
use super::string_enum::string_enum;

string_enum! {
    /// What a host does in its cluster.
    #[derive(Default)]
    #[schema(as = host_role)]
    HostRole {
        /// What the cluster lacks.
        #[default]
        AutoAssign = "auto-assign",
        /// Part of the control plane.
        Master = "master",
        /// The third voice of a control plane of two.
        Arbiter = "arbiter",
        /// It bears what the cluster is for.
        Worker = "worker",
        /// The control plane until there is one.
        Bootstrap = "bootstrap",
    }

    /// A role that users may choose.
    #[schema(as = host_role_update_params)]
    ChosenRole {
        /// What the cluster lacks.
        AutoAssign = "auto-assign",
        /// Part of the control plane.
        Master = "master",
        /// The third voice of a control plane of two.
        Arbiter = "arbiter",
        /// It bears what the cluster is for.
        Worker = "worker",
    }

    /// A stage of an installation.
    #[schema(as = host_stage)]
    HostStage {
        /// The installer was started.
        Starting = "Starting installation",
        /// There is no control plane to join yet.
        WaitingForControlPlane = "Waiting for control plane",
        /// The control plane of the bootstrap host is not up yet.
        WaitingForBootkube = "Waiting for bootkube",
        /// Nobody watches the cluster yet.
        WaitingForController = "Waiting for controller",
        /// What has to be on the disk is being fetched.
        Installing = "Installing",
        /// The system is being written.
        WritingImage = "Writing image to disk",
        /// The registry that came with the image is being written.
        CopyingRegistry = "Copying registry data to disk",
        /// It boots its disk.
        Rebooting = "Rebooting",
        /// It has not fetched its configuration yet.
        WaitingForIgnition = "Waiting for ignition",
        /// It fetched its configuration.
        Configuring = "Configuring",
        /// It is a node.
        Joined = "Joined",
        /// It is a node that works.
        Done = "Done",
        /// It failed.
        Failed = "Failed",
    }
}

/// How far the logs of a host or a cluster are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LogsState {
    /// Nobody asked for them.
    #[default]
    #[serde(rename = "")]
    None,
    /// They were asked for.
    #[serde(rename = "requested")]
    Requested,
    /// They are being collected.
    #[serde(rename = "collecting")]
    Collecting,
    /// They are there.
    #[serde(rename = "completed")]
    Completed,
    /// They did not come.
    #[serde(rename = "timeout")]
    Timeout,
}

impl LogsState {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Requested, Self::Collecting, Self::Completed, Self::Timeout, Self::None];

    /// As the API writes it.
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

/// Written by hand: a derived one takes the empty word for none at all.
impl PartialSchema for LogsState {
    fn schema() -> RefOr<Schema> {
        let words = Self::ALL.map(Self::as_str);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build().into()
    }
}

impl ToSchema for LogsState {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("logs_state")
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

/// The stages of a host, in order. A host without a role has none.
pub(super) fn stages_of(host: &HostRecord) -> &'static [HostStage] {
    use HostStage::{
        Configuring, CopyingRegistry, Done, Installing, Joined, Rebooting, Starting, WaitingForBootkube,
        WaitingForControlPlane, WaitingForController, WaitingForIgnition, WritingImage,
    };
    const SINGLE: &[HostStage] =
        &[Starting, Installing, WaitingForBootkube, WritingImage, CopyingRegistry, Rebooting, Joined, Done];
    const BOOTSTRAP: &[HostStage] = &[
        Starting,
        Installing,
        WritingImage,
        CopyingRegistry,
        WaitingForControlPlane,
        WaitingForBootkube,
        WaitingForController,
        Rebooting,
        Configuring,
        Joined,
        Done,
    ];
    const MASTER: &[HostStage] =
        &[Starting, Installing, WritingImage, CopyingRegistry, Rebooting, Configuring, Joined, Done];
    const WORKER: &[HostStage] = &[
        Starting,
        Installing,
        WritingImage,
        WaitingForControlPlane,
        Rebooting,
        WaitingForIgnition,
        Configuring,
        Joined,
        Done,
    ];
    let all = match host.role {
        _ if host.single_node => SINGLE,
        _ if host.bootstrap => BOOTSTRAP,
        HostRole::Bootstrap => BOOTSTRAP,
        HostRole::Master | HostRole::Arbiter => MASTER,
        HostRole::Worker => WORKER,
        HostRole::AutoAssign => &[],
    };
    // Nobody tells how a host that joins fares after it left the image.
    match all.iter().position(|stage| *stage == Rebooting) {
        Some(last) if host.kind == HostKind::Joining => all.get(..=last).unwrap_or(all),
        _ => all,
    }
}
