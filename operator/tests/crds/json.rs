//! Tests the JSON form of the types: mandatory members, omitted members and accepted variants.

use kube::{Resource, ResourceExt};
use operator::crds::{
    Agent, AgentClassification, AgentClassificationStatus, AgentSpec, AgentStatus, InfraEnv, InfraEnvSpec,
    InfraEnvStatus, InventoryDisk, InventoryInterface, NMStateConfig, Timestamp,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Asserts that an object survives a round trip unchanged.
fn assert_round_trip<T: Serialize + DeserializeOwned>(object: &Value) {
    let typed: T = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(&serde_json::to_value(typed).unwrap(), object);
}

#[test]
fn infra_env_with_every_member_survives_a_round_trip() {
    assert_round_trip::<InfraEnv>(&json!({
        "apiVersion": "agent-install.openshift.io/v1beta1",
        "kind": "InfraEnv",
        "metadata": {"name": "site1", "namespace": "edge", "labels": {"a": "b"}},
        "spec": {
            "pullSecretRef": {"name": "pull-secret"},
            "clusterRef": {"name": "c", "namespace": "n"},
            "proxy": {"httpProxy": "http://p:1", "httpsProxy": "http://p:2", "noProxy": ".example"},
            "additionalNTPSources": ["a.example"],
            "ntpSources": ["b.example"],
            "sshAuthorizedKey": "ssh-ed25519 AAAA",
            "agentLabels": {"rack": "7"},
            "nmStateConfigLabelSelector": {
                "matchLabels": {"net-of": "site1"},
                "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}, {"key": "l", "operator": "Exists"}],
            },
            "ignitionConfigOverride": "{}",
            "cpuArchitecture": "aarch64",
            "ipxeScriptType": "BootOrderControl",
            "kernelArguments": [{"operation": "append", "value": "quiet"}],
            "additionalTrustBundle": "PEM",
            "osImageVersion": "4.20",
            "mirrorRegistryRef": {"name": "m", "namespace": "n"},
            "imageType": "full-iso",
            "agentApproval": {"autoApprove": true},
            "networkDiscoveryDelaySeconds": 0,
        },
        "status": {
            "isoDownloadURL": "https://images.example/1",
            "createdTime": "2026-05-04T03:02:01Z",
            "conditions": [{
                "type": "ImageCreated", "status": "True", "reason": "ImageCreated", "message": "m",
                "lastTransitionTime": "2026-05-04T03:02:01Z", "lastHeartbeatTime": "2026-05-04T03:02:01Z",
            }],
            "agentLabelSelector": {"matchLabels": {"infraenvs.agent-install.openshift.io": "site1"}},
            "bootArtifacts": {"initrd": "i", "rootfs": "r", "kernel": "k", "ipxeScript": "s", "discoveryIgnitionURL": "d"},
            "debugInfo": {"eventsURL": "e", "staticNetworkDownloadURL": "n"},
        },
    }));
}

#[test]
fn agent_with_every_member_survives_a_round_trip() {
    assert_round_trip::<Agent>(&json!({
        "apiVersion": "agent-install.openshift.io/v1beta1",
        "kind": "Agent",
        "metadata": {"name": "5d7a4b3e-0000-4000-8000-000000000001", "namespace": "edge"},
        "spec": {
            "approved": true,
            "role": "master",
            "clusterDeploymentName": {"name": "c", "namespace": "n"},
            "hostname": "node-a",
            "machineConfigPool": "infra",
            "installation_disk_id": "/dev/disk/by-id/1",
            "installation_disk_path": "/dev/sda",
            "installerArgs": "[\"--copy-network\"]",
            "ignitionConfigOverrides": "{}",
            "ignitionEndpointTokenReference": {"name": "t", "namespace": "n"},
            "ignitionEndpointHTTPHeaders": {"X-A": "b"},
            "nodeLabels": {"rack": "7"},
            "fencingCredentialsSecretRef": "fencing",
        },
        "status": {
            "bootstrap": true,
            "role": "master",
            "inventory": {
                "reportTime": "2026-05-04T03:02:01Z", "hostname": "h", "bmcAddress": "192.0.2.1", "bmcV6Address": "::",
                "memory": {"physicalBytes": 34359738368_i64, "usableBytes": 1},
                "cpu": {"count": 8, "clockMegahertz": 2400, "flags": ["vmx"], "modelName": "m", "architecture": "x86_64"},
                "interfaces": [{
                    "name": "eth0", "macAddress": "52:54:00:aa:00:01", "ipV4Addresses": ["192.0.2.2/24"],
                    "ipV6Addresses": ["2001:db8::2/64"], "flags": ["up"], "hasCarrier": true, "mtu": 1500,
                    "speedMbps": 1000, "vendor": "v", "product": "p", "biosDevName": "b", "clientID": "c",
                }],
                "disks": [{
                    "id": "i", "name": "sda", "path": "/dev/sda", "byPath": "p", "byID": "i", "driveType": "SSD",
                    "vendor": "v", "model": "m", "serial": "s", "wwn": "w", "hctl": "h", "sizeBytes": 1,
                    "bootable": true, "smart": "{}",
                    "installationEligibility": {"eligible": true, "notEligibleReasons": ["r"]},
                    "ioPerf": {"syncDurationMilliseconds": 3},
                }],
                "boot": {"currentBootMode": "uefi", "pxeInterface": "eth0", "deviceType": "cdrom"},
                "systemVendor": {"serialNumber": "s", "productName": "p", "manufacturer": "m", "virtual": true},
                "gpus": [{"address": "a", "deviceID": "d", "name": "n", "vendor": "v", "vendorID": "i"}],
            },
            "progress": {
                "currentStage": "Rebooting", "progressStages": ["Rebooting"], "progressInfo": "i",
                "installationPercentage": 50, "stageStartTime": "2026-05-04T03:02:01Z",
                "stageUpdateTime": "2026-05-04T03:02:01Z",
            },
            "ntpSources": [{"sourceName": "n", "sourceState": "synced"}],
            "conditions": [{"type": "Connected", "status": "True"}],
            "debugInfo": {"eventsURL": "e", "logsURL": "l", "state": "known", "stateInfo": "s"},
            "validationsInfo": {"hardware": [{"id": "i", "status": "success", "message": "m"}]},
            "installation_disk_id": "i",
            "deprovision_info": {"cluster_name": "c", "cluster_namespace": "n", "node_name": "o", "message": "m"},
            "csrStatus": {
                "approvedCSRs": [{"name": "csr-1", "type": "client", "approvedAt": "2026-05-04T03:02:01Z"}],
                "lastApprovalAttempt": "2026-05-04T03:02:01Z",
            },
            "kind": "Host",
        },
    }));
}

#[test]
fn other_kinds_survive_a_round_trip() {
    assert_round_trip::<NMStateConfig>(&json!({
        "apiVersion": "agent-install.openshift.io/v1beta1",
        "kind": "NMStateConfig",
        "metadata": {"name": "node-a"},
        "spec": {
            "interfaces": [{"name": "nic0", "macAddress": "52:54:00:aa:00:01"}],
            "config": {"interfaces": [{"name": "nic0", "mtu": null}], "routes": {}},
        },
    }));
    assert_round_trip::<AgentClassification>(&json!({
        "apiVersion": "agent-install.openshift.io/v1beta1",
        "kind": "AgentClassification",
        "metadata": {"name": "large"},
        "spec": {"labelKey": "size", "labelValue": "large", "query": ".cpu.count >= 8"},
        "status": {"matchedCount": 1, "errorCount": 2, "conditions": [{"type": "QueryErrors", "status": "False"}]},
    }));
}

#[test]
fn required_empty_members_are_serialized() {
    assert_eq!(serde_json::to_value(AgentSpec::default()).unwrap(), json!({"approved": false, "role": ""}));
    assert_eq!(
        serde_json::to_value(InfraEnvSpec::default()).unwrap(),
        json!({"pullSecretRef": {"name": ""}})
    );
    assert_eq!(
        serde_json::to_value(InfraEnvStatus::default()).unwrap(),
        json!({
            "agentLabelSelector": {},
            "bootArtifacts": {"initrd": "", "rootfs": "", "kernel": "", "ipxeScript": "", "discoveryIgnitionURL": ""},
            "debugInfo": {"eventsURL": ""},
        })
    );
    assert_eq!(
        serde_json::to_value(AgentStatus::default()).unwrap(),
        json!({
            "inventory": {"memory": {}, "cpu": {}, "boot": {}, "systemVendor": {}},
            "progress": {},
            "debugInfo": {},
        })
    );
    assert_eq!(
        serde_json::to_value(InventoryDisk::default()).unwrap(),
        json!({"id": "", "installationEligibility": {"notEligibleReasons": []}, "ioPerf": {}})
    );
    assert_eq!(
        serde_json::to_value(InventoryInterface::default()).unwrap(),
        json!({"ipV4Addresses": [], "ipV6Addresses": [], "flags": []})
    );
    assert_eq!(serde_json::to_value(AgentClassificationStatus::default()).unwrap(), json!({}));
}

#[test]
fn object_without_spec_is_readable() {
    for spec in [json!({}), json!({"spec": null, "status": null}), json!({"metadata": null})] {
        assert_eq!(serde_json::from_value::<Agent>(spec.clone()).unwrap(), Agent::default());
        assert_eq!(serde_json::from_value::<InfraEnv>(spec).unwrap(), InfraEnv::default());
    }
}

/// Replaces each value by `null`, one at a time. Requires that the object can still be deserialized.
fn assert_readable_with_nulls<T: DeserializeOwned>(object: &Value) {
    let mut pointers = Vec::new();
    collect_pointers("", object, &mut pointers);
    for pointer in pointers {
        let mut changed = object.clone();
        *changed.pointer_mut(&pointer).unwrap() = Value::Null;
        if let Err(error) = serde_json::from_value::<T>(changed) {
            panic!("{pointer}: {error}");
        }
    }
}

/// Collects pointers to all members of objects. The API server never stores `null` as an array item or a map value.
fn collect_pointers(path: &str, value: &Value, pointers: &mut Vec<String>) {
    let maps = ["matchLabels", "agentLabels", "nodeLabels", "ignitionEndpointHTTPHeaders", "validationsInfo"];
    match value {
        Value::Object(members) if !maps.iter().any(|map| path.ends_with(map)) => {
            for (name, member) in members {
                let path = format!("{path}/{name}");
                collect_pointers(&path, member, pointers);
                pointers.push(path);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_pointers(&format!("{path}/{index}"), item, pointers);
            }
        }
        _ => {}
    }
}

#[test]
fn explicit_nulls_are_readable() {
    let condition = json!({
        "type": "t", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": null,
        "lastHeartbeatTime": null,
    });
    assert_readable_with_nulls::<InfraEnv>(&json!({
        "metadata": {"name": "a"},
        "spec": {
            "pullSecretRef": {"name": "p"}, "clusterRef": {"name": "c", "namespace": "n"}, "ntpSources": [],
            "proxy": {"httpProxy": "p"}, "agentLabels": {}, "cpuArchitecture": "x86_64", "agentApproval":
            {"autoApprove": true}, "nmStateConfigLabelSelector": {"matchLabels": {}, "matchExpressions": [{"key": "k",
            "operator": "In", "values": []}]}, "kernelArguments": [{"operation": "append", "value": "quiet"}],
        },
        "status": {
            "isoDownloadURL": "u", "conditions": [condition], "createdTime": "2026-05-04T03:02:01Z",
            "bootArtifacts": {"initrd": "i"}, "debugInfo": {"eventsURL": "e"},
        },
    }));
    assert_readable_with_nulls::<Agent>(&json!({
        "spec": {"approved": true, "role": "r", "nodeLabels": {}, "hostname": "h"},
        "status": {
            "inventory": {"disks": [{"id": "i", "installationEligibility": {"notEligibleReasons": []}}],
            "interfaces": [{"flags": [], "mtu": 1}], "cpu": {"count": 1}},
            "csrStatus": {"lastApprovalAttempt": null}, "progress": {"stageStartTime": null},
        },
    }));
}

#[test]
fn empty_strings_and_unknown_members_are_readable() {
    let infra_env: InfraEnv = serde_json::from_value(json!({
        "metadata": {"name": "a"},
        "spec": {
            "pullSecretRef": {}, "ipxeScriptType": "", "cpuArchitecture": "", "imageType": "", "future": {"a": 1},
            "kernelArguments": [{"operation": "future"}],
        },
        "status": {"future": true},
    }))
    .unwrap();
    assert_eq!(infra_env.spec.ipxe_script_type, None);
    assert_eq!(infra_env.spec.cpu_architecture, None);
    assert_eq!(infra_env.spec.image_type, None);
    let nmstate_config: NMStateConfig =
        serde_json::from_value(json!({"spec": {"config": null}, "status": {"a": 1}})).unwrap();
    assert!(nmstate_config.spec.config.is_empty());
}

#[test]
fn resources_have_the_names_of_their_kind() {
    let infra_env = InfraEnv::new("site1", InfraEnvSpec::default());
    assert_eq!(infra_env.name_any(), "site1");
    assert_eq!(InfraEnv::api_version(&()), "agent-install.openshift.io/v1beta1");
    assert_eq!(
        InfraEnv::url_path(&(), Some("edge")),
        "/apis/agent-install.openshift.io/v1beta1/namespaces/edge/infraenvs"
    );
    assert_eq!(NMStateConfig::kind(&()), "NMStateConfig");
    assert_eq!(AgentClassification::plural(&()), "agentclassifications");
}

#[test]
fn time_equals_its_copy_from_the_server() {
    let time: Timestamp = serde_json::from_value(json!("2026-05-04T03:02:01.5Z")).unwrap();
    let copy: Timestamp = serde_json::from_value(serde_json::to_value(time).unwrap()).unwrap();
    assert_eq!(time, copy);
}
