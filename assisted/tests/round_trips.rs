//! Tests that recorded documents survive a round trip. Responses of Kindling must stay the same byte for byte.
//! Documents from other services must stay the same as JSON values.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

mod documents;

use std::collections::BTreeMap;
use std::fmt::Debug;

use assisted::cluster::{
    Cluster, ClusterCreateParams, ClusterDefaults, ClusterStatus, ImageInfo, OperatorReport,
};
use assisted::error::EitherError;
use assisted::event::{ListedEvent, ReportedEvent};
use assisted::host::{
    DiskInfo, Host, HostIgnition, HostIgnitionParams, HostProgressParams, HostStatus, RegisteredHost,
    ValidationStatus,
};
use assisted::infra_env::{InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams, PresignedUrl};
use assisted::reply::{ApiVipReport, DomainReport, ExitCode, ReplyPayload, StepReply};
use assisted::request::{BootArtifactsRequest, StepArgumentsError, StepRequest};
use assisted::step::{PostStepAction, Step, StepType, Steps};
use assisted::version::{ComponentVersions, ListedOsImage, OpenshiftVersion, SupportedArchitectures};
use assisted::{Extensible, HostId, Millis, Secret};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use documents::{
    ARGUMENTS, BODIES, OUTPUTS, UPSTREAM_CLUSTER, UPSTREAM_EVENT, UPSTREAM_HOST, UPSTREAM_INFRA_ENV,
    UPSTREAM_REPLIES, UPSTREAM_STEPS, rewritten_body,
};

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("recorded/", $name, ".json"))
    };
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> T {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Checks that parsing and serializing returns the same bytes.
#[track_caller]
fn survives<'a, T: Deserialize<'a> + Serialize>(text: &'a str) {
    assert_eq!(serde_json::to_string(&read::<T>(text)).unwrap(), text.trim_end());
}

/// Converts all numbers to floating point, so that 1 and 1.0 are equal.
fn normalized(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map(Value::from).unwrap(),
        Value::Array(items) => items.into_iter().map(normalized).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, normalized(value))).collect(),
        value => value,
    }
}

#[track_caller]
fn survives_as_value<T: DeserializeOwned + Serialize>(text: &str) {
    let rewritten = serde_json::to_value(read::<T>(text)).unwrap();
    assert_eq!(normalized(rewritten), normalized(read(text)));
}

#[test]
fn responses_of_the_service_are_written_byte_for_byte() {
    survives::<Cluster>(recorded!("new_cluster"));
    survives::<Cluster>(recorded!("cluster"));
    survives::<Cluster>(recorded!("imported_cluster"));
    survives::<Cluster>(recorded!("disconnected_cluster"));
    survives::<Vec<Cluster>>(recorded!("clusters"));
    survives::<ClusterDefaults>(recorded!("default_config"));
    survives::<InfraEnv>(recorded!("infra_env"));
    survives::<Vec<InfraEnv>>(recorded!("infra_envs"));
    survives::<PresignedUrl>(recorded!("image_url"));
    survives::<Host>(recorded!("host"));
    survives::<Host>(recorded!("bound_host"));
    survives::<Vec<Host>>(recorded!("hosts"));
    survives::<RegisteredHost>(recorded!("registered_host"));
    survives::<HostIgnition>(recorded!("host_ignition"));
    survives::<Steps>(recorded!("steps"));
    survives::<Steps>(recorded!("binding_steps"));
    survives::<Vec<ListedEvent>>(recorded!("events"));
    survives::<ComponentVersions>(recorded!("component_versions"));
    survives::<BTreeMap<String, OpenshiftVersion>>(recorded!("openshift_versions"));
    survives::<SupportedArchitectures>(recorded!("supported_architectures"));
    survives::<Vec<ListedOsImage>>(recorded!("os_images"));
    survives::<EitherError>(recorded!("operation_error"));
    survives::<EitherError>(recorded!("infra_error"));
}

#[test]
fn json_in_strings_of_a_host_is_written_byte_for_byte() {
    let host: Host = read(recorded!("host"));
    let inventory = host.inventory_report().unwrap().unwrap();
    assert_eq!(serde_json::to_string(&inventory).unwrap(), host.inventory);
    let connectivity = host.connectivity_report().unwrap().unwrap();
    assert_eq!(serde_json::to_string(&connectivity).unwrap(), host.connectivity);
    assert_eq!(serde_json::to_string(&host.disk_results().unwrap()).unwrap(), host.disks_info);
    assert_eq!(serde_json::to_string(&host.image_results().unwrap()).unwrap(), host.images_status);
    assert_eq!(serde_json::to_string(&host.validations().unwrap()).unwrap(), host.validations_info);
    survives::<DomainReport<'_>>(&host.domain_name_resolutions);

    assert_eq!(inventory.addresses().collect::<Vec<_>>(), ["192.168.1.11/24"]);
    let hardware = &host.validations().unwrap()["hardware"];
    assert_eq!(hardware.first().unwrap().status, ValidationStatus::Success);
    let DiskInfo { disk_speed, .. } = &host.disk_results().unwrap()["/dev/sda"];
    assert_eq!(disk_speed.as_ref().unwrap().speed_ms, 5);
}

#[test]
fn json_in_strings_of_an_infra_env_is_parsed() {
    let infra_env: InfraEnv = read(recorded!("infra_env"));
    assert_eq!(infra_env.kind, InfraEnv::KIND);
    let networks = infra_env.static_networks().unwrap();
    assert_eq!(networks.first().unwrap().mac_interface_map.first().unwrap().logical_nic_name, "eth0");
    assert_eq!(serde_json::to_string(&networks).unwrap(), infra_env.static_network_config);
    let arguments = infra_env.kernel_argument_changes().unwrap();
    assert_eq!(Some(serde_json::to_string(&arguments).unwrap()), infra_env.kernel_arguments);
    let unset: InfraEnv = read(UPSTREAM_INFRA_ENV);
    assert_eq!(unset.static_networks().unwrap(), []);
    assert_eq!(unset.kernel_argument_changes().unwrap(), []);
}

#[test]
fn documents_of_upstream_services_survive_as_values() {
    survives_as_value::<Cluster>(UPSTREAM_CLUSTER);
    survives_as_value::<InfraEnv>(UPSTREAM_INFRA_ENV);
    survives_as_value::<Host>(UPSTREAM_HOST);
    survives_as_value::<ListedEvent>(UPSTREAM_EVENT);
    survives_as_value::<Steps>(UPSTREAM_STEPS);
    for reply in UPSTREAM_REPLIES {
        survives_as_value::<StepReply>(reply);
    }
}

#[test]
fn bodies_of_requests_survive_as_values() {
    for (model, body) in BODIES {
        assert_eq!(normalized(read(&rewritten_body(model, body))), normalized(read(body)), "{model}");
    }
}

#[test]
fn rejects_unknown_keys_in_bodies_of_requests() {
    let (_, body) = BODIES.iter().find(|(model, _)| *model == "ClusterCreateParams").unwrap();
    let mut body: Value = read(body);
    body.as_object_mut().unwrap().insert("colour".to_owned(), json!(1));
    let error = serde_json::from_value::<ClusterCreateParams>(body).unwrap_err();
    assert!(error.to_string().starts_with("unknown field `colour`"), "{error}");
    let error = serde_json::from_str::<HostIgnitionParams>(r#"{"config":"","Config":""}"#).unwrap_err();
    assert!(error.to_string().starts_with("unknown field `Config`"), "{error}");
}

#[test]
fn arguments_of_steps_survive_as_values() {
    for (name, args) in ARGUMENTS {
        let step_type: StepType = read(&format!("{name:?}"));
        let step = Step::new(step_type, "step-1", args.iter().map(|arg| (*arg).to_owned()).collect());
        let request = StepRequest::parse(&step).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(request.step_type(), step_type);
        let rebuilt = request.to_step("step-1").unwrap();
        // Some arguments are plain text instead of JSON.
        let parsed = |arg: &str| serde_json::from_str(arg).map_or_else(|_| Value::from(arg), normalized);
        let rebuilt_args: Vec<_> = rebuilt.args.iter().map(|arg| parsed(arg)).collect();
        assert_eq!(rebuilt_args, args.iter().map(|arg| parsed(arg)).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn every_current_step_type_has_recorded_arguments() {
    let obsolete = [StepType::Execute, StepType::NextStepRunner];
    for step_type in StepType::ALL.iter().filter(|step_type| !obsolete.contains(step_type)) {
        assert!(ARGUMENTS.iter().any(|(name, _)| *name == step_type.as_str()), "{step_type}");
    }
    for step_type in obsolete {
        let error = StepRequest::parse(&Step::new(step_type, "", Vec::new())).unwrap_err();
        assert_eq!(error.to_string(), format!("failed to find action for step type {step_type}"));
    }
}

#[test]
fn outputs_of_steps_survive_as_values() {
    for (name, output) in OUTPUTS {
        let step = Step::new(read(&format!("{name:?}")), "step-1", Vec::new());
        let reply = StepReply { output: Some((*output).to_owned()), ..StepReply::done(&step) };
        let payload = reply.payload().unwrap().unwrap();
        let output_again = StepReply::success(&step, &payload).unwrap().output.unwrap();
        match payload {
            ReplyPayload::Text(text) => {
                assert_eq!((text.as_str(), output_again.as_str()), (*output, *output))
            }
            _ => assert_eq!(normalized(read(&output_again)), normalized(read(output)), "{name}"),
        }
    }
}

#[test]
fn rejects_unusable_arguments_of_steps() {
    let parse = |step_type: StepType, args: &[&str]| {
        StepRequest::parse(&Step::new(step_type, "", args.iter().map(|arg| (*arg).to_owned()).collect()))
    };
    let host = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";
    let count = |result| matches!(result, Err(StepArgumentsError::Count { .. }));
    assert!(count(parse(StepType::NtpSynchronizer, &[])));
    assert!(count(parse(StepType::NtpSynchronizer, &["{}", "{}"])));
    assert!(count(parse(StepType::StopInstallation, &["{}"])));
    assert!(count(parse(StepType::InstallationDiskSpeedCheck, &[r#"{"path":"/dev/sda"}"#])));
    assert!(count(parse(StepType::Inventory, &[])));
    let json = |result| matches!(result, Err(StepArgumentsError::Json { .. }));
    assert!(json(parse(StepType::NtpSynchronizer, &["{}"])));
    // An agent replies to the service with this text.
    let error = parse(StepType::NtpSynchronizer, &["{}"]).unwrap_err();
    let text = "invalid argument of step ntp-synchronizer: missing field `ntp_source` at line 1 column 2";
    assert_eq!(error.to_string(), text);
    assert!(json(parse(StepType::ConnectivityCheck, &[r#"[{"host_id":"x"}]"#])));
    let text = |result| matches!(result, Err(StepArgumentsError::Text { .. }));
    assert!(text(parse(StepType::Inventory, &["x"])));
    assert!(text(parse(StepType::Inventory, &[host, "--colour=1"])));
    assert!(text(parse(StepType::Inventory, &[host, "--disk-min-size=x"])));
    for timeout in ["", "x", "-1", "NaN", "inf", "1e300"] {
        let args = [r#"{"path":"/dev/sda"}"#, timeout];
        assert!(text(parse(StepType::InstallationDiskSpeedCheck, &args)), "{timeout}");
    }
}

/// Adds an unknown key to each object, as a newer service may do.
fn with_unknown_keys(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(with_unknown_keys).collect(),
        Value::Object(map) => {
            let original = map.into_iter().map(|(key, value)| (key, with_unknown_keys(value)));
            std::iter::once(("newer_key".to_owned(), json!({"a": [1]}))).chain(original).collect()
        }
        value => value,
    }
}

#[track_caller]
fn ignores_unknown_keys<T: DeserializeOwned + PartialEq + Debug>(text: &str) {
    let newer = with_unknown_keys(read(text));
    assert_eq!(read::<T>(&newer.to_string()), read::<T>(text));
}

#[test]
fn unknown_keys_are_ignored_at_each_level() {
    ignores_unknown_keys::<Cluster>(recorded!("cluster"));
    ignores_unknown_keys::<Cluster>(UPSTREAM_CLUSTER);
    ignores_unknown_keys::<ClusterDefaults>(recorded!("default_config"));
    ignores_unknown_keys::<InfraEnv>(recorded!("infra_env"));
    ignores_unknown_keys::<PresignedUrl>(recorded!("image_url"));
    ignores_unknown_keys::<Host>(recorded!("host"));
    ignores_unknown_keys::<RegisteredHost>(recorded!("registered_host"));
    ignores_unknown_keys::<HostIgnition>(recorded!("host_ignition"));
    ignores_unknown_keys::<Steps>(recorded!("steps"));
    ignores_unknown_keys::<Vec<ListedEvent>>(recorded!("events"));
    ignores_unknown_keys::<SupportedArchitectures>(recorded!("supported_architectures"));
    ignores_unknown_keys::<Vec<ListedOsImage>>(recorded!("os_images"));
    ignores_unknown_keys::<EitherError>(recorded!("operation_error"));
    ignores_unknown_keys::<EitherError>(recorded!("infra_error"));
    for (name, args) in ARGUMENTS {
        let step_type: StepType = read(&format!("{name:?}"));
        let step = |args: Vec<String>| StepRequest::parse(&Step::new(step_type, "", args)).unwrap();
        let newer = args.iter().map(|arg| match serde_json::from_str(arg) {
            Ok(value) => with_unknown_keys(value).to_string(),
            Err(_) => (*arg).to_owned(),
        });
        let original = args.iter().map(|arg| (*arg).to_owned());
        assert_eq!(step(newer.collect()), step(original.collect()), "{name}");
    }
    for (name, output) in OUTPUTS.iter().filter(|(_, output)| output.starts_with(['{', '['])) {
        let step_type = read(&format!("{name:?}"));
        let newer = with_unknown_keys(read(output)).to_string();
        let [newer, original] =
            [&newer, *output].map(|output| ReplyPayload::parse(step_type, output).unwrap());
        assert_eq!(newer, original, "{name}");
    }
}

#[test]
fn unknown_enum_values_are_preserved() {
    fn changed<T: DeserializeOwned + Serialize>(text: &str, changes: &[(&str, Value)]) -> T {
        let mut value: Value = read(text);
        for (pointer, change) in changes {
            *value.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = change.clone();
        }
        let text = value.to_string();
        survives_as_value::<T>(&text);
        read(&text)
    }
    let newer = || json!("newer");
    let cluster: Cluster = changed(
        UPSTREAM_CLUSTER,
        &[
            ("/kind", newer()),
            ("/status", newer()),
            ("/cpu_architecture", newer()),
            ("/network_type", newer()),
            ("/hyperthreading", newer()),
            ("/platform/type", newer()),
            ("/progress/finalizing_stage", newer()),
            ("/last-installation-preparation/status", newer()),
            ("/monitored_operators/0/status", newer()),
            ("/hosts/0/status", newer()),
            ("/high_availability_mode", newer()),
            ("/logs_info", newer()),
            ("/disk_encryption/enable_on", newer()),
            ("/disk_encryption/mode", newer()),
            ("/load_balancer/type", newer()),
            ("/platform/external/cloud_controller_manager", newer()),
            ("/api_vips/0/verification", newer()),
        ],
    );
    assert_eq!(cluster.status, Extensible::Unknown("newer".to_owned()));
    assert_eq!(cluster.status.known(), None);
    let host: Host = changed(
        UPSTREAM_HOST,
        &[
            ("/kind", newer()),
            ("/status", newer()),
            ("/role", newer()),
            ("/suggested_role", newer()),
            ("/media_status", newer()),
            ("/logs_info", newer()),
            ("/progress_stages/0", newer()),
            ("/progress/current_stage", newer()),
        ],
    );
    assert_eq!(host.status.to_string(), "newer");
    changed::<InfraEnv>(UPSTREAM_INFRA_ENV, &[("/type", newer()), ("/cpu_architecture", newer())]);
    changed::<ListedEvent>(UPSTREAM_EVENT, &[("/severity", newer())]);
    let steps: Steps =
        changed(UPSTREAM_STEPS, &[("/post_step_action", newer()), ("/instructions/0/step_type", newer())]);
    let step = steps.instructions.first().unwrap();
    assert!(
        matches!(StepRequest::parse(step), Err(StepArgumentsError::UnknownType(name)) if name == "newer")
    );
    let reply = StepReply::failure(step, ExitCode::INVALID, "failed to find action for step type newer");
    assert!(serde_json::to_string(&reply).unwrap().contains(r#""step_type":"newer""#));
    assert_eq!(reply.payload().unwrap(), None);
    changed::<BTreeMap<String, OpenshiftVersion>>(
        recorded!("openshift_versions"),
        &[("/4.18.3/support_level", newer()), ("/4.18.3/cpu_architectures/0", newer())],
    );
    changed::<SupportedArchitectures>(
        recorded!("supported_architectures"),
        &[("/architectures/S390X_ARCHITECTURE", newer())],
    );
}

#[test]
fn documents_without_optional_keys_are_read() {
    let id = HostId::fresh();
    let text = format!(
        r#"{{"kind":"Host","id":"{id}","infra_env_id":"{id}","href":"","status":"known","status_info":""}}"#
    );
    let host: Host = read(&text);
    assert_eq!((host.status, host.checked_in_at), (HostStatus::Known.into(), Millis(None)));
    let text = format!(
        r#"{{"kind":"Cluster","id":"{id}","href":"","image_info":{{}},"status":"ready","status_info":"",
            "hosts":null,"api_vips":null,"monitored_operators":[{{"cluster_id":"{id}","name":"lvm","bundles":null}}]}}"#
    );
    let cluster: Cluster = read(&text);
    assert_eq!(cluster.status, ClusterStatus::Ready);
    assert_eq!(cluster.hosts, []);
    for text in [r#"{"instructions":null,"post_step_action":"exit"}"#, r#"{"post_step_action":"exit"}"#] {
        let steps: Steps = read(text);
        assert_eq!(steps.post_step_action, PostStepAction::Exit);
        assert_eq!((steps.instructions, steps.next_instruction_seconds), (Vec::new(), 0));
    }
    let step: Step = read(r#"{"step_type":"stop-installation","step_id":"a","args":null}"#);
    assert_eq!(StepRequest::parse(&step).unwrap(), StepRequest::StopInstallation);
}

#[test]
fn keys_of_reports_and_parts_match_case_insensitively() {
    let upper = r#"{"NTP_Sources":[{"SOURCE_NAME":"a","\u0053ource_State":"synced","Other":1}]}"#;
    let lower = r#"{"ntp_sources":[{"source_name":"a","source_state":"synced"}]}"#;
    let [payload, expected] =
        [upper, lower].map(|output| ReplyPayload::parse(StepType::NtpSynchronizer, output).unwrap());
    assert_eq!(payload, expected);
    let (upper, lower) = (r#"{"Path":"/dev/sda"}"#, r#"{"path":"/dev/sda"}"#);
    assert_eq!(read::<DiskInfo<'_>>(upper), read::<DiskInfo<'_>>(lower));
}

#[test]
fn verified_vip_follows_the_conventions_of_reports() {
    let expected = |output: &str, text: &str| {
        let payload = ReplyPayload::parse(StepType::VerifyVips, output).unwrap();
        assert_eq!(payload.to_output().unwrap(), text);
    };
    let text = r#"[{"verification":"failed","vip":"192.168.1.5","vip_type":"api"}]"#;
    expected(r#"[{"Verification":"failed","VIP":"192.168.1.5","Vip_Type":"api","other":1}]"#, text);
    expected(r#"[{"verification":null,"vip":null,"vip_type":null}]"#, "[{}]");
    let newer = r#"[{"verification":"newer","vip":"192.168.1.5","vip_type":"console"}]"#;
    expected(newer, newer);
}

#[test]
fn absent_values_stay_absent() {
    let without = |text: &str, keys: &[&str]| {
        let mut value: Value = read(text);
        keys.iter().for_each(|key| assert!(value.as_object_mut().unwrap().remove(*key).is_some(), "{key}"));
        value.to_string()
    };
    survives_as_value::<Host>(&without(UPSTREAM_HOST, &["role", "suggested_role"]));
    let text = without(UPSTREAM_INFRA_ENV, &["cpu_architecture", "size_bytes"]);
    survives_as_value::<InfraEnv>(&text);
    let keys = ["imported", "schedulable_masters_forced_true", "logs_info"];
    survives_as_value::<Cluster>(&without(UPSTREAM_CLUSTER, &keys));
}

#[test]
fn explicit_zero_values_of_optional_keys_are_kept() {
    let with = |text: &str, pointer: &str, key: &str, value: Value| {
        let mut document: Value = read(text);
        document.pointer_mut(pointer).and_then(Value::as_object_mut).unwrap().insert(key.to_owned(), value);
        document.to_string()
    };
    for key in ["imported", "schedulable_masters_forced_true"] {
        survives_as_value::<Cluster>(&with(UPSTREAM_CLUSTER, "", key, json!(false)));
    }
    survives_as_value::<Cluster>(&with(UPSTREAM_CLUSTER, "/image_info", "size_bytes", json!(0)));
    survives_as_value::<InfraEnv>(&with(UPSTREAM_INFRA_ENV, "", "size_bytes", json!(0)));
}

#[test]
fn empty_enum_in_a_request_is_absent() {
    #[track_caller]
    fn is_absent<T: DeserializeOwned + PartialEq + Debug>(model: &str, key: &str) {
        let (_, body) = BODIES.iter().find(|(name, _)| *name == model).unwrap();
        let with = |change: Value| {
            let mut body: Value = read(body);
            body.as_object_mut().unwrap().insert(key.to_owned(), change);
            serde_json::from_value::<T>(body)
        };
        let absent = with(Value::Null).unwrap();
        assert_eq!(with(json!("")).unwrap(), absent, "{model}.{key}");
        assert_ne!(read::<T>(body), absent, "{model}.{key}");
        assert!(with(json!("newer")).is_err(), "{model}.{key}");
    }
    is_absent::<InfraEnvCreateParams>("InfraEnvCreateParams", "image_type");
    is_absent::<InfraEnvCreateParams>("InfraEnvCreateParams", "cpu_architecture");
    is_absent::<InfraEnvUpdateParams>("InfraEnvUpdateParams", "image_type");
    is_absent::<ClusterCreateParams>("ClusterCreateParams", "cpu_architecture");
    is_absent::<HostProgressParams>("HostProgress", "current_stage");
    is_absent::<ReportedEvent>("Event", "category");
    is_absent::<OperatorReport>("OperatorMonitorReport", "status");
}

#[test]
fn secrets_are_not_shown() {
    let secret = |name: &str| format!("{name}-s3cret");
    let step = Step::new(StepType::Install, "install-1", vec![secret("argument")]);
    let reply = StepReply { output: Some(secret("output")), ..StepReply::done(&step) };
    let vip = ApiVipReport {
        url: secret("url").into(),
        ignition: secret("ignition").into(),
        ..ApiVipReport::default()
    };
    let mut infra_env: InfraEnv = read(UPSTREAM_INFRA_ENV);
    infra_env.download_url = Secret::new(secret("download_url"));
    let image_info = ImageInfo { download_url: Secret::new(secret("download_url")), ..ImageInfo::default() };
    let url = PresignedUrl { url: Secret::new(secret("url")), expires_at: Millis(None) };
    let artifacts = ["initrd_url", "kernel_url", "rootfs_url"].map(|name| (name, secret(name)));
    let artifacts = artifacts.into_iter().collect::<BTreeMap<_, _>>();
    let mut artifacts = serde_json::to_value(artifacts).unwrap();
    artifacts.as_object_mut().unwrap().insert("host_fs_mount_dir".to_owned(), json!("/host"));
    let artifacts: BootArtifactsRequest = serde_json::from_value(artifacts).unwrap();
    let debug_texts = [
        format!("{step:?}"),
        format!("{reply:?}"),
        format!("{:?}", ReplyPayload::ApiVip(vip)),
        format!("{infra_env:?}"),
        format!("{image_info:?}"),
        format!("{url:?}"),
        format!("{:?}", StepRequest::BootArtifacts(artifacts)),
        format!("{:?}", HostIgnition { config: secret("config") }),
        format!("{:?}", HostIgnitionParams { config: secret("config") }),
    ];
    for text in debug_texts {
        assert!(text.contains("<redacted") && !text.contains("s3cret"), "{text}");
    }
    assert!(format!("{step:?}").contains("<redacted, 15 bytes>"), "{step:?}");
}

#[test]
fn rejects_reports_of_the_wrong_type_or_length() {
    for output in [
        "",
        "[]",
        "null",
        "{",
        r#"{"ntp_sources":[null]}"#,
        r#"{"ntp_sources":[["a"]]}"#,
        r#"{"ntp_sources":{}}"#,
    ] {
        assert!(ReplyPayload::parse(StepType::NtpSynchronizer, output).is_err(), "{output}");
    }
    let items = |count: usize| format!(r#"{{"ntp_sources":[{}]}}"#, vec!["{}"; count].join(","));
    assert!(ReplyPayload::parse(StepType::NtpSynchronizer, &items(16384)).is_ok());
    let error = ReplyPayload::parse(StepType::NtpSynchronizer, &items(16385)).unwrap_err();
    assert!(error.to_string().contains("invalid length 16385"), "{error}");
}

#[test]
fn empty_output_has_no_payload() {
    let step = Step::new(StepType::FreeNetworkAddresses, "a", Vec::new());
    assert_eq!(StepReply::done(&step).payload().unwrap(), None);
    let reply = StepReply { output: Some(String::new()), ..StepReply::done(&step) };
    assert_eq!(reply.payload().unwrap(), None);
}

#[test]
fn successful_reply_omits_the_exit_code() {
    let step = Step::new(StepType::StopInstallation, "stop-installation-1", Vec::new());
    let text = r#"{"step_type":"stop-installation","step_id":"stop-installation-1"}"#;
    assert_eq!(serde_json::to_string(&StepReply::done(&step)).unwrap(), text);
    let lost = StepReply::failure(&step, ExitCode::MEDIA_LOST, "media was disconnected");
    let text = r#"{"step_type":"stop-installation","step_id":"stop-installation-1","exit_code":256,"error":"media was disconnected"}"#;
    assert_eq!(serde_json::to_string(&lost).unwrap(), text);
}
