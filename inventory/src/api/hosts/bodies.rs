//! The types of request bodies for hosts, with their names in error messages.

use assisted::host::{
    BindHostParams, HostCreateParams, HostIgnitionParams, HostProgressParams, HostUpdateParams,
    InstallerArgsParams, LogsProgressParams,
};
use assisted::reply::StepReply;

use crate::api::request_bodies;

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
