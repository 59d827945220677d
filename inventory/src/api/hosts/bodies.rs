//! Request bodies about hosts.

use crate::api::request_bodies;
use crate::host::params::{
    BindHostParams, HostCreateParams, HostIgnitionParams, HostProgressParams, HostUpdateParams,
    InstallerArgsParams, LogsProgressParams,
};
use crate::host::steps::StepReply;

request_bodies! {
    HostCreateParams: "newHostParams";
    HostUpdateParams: "hostUpdateParams";
    BindHostParams: "bindHostParams";
    InstallerArgsParams: "installerArgsParams";
    HostIgnitionParams: "hostIgnitionParams";
    HostProgressParams: "hostProgress";
    LogsProgressParams: "logsProgressParams";
    StepReply: "reply";
}
