//! Compares the definitions with tables, transcribed by hand from upstream's definitions.

use std::collections::{BTreeMap, BTreeSet};

use operator::crds;
use serde_json::{Value, json};

/// Returns the definition of a kind as JSON.
fn definition(kind: &str) -> Value {
    let definitions = crds::all().unwrap();
    let definition = definitions.iter().find(|definition| definition.spec.names.kind == kind).unwrap();
    serde_json::to_value(definition).unwrap()
}

/// Returns the schemas of all properties by path. In a path, `[]` means an item of an array, and `{}` a value of a map.
pub(crate) fn properties(kind: &str) -> BTreeMap<String, Value> {
    let definition = definition(kind);
    let mut properties = BTreeMap::new();
    collect("", &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &mut properties);
    properties
}

fn collect(path: &str, schema: &Value, properties: &mut BTreeMap<String, Value>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(&format!("{path}.{name}"), property, properties);
    }
    if schema["items"].is_object() {
        collect(&format!("{path}[]"), &schema["items"], properties);
    }
    if schema["additionalProperties"].is_object() {
        collect(&format!("{path}{{}}"), &schema["additionalProperties"], properties);
    }
    properties.insert(path.to_owned(), schema.clone());
}

/// Returns the value of a keyword at each path where the schema of a kind uses it.
fn keyword(kind: &str, keyword: &str) -> BTreeMap<String, Value> {
    properties(kind)
        .into_iter()
        .filter_map(|(path, schema)| Some((path, schema.get(keyword)?.clone())))
        .collect()
}

fn table<const N: usize>(rows: [(&str, Value); N]) -> BTreeMap<String, Value> {
    rows.into_iter().map(|(path, value)| (path.to_owned(), value)).collect()
}

const KINDS: [&str; 4] = ["AgentClassification", "Agent", "InfraEnv", "NMStateConfig"];

#[test]
fn names_and_versions_match_upstream() {
    let plurals = ["agentclassifications", "agents", "infraenvs", "nmstateconfigs"];
    for (kind, plural) in KINDS.into_iter().zip(plurals) {
        let definition = definition(kind);
        assert_eq!(definition["apiVersion"], "apiextensions.k8s.io/v1");
        assert_eq!(
            definition["metadata"],
            json!({"name": format!("{plural}.agent-install.openshift.io")}),
            "{kind}"
        );
        let spec = &definition["spec"];
        assert_eq!(spec["group"], "agent-install.openshift.io");
        assert_eq!(spec["scope"], "Namespaced");
        assert_eq!(spec["conversion"], json!({"strategy": "None"}));
        assert_eq!(
            spec["names"],
            json!({
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase(),
            })
        );
        assert_eq!(spec["versions"].as_array().unwrap().len(), 1);
        let version = &spec["versions"][0];
        assert_eq!(version["name"], "v1beta1");
        assert_eq!((&version["served"], &version["storage"]), (&json!(true), &json!(true)));
        assert_eq!(version["subresources"], json!({"status": {}}));
    }
}

#[test]
fn root_objects_match_upstream() {
    for kind in KINDS {
        let properties = properties(kind);
        let root = &properties[""];
        assert_eq!(root.get("required"), None, "{kind}");
        let mut names = BTreeSet::from(["apiVersion", "kind", "metadata", "spec", "status"]);
        if kind == "NMStateConfig" {
            names.remove("status");
        }
        let members: BTreeSet<_> =
            root["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, names, "{kind}");
        assert_eq!(properties[".metadata"], json!({"type": "object"}), "{kind}");
    }
}

#[test]
fn printer_columns_match_upstream() {
    let columns = |kind| {
        let definition = definition(kind);
        let version = &definition["spec"]["versions"][0];
        let columns = version["additionalPrinterColumns"].as_array().cloned().unwrap_or_default();
        columns
            .iter()
            .map(|column| {
                let text = |member: &str| column[member].as_str().unwrap().to_owned();
                (text("name"), text("type"), text("jsonPath"), column["priority"].as_i64().unwrap_or(0))
            })
            .collect::<Vec<_>>()
    };
    let rows = |rows: &[(&str, &str, &str, i64)]| {
        rows.iter()
            .map(|(name, type_, path, priority)| {
                (name.to_string(), type_.to_string(), path.to_string(), *priority)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        columns("Agent"),
        rows(&[
            ("Cluster", "string", ".spec.clusterDeploymentName.name", 0),
            ("Approved", "boolean", ".spec.approved", 0),
            ("Role", "string", ".status.role", 0),
            ("Stage", "string", ".status.progress.currentStage", 0),
            ("Hostname", "string", ".status.inventory.hostname", 1),
            ("Requested Hostname", "string", ".spec.hostname", 1),
        ])
    );
    assert_eq!(
        columns("InfraEnv"),
        rows(&[
            ("ISO Created At", "string", ".status.createdTime", 0),
            ("ISO URL", "string", ".status.isoDownloadURL", 1),
        ])
    );
    let infra_env = definition("InfraEnv");
    assert_eq!(
        infra_env["spec"]["versions"][0]["additionalPrinterColumns"][0]["description"],
        "The Discovery ISO creation time"
    );
    assert_eq!(columns("NMStateConfig"), rows(&[]));
    assert_eq!(columns("AgentClassification"), rows(&[]));
}

#[test]
fn required_members_match_upstream() {
    let required = |kind| {
        keyword(kind, "required")
            .into_iter()
            .map(|(path, names)| {
                let mut names: Vec<_> =
                    names.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
                names.sort();
                (path, json!(names))
            })
            .collect::<BTreeMap<_, _>>()
    };
    assert_eq!(
        required("InfraEnv"),
        table([
            (".spec", json!(["pullSecretRef"])),
            (".spec.mirrorRegistryRef", json!(["name", "namespace"])),
            (".spec.nmStateConfigLabelSelector.matchExpressions[]", json!(["key", "operator"])),
            (".status.agentLabelSelector.matchExpressions[]", json!(["key", "operator"])),
            (".status.conditions[]", json!(["status", "type"])),
        ])
    );
    assert_eq!(
        required("Agent"),
        table([
            (".spec", json!(["approved", "role"])),
            (".spec.ignitionEndpointTokenReference", json!(["name", "namespace"])),
            (".status.conditions[]", json!(["status", "type"])),
            (".status.csrStatus.approvedCSRs[]", json!(["approvedAt", "name", "type"])),
            (".status.inventory.disks[]", json!(["id"])),
            (".status.inventory.disks[].installationEligibility", json!(["notEligibleReasons"])),
            (".status.inventory.interfaces[]", json!(["flags", "ipV4Addresses", "ipV6Addresses"])),
            (".status.validationsInfo{}[]", json!(["id", "message", "status"])),
        ])
    );
    assert_eq!(required("NMStateConfig"), table([(".spec.interfaces[]", json!(["macAddress", "name"]))]));
    assert_eq!(
        required("AgentClassification"),
        table([
            (".spec", json!(["labelKey", "labelValue", "query"])),
            (".status.conditions[]", json!(["status", "type"])),
        ])
    );
}

#[test]
fn defaults_match_upstream() {
    assert_eq!(
        keyword("InfraEnv", "default"),
        table([
            (".spec.agentApproval.autoApprove", json!(false)),
            (".spec.cpuArchitecture", json!("x86_64")),
            (".spec.ipxeScriptType", json!("DiscoveryImageAlways")),
            (".spec.pullSecretRef.name", json!("")),
        ])
    );
    for kind in ["Agent", "NMStateConfig", "AgentClassification"] {
        assert_eq!(keyword(kind, "default"), table([]), "{kind}");
    }
}

#[test]
fn enums_and_limits_match_upstream() {
    assert_eq!(
        keyword("InfraEnv", "enum"),
        table([
            (".spec.ipxeScriptType", json!(["", "DiscoveryImageAlways", "BootOrderControl"])),
            (".spec.kernelArguments[].operation", json!(["append", "replace", "delete"])),
        ])
    );
    assert_eq!(
        keyword("InfraEnv", "pattern"),
        table([(".spec.kernelArguments[].value", json!("^(?:(?:[^ \\t\\n\\r\"]+)|(?:\"[^\"]*\"))+$"))])
    );
    assert_eq!(keyword("InfraEnv", "minimum"), table([(".spec.networkDiscoveryDelaySeconds", json!(0.0))]));
    assert_eq!(keyword("NMStateConfig", "minItems"), table([(".spec.interfaces", json!(1))]));
    assert_eq!(
        keyword("NMStateConfig", "pattern"),
        table([(".spec.interfaces[].macAddress", json!("^([0-9A-Fa-f]{2}[:]){5}([0-9A-Fa-f]{2})$"))])
    );
    for kind in ["Agent", "NMStateConfig", "AgentClassification"] {
        assert_eq!(keyword(kind, "enum"), table([]), "{kind}");
    }
    for kind in ["Agent", "AgentClassification"] {
        assert_eq!(keyword(kind, "pattern"), table([]), "{kind}");
    }
}

#[test]
fn atomic_types_and_free_form_objects_match_upstream() {
    let atomic = || json!("atomic");
    assert_eq!(
        keyword("InfraEnv", "x-kubernetes-map-type"),
        table([
            (".spec.nmStateConfigLabelSelector", atomic()),
            (".spec.pullSecretRef", atomic()),
            (".status.agentLabelSelector", atomic()),
        ])
    );
    assert_eq!(
        keyword("InfraEnv", "x-kubernetes-list-type"),
        table([
            (".spec.nmStateConfigLabelSelector.matchExpressions", atomic()),
            (".spec.nmStateConfigLabelSelector.matchExpressions[].values", atomic()),
            (".status.agentLabelSelector.matchExpressions", atomic()),
            (".status.agentLabelSelector.matchExpressions[].values", atomic()),
        ])
    );
    for kind in ["Agent", "NMStateConfig", "AgentClassification"] {
        assert_eq!(keyword(kind, "x-kubernetes-map-type"), table([]), "{kind}");
        assert_eq!(keyword(kind, "x-kubernetes-list-type"), table([]), "{kind}");
    }
    let free_form = "x-kubernetes-preserve-unknown-fields";
    assert_eq!(keyword("NMStateConfig", free_form), table([(".spec.config", json!(true))]));
    for kind in ["Agent", "InfraEnv", "AgentClassification"] {
        assert_eq!(keyword(kind, free_form), table([]), "{kind}");
    }
}

#[test]
fn formats_match_upstream() {
    let (long, time) = (|| json!("int64"), || json!("date-time"));
    assert_eq!(
        keyword("InfraEnv", "format"),
        table([
            (".spec.networkDiscoveryDelaySeconds", long()),
            (".status.conditions[].lastHeartbeatTime", time()),
            (".status.conditions[].lastTransitionTime", time()),
            (".status.createdTime", time()),
        ])
    );
    assert_eq!(
        keyword("Agent", "format"),
        table([
            (".status.conditions[].lastHeartbeatTime", time()),
            (".status.conditions[].lastTransitionTime", time()),
            (".status.csrStatus.approvedCSRs[].approvedAt", time()),
            (".status.csrStatus.lastApprovalAttempt", time()),
            (".status.inventory.cpu.clockMegahertz", long()),
            (".status.inventory.cpu.count", long()),
            (".status.inventory.disks[].ioPerf.syncDurationMilliseconds", long()),
            (".status.inventory.disks[].sizeBytes", long()),
            (".status.inventory.interfaces[].mtu", long()),
            (".status.inventory.interfaces[].speedMbps", long()),
            (".status.inventory.memory.physicalBytes", long()),
            (".status.inventory.memory.usableBytes", long()),
            (".status.inventory.reportTime", time()),
            (".status.progress.installationPercentage", long()),
            (".status.progress.stageStartTime", time()),
            (".status.progress.stageUpdateTime", time()),
        ])
    );
    assert_eq!(keyword("NMStateConfig", "format"), table([]));
    let classification = properties("AgentClassification");
    for count in [".status.errorCount", ".status.matchedCount"] {
        let schema = &classification[count];
        assert_eq!((&schema["type"], schema.get("format")), (&json!("integer"), None), "{count}");
    }
}

#[test]
fn every_schema_has_one_type_and_no_null() {
    for kind in KINDS {
        for (path, schema) in properties(kind) {
            assert!(schema["type"].is_string(), "{kind}{path} has no type");
            for name in ["nullable", "anyOf", "oneOf", "allOf", "title", "x-server-default"] {
                assert_eq!(schema.get(name), None, "{kind}{path} has {name}");
            }
        }
    }
}

/// Returns the names of all members of an object.
fn members(kind: &str, path: &str) -> String {
    let properties = properties(kind);
    let names = properties[path]["properties"].as_object().unwrap().keys();
    names.map(String::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn infra_env_member_names_match_upstream() {
    for (path, names) in [
        (
            ".spec",
            "additionalNTPSources additionalTrustBundle agentApproval agentLabels clusterRef cpuArchitecture \
             ignitionConfigOverride imageType ipxeScriptType kernelArguments mirrorRegistryRef \
             networkDiscoveryDelaySeconds nmStateConfigLabelSelector ntpSources osImageVersion proxy pullSecretRef \
             sshAuthorizedKey",
        ),
        (".spec.clusterRef", "name namespace"),
        (".spec.proxy", "httpProxy httpsProxy noProxy"),
        (".spec.kernelArguments[]", "operation value"),
        (".status", "agentLabelSelector bootArtifacts conditions createdTime debugInfo isoDownloadURL"),
        (".status.bootArtifacts", "discoveryIgnitionURL initrd ipxeScript kernel rootfs"),
        (".status.debugInfo", "eventsURL staticNetworkDownloadURL"),
        (".status.conditions[]", "lastHeartbeatTime lastTransitionTime message reason status type"),
        (".status.agentLabelSelector", "matchExpressions matchLabels"),
    ] {
        assert_eq!(members("InfraEnv", path), names, "{path}");
    }
}

#[test]
fn agent_member_names_match_upstream() {
    for (path, names) in [
        (
            ".spec",
            "approved clusterDeploymentName fencingCredentialsSecretRef hostname ignitionConfigOverrides \
             ignitionEndpointHTTPHeaders ignitionEndpointTokenReference installation_disk_id installation_disk_path \
             installerArgs machineConfigPool nodeLabels role",
        ),
        (
            ".status",
            "bootstrap conditions csrStatus debugInfo deprovision_info installation_disk_id inventory kind ntpSources \
             progress role validationsInfo",
        ),
        (".status.csrStatus", "approvedCSRs lastApprovalAttempt"),
        (".status.csrStatus.approvedCSRs[]", "approvedAt name type"),
        (".status.debugInfo", "eventsURL logsURL state stateInfo"),
        (".status.deprovision_info", "cluster_name cluster_namespace message node_name"),
        (".status.ntpSources[]", "sourceName sourceState"),
        (
            ".status.progress",
            "currentStage installationPercentage progressInfo progressStages stageStartTime stageUpdateTime",
        ),
        (
            ".status.inventory",
            "bmcAddress bmcV6Address boot cpu disks gpus hostname interfaces memory reportTime systemVendor",
        ),
        (".status.inventory.boot", "currentBootMode deviceType pxeInterface"),
        (".status.inventory.cpu", "architecture clockMegahertz count flags modelName"),
        (
            ".status.inventory.disks[]",
            "bootable byID byPath driveType hctl id installationEligibility ioPerf model name path serial sizeBytes \
             smart vendor wwn",
        ),
        (".status.inventory.disks[].installationEligibility", "eligible notEligibleReasons"),
        (".status.inventory.gpus[]", "address deviceID name vendor vendorID"),
        (
            ".status.inventory.interfaces[]",
            "biosDevName clientID flags hasCarrier ipV4Addresses ipV6Addresses macAddress mtu name product speedMbps \
             vendor",
        ),
        (".status.inventory.systemVendor", "manufacturer productName serialNumber virtual"),
    ] {
        assert_eq!(members("Agent", path), names, "{path}");
    }
    let properties = properties("Agent");
    assert_eq!(properties[".spec.nodeLabels"]["type"], "object");
    assert_eq!(properties[".status.validationsInfo"]["additionalProperties"]["type"], "array");
}

#[test]
fn rule_messages_match_upstream() {
    let messages = |kind| {
        let rules = keyword(kind, "x-kubernetes-validations");
        let rules = rules.get(".spec").cloned().unwrap_or_else(|| json!([]));
        let rules = rules.as_array().unwrap();
        rules.iter().map(|rule| rule["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        messages("InfraEnv"),
        [
            "Attempted to change Spec.ClusterRef which is immutable after InfraEnv creation.",
            "Attempted to change Spec.CpuArchitecture which is immutable after InfraEnv creation.",
            "ntp_sources and additional_ntp_sources are mutually exclusive",
        ]
    );
    assert_eq!(
        messages("Agent"),
        ["Either InstallationDiskID or InstallationDiskPath can be set, not both."]
    );
    assert_eq!(
        messages("AgentClassification"),
        ["Label modified: the specified label may not be modified after creation"]
    );
    assert!(messages("NMStateConfig").is_empty());
}
