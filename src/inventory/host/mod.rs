//! Hosts: machines that booted the image of an infra-env.
//!
//! The agent on a host registers it, and then asks again and again what to do: the steps. What it says of them is kept. Of
//! the states that a host comes through, those before an installation are here.

mod bounds;
mod choice;
mod cluster;
mod journal;
mod key;
mod machine;
mod membership;
mod model;
mod progress;
mod record;
mod refresh;
mod registration;
mod reply;
mod reported;
mod routes;
mod stage;
mod status;
mod steps;
mod string_enum;
mod validation;
mod view;

pub(crate) use cluster::{find_in_cluster, release_hosts};
pub(crate) use key::HostKey;
pub use model::{
    BindHostParams, CertificateVerification, DiskChoice, DiskFormatting, DiskRole, FencingCredentials,
    Header, Host, HostCreateParams, HostIgnitionParams, HostProgress, HostProgressParams, HostUpdateParams,
    InstallerArgsParams, LogsProgressParams, NodeLabel, RegisteredHost, RunnerCommand,
};
pub(crate) use progress::note_logs;
pub use record::{Choices, Findings, HostRecord, InstallationDisk, Logs, Progress};
pub(crate) use routes::routes;
pub use stage::{ChosenRole, HostRole, HostStage, LogsState};
pub use status::{HostKind, HostStatus, MediaStatus};
pub use steps::{PostStepAction, Step, StepReply, StepType, Steps};
pub use validation::{Validation, ValidationStatus};
pub use view::Shown;
pub(crate) use view::views_of_cluster;
