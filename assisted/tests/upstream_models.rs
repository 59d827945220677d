//! Tests that the models of the Python client, which is generated from upstream's API document, accept the documents
//! that the types write. `KINDLING_CLIENTS` is the folder with that Python installation.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

mod documents;
#[path = "../../tests/support/skip.rs"]
mod skip;

use std::env;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use assisted::cluster::{Cluster, ClusterDefaults};
use assisted::error::{InfraError, OperationError};
use assisted::event::ListedEvent;
use assisted::host::{Host, RegisteredHost};
use assisted::infra_env::{InfraEnv, PresignedUrl};
use assisted::reply::{ReplyPayload, StepReply};
use assisted::request::StepRequest;
use assisted::step::{Step, StepType, Steps};
use assisted::version::{ComponentVersions, ListedOsImage};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use skip::report_missing;

use documents::{
    ARGUMENTS, BODIES, OUTPUTS, UPSTREAM_CLUSTER, UPSTREAM_EVENT, UPSTREAM_HOST, UPSTREAM_INFRA_ENV,
    UPSTREAM_REPLIES, UPSTREAM_STEPS, rewritten_body,
};

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("recorded/", $name, ".json"))
    };
}

fn python() -> Option<PathBuf> {
    let Some(folder) = env::var_os("KINDLING_CLIENTS") else {
        report_missing("KINDLING_CLIENTS is not set");
        return None;
    };
    Some(PathBuf::from(folder).join("python"))
}

fn rewritten<T: DeserializeOwned + Serialize>(text: &str) -> Value {
    serde_json::to_value(serde_json::from_str::<T>(text).unwrap()).unwrap()
}

/// Returns upstream's model of a step's arguments.
fn model_of_arguments(step_type: StepType) -> Option<&'static str> {
    Some(match step_type {
        StepType::ConnectivityCheck => "list[ConnectivityCheckHost]",
        StepType::FreeNetworkAddresses => "list[str]",
        StepType::DhcpLeaseAllocate => "DhcpAllocationRequest",
        StepType::ApiVipConnectivityCheck => "ApiVipConnectivityRequest",
        StepType::TangConnectivityCheck => "TangConnectivityRequest",
        StepType::NtpSynchronizer => "NtpSynchronizationRequest",
        StepType::InstallationDiskSpeedCheck => "DiskSpeedCheckRequest",
        StepType::ContainerImageAvailability => "ContainerImageAvailabilityRequest",
        StepType::DomainResolution => "DomainResolutionRequest",
        StepType::Install => "InstallCmdRequest",
        StepType::LogsGather => "LogsGatherCmdRequest",
        StepType::UpgradeAgent => "UpgradeAgentRequest",
        StepType::DownloadBootArtifacts => "DownloadBootArtifactsRequest",
        StepType::RebootForReclaim => "RebootForReclaimRequest",
        StepType::VerifyVips => "list[VerifyVip]",
        StepType::Inventory | StepType::StopInstallation | StepType::Execute | StepType::NextStepRunner => {
            return None;
        }
    })
}

/// Returns upstream's model of a step's output.
fn model_of_output(payload: &ReplyPayload) -> Option<&'static str> {
    Some(match payload {
        ReplyPayload::Inventory(_) => "Inventory",
        ReplyPayload::Connectivity(_) => "ConnectivityReport",
        ReplyPayload::FreeAddresses(_) => "list[FreeNetworkAddresses]",
        ReplyPayload::DhcpLeases(_) => "DhcpAllocationResponse",
        ReplyPayload::Ntp(_) => "NtpSynchronizationResponse",
        ReplyPayload::Domains(_) => "DomainResolutionResponse",
        ReplyPayload::ApiVip(_) => "ApiVipConnectivityResponse",
        ReplyPayload::Tang(_) => "TangConnectivityResponse",
        ReplyPayload::Vips(_) => "list[VerifiedVip]",
        ReplyPayload::DiskSpeed(_) => "DiskSpeedCheckResponse",
        ReplyPayload::Images(_) => "ContainerImageAvailabilityResponse",
        ReplyPayload::Upgrade(_) => "UpgradeAgentResponse",
        _ => return None,
    })
}

fn resources() -> Vec<(String, Value)> {
    // Upstream's model of a registration lacks the keys of a host.
    let registered: RegisteredHost = serde_json::from_str(recorded!("registered_host")).unwrap();
    let command = registered.next_step_runner_command.unwrap();
    let documents = [
        ("Cluster", rewritten::<Cluster>(UPSTREAM_CLUSTER)),
        ("Cluster", rewritten::<Cluster>(recorded!("cluster"))),
        // Upstream's model requires a platform type, which a disconnected cluster does not have.
        ("Cluster", rewritten::<Cluster>(recorded!("imported_cluster"))),
        ("ClusterDefaultConfig", rewritten::<ClusterDefaults>(recorded!("default_config"))),
        ("InfraEnv", rewritten::<InfraEnv>(UPSTREAM_INFRA_ENV)),
        ("InfraEnv", rewritten::<InfraEnv>(recorded!("infra_env"))),
        ("PresignedUrl", rewritten::<PresignedUrl>(recorded!("image_url"))),
        ("Host", rewritten::<Host>(UPSTREAM_HOST)),
        ("Host", rewritten::<Host>(recorded!("host"))),
        ("Host", rewritten::<Host>(recorded!("registered_host"))),
        ("HostRegistrationResponse", json!({"next_step_runner_command": command})),
        ("Event", rewritten::<ListedEvent>(UPSTREAM_EVENT)),
        ("list[Event]", rewritten::<Vec<ListedEvent>>(recorded!("events"))),
        ("Steps", rewritten::<Steps>(UPSTREAM_STEPS)),
        ("Steps", rewritten::<Steps>(recorded!("steps"))),
        ("Steps", rewritten::<Steps>(recorded!("binding_steps"))),
        ("ListVersions", rewritten::<ComponentVersions>(recorded!("component_versions"))),
        ("Error", rewritten::<OperationError>(recorded!("operation_error"))),
        // Upstream's model rejects the status 400, although services respond with it.
        (
            "InfraError",
            rewritten::<InfraError>(r#"{"code":401,"message":"unauthenticated for invalid credentials"}"#),
        ),
    ];
    let images: Vec<ListedOsImage> = serde_json::from_str(recorded!("os_images")).unwrap();
    let images = images.into_iter().map(|image| ("OsImage", serde_json::to_value(image).unwrap()));
    documents.into_iter().chain(images).map(|(model, document)| (model.to_owned(), document)).collect()
}

fn messages() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for reply in UPSTREAM_REPLIES {
        all.push(("StepReply".to_owned(), rewritten::<StepReply>(reply)));
    }
    for (model, body) in BODIES {
        all.push(((*model).to_owned(), serde_json::from_str(&rewritten_body(model, body)).unwrap()));
    }
    let step_type = |name: &str| -> StepType { serde_json::from_value(name.into()).unwrap() };
    for (name, args) in ARGUMENTS {
        let step = Step::new(step_type(name), "", args.iter().map(|arg| (*arg).to_owned()).collect());
        let Some(model) = model_of_arguments(step_type(name)) else { continue };
        let args_json = StepRequest::parse(&step).unwrap().to_args().unwrap();
        all.push((model.to_owned(), serde_json::from_str(args_json.first().unwrap()).unwrap()));
    }
    for (name, output) in OUTPUTS {
        let payload = ReplyPayload::parse(step_type(name), output).unwrap();
        let Some(model) = model_of_output(&payload) else { continue };
        all.push((model.to_owned(), serde_json::from_str(&payload.to_output().unwrap()).unwrap()));
    }
    all
}

#[test]
fn models_of_the_generated_client_read_what_the_types_write() {
    let Some(python) = python() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstream_models.py");
    let mut program = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let documents: Vec<_> = resources().into_iter().chain(messages()).collect();
    let lines: String = documents.iter().map(|document| format!("{}\n", json!(document))).collect();
    program.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = program.wait_with_output().unwrap();
    let (found, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{log}");
    assert_eq!(found, "");
    assert_eq!(log, format!("{} documents were read\n", documents.len()));
}
