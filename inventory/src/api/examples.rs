//! Example request bodies for the OpenAPI document. Client tools show them, and tests send them.

use serde_json::{Value, json};
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi, PathItem, RefOr};

/// Returns the example body of an operation, or `None` if it has none.
fn example_body(id: &str) -> Option<Value> {
    const ID: &str = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    const PULL_SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;
    let example = match id {
        "v2RegisterCluster" => json!({
            "name": "edge", "openshift_version": "4.18", "base_dns_domain": "example.com", "control_plane_count": 3,
            "api_vips": [{"ip": "192.0.2.10"}], "ingress_vips": [{"ip": "192.0.2.11"}], "pull_secret": PULL_SECRET,
            "ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZ8SSEeQFGsUW8F0Xk3NxGWr0Y6nWn2oPkBQvIdVhjJ admin",
        }),
        "v2RegisterDisconnectedCluster" => json!({"name": "edge", "openshift_version": "4.18"}),
        "v2ImportCluster" => json!({
            "name": "edge", "openshift_version": "4.18", "openshift_cluster_id": ID,
            "api_vip_dnsname": "api.edge.example.com",
        }),
        "V2UpdateCluster" => json!({"name": "edge-2", "additional_ntp_source": "ntp.example.com"}),
        "v2UpdateClusterLogsProgress" | "v2UpdateHostLogsProgress" => json!({"logs_state": "collecting"}),
        "v2TriggerEvent" => json!({
            "name": "collecting_logs", "message": "Collecting logs", "severity": "info", "category": "user",
            "cluster_id": ID, "event_time": "2026-01-31T12:00:00.000Z",
        }),
        "RegisterInfraEnv" => json!({
            "name": "edge", "openshift_version": "4.18", "cpu_architecture": "x86_64", "image_type": "minimal-iso",
            "pull_secret": PULL_SECRET, "kernel_arguments": [{"operation": "append", "value": "console=ttyS0"}],
            "static_network_config": [{
                "network_yaml": "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    dhcp: true\n",
                "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}],
            }],
        }),
        "UpdateInfraEnv" => json!({"image_type": "full-iso", "additional_ntp_sources": "ntp.example.com"}),
        "v2RegisterHost" => json!({
            "host_id": ID,
            "discovery_agent_version": "quay.io/edge-infrastructure/assisted-installer-agent:latest",
        }),
        "v2UpdateHost" => json!({
            "host_name": "worker-1.example.com", "host_role": "worker",
            "disks_selected_config": [{"id": "/dev/sda", "role": "install"}],
            "node_labels": [{"key": "node.example.com/zone", "value": "a"}],
        }),
        "BindHost" => json!({"cluster_id": ID}),
        "v2UpdateHostIgnition" => json!({"config": "{\"ignition\":{\"version\":\"3.2.0\"}}"}),
        "v2UpdateHostInstallerArgs" => json!({"args": ["--append-karg", "console=ttyS0", "--copy-network"]}),
        "v2PostStepReply" => json!({
            "step_type": "ntp-synchronizer", "step_id": "ntp-synchronizer-1a2b3c4d", "exit_code": 0, "error": "",
            "output": "{\"ntp_sources\":[{\"source_name\":\"ntp.example.com\",\"source_state\":\"synced\"}]}",
        }),
        "v2UpdateHostInstallProgress" => json!({
            "current_stage": "Writing image to disk", "progress_info": "42%",
        }),
        "AddOsImage" => json!({
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.202501221327-0",
            "url": "https://mirror.example.com/rhcos-4.18-x86_64-live.iso",
        }),
        "V2UploadLogs" => json!({"upfile": "node-1.tar.gz"}),
        _ => return None,
    };
    Some(example)
}

pub(super) fn add_to(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        for operation in operations_of(item) {
            let Some(example) = operation.operation_id.as_deref().and_then(example_body) else { continue };
            let Some(RefOr::T(body)) = operation.request_body.as_mut() else { continue };
            for content in body.content.values_mut() {
                if let RefOr::T(content) = content {
                    content.example = Some(example.clone());
                }
            }
        }
    }
}

fn operations_of(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let all = [&mut item.post, &mut item.put, &mut item.patch];
    all.into_iter().filter_map(Option::as_mut)
}
