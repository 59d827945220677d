//! The kind InfraEnv: the definition of one discovery image.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, ValidationRule,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::AgentInstallCondition;
use super::references::{ClusterRef, LocalRef, MirrorRef, Selector};
use super::resource::{CustomResource, Kind, column, wide_column};
use super::schema::rule;
use super::timestamp::Timestamp;
use super::wire::{nullable, text, zero};

/// The definition of one discovery image.
pub type InfraEnv = CustomResource<InfraEnvSpec>;

impl Kind for InfraEnvSpec {
    type Status = InfraEnvStatus;
    const KIND: &'static str = "InfraEnv";
    const PLURAL: &'static str = "infraenvs";

    fn columns() -> Vec<CustomResourceColumnDefinition> {
        // Upstream shows the time as text, not as an age.
        let created = column("ISO Created At", "string", ".status.createdTime");
        let url = wide_column("ISO URL", "string", ".status.isoDownloadURL");
        vec![
            CustomResourceColumnDefinition {
                description: Some("The Discovery ISO creation time".to_owned()),
                ..created
            },
            CustomResourceColumnDefinition {
                description: Some("The Discovery ISO download URL".to_owned()),
                ..url
            },
        ]
    }
}

/// The desired discovery image, and how hosts that boot it are registered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["pullSecretRef"], "x-kubernetes-validations" = rules()))]
pub struct InfraEnvSpec {
    /// Secret with the pull secret in the key `.dockerconfigjson`.
    #[serde(deserialize_with = "nullable")]
    pub pull_secret_ref: LocalRef,
    /// Cluster that hosts join when they register. Immutable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterRef>,
    /// Proxies for the agent, for the download of the rootfs and for Podman on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxySettings>,
    /// NTP sources in addition to the default ones. Not together with `ntpSources`.
    #[serde(rename = "additionalNTPSources", deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub additional_ntp_sources: Vec<String>,
    /// NTP sources that replace all others. Not together with `additionalNTPSources`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub ntp_sources: Vec<String>,
    /// SSH public key of the user `core` on hosts that boot the image.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub ssh_authorized_key: Option<String>,
    /// Labels that an Agent gets when it is created.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub agent_labels: BTreeMap<String, String>,
    /// Selector of the NMStateConfigs in the image. An empty selector selects none.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub nm_state_config_label_selector: Selector,
    /// Ignition config as JSON, merged into the Ignition config of the image.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub ignition_config_override: Option<String>,
    /// CPU architecture of the image: `x86_64`, `aarch64`, `arm64`, `ppc64le` or `s390x`. Immutable.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-server-default" = "x86_64"))]
    pub cpu_architecture: Option<String>,
    /// Behaviour of the iPXE script: boot the image always, or let the host's state decide.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "x-server-default" = "DiscoveryImageAlways",
        "enum" = ["", "DiscoveryImageAlways", "BootOrderControl"]
    ))]
    pub ipxe_script_type: Option<String>,
    /// Changes to the kernel arguments of the image.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub kernel_arguments: Vec<KernelArgument>,
    /// PEM certificates that hosts trust when they boot the image.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub additional_trust_bundle: Option<String>,
    /// OpenShift version of the base image. Not together with `clusterRef` at creation.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub os_image_version: Option<String>,
    /// ConfigMap with the mirror registries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror_registry_ref: Option<MirrorRef>,
    /// Type of the image: `full-iso` or `minimal-iso`.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub image_type: Option<String>,
    /// Approval of the Agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_approval: Option<AgentApproval>,
    /// Seconds that a host waits at boot before it configures its network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub network_discovery_delay_seconds: Option<i64>,
}

/// Returns the rules of upstream's admission webhook and backend that need no look-up.
///
/// An absent name equals an empty one, as in Go. `namespace` is a reserved word in CEL.
fn rules() -> Vec<ValidationRule> {
    vec![
        rule(
            "has(self.clusterRef) == has(oldSelf.clusterRef) && (!has(self.clusterRef) || \
             ((has(self.clusterRef.name) ? self.clusterRef.name : '') == \
             (has(oldSelf.clusterRef.name) ? oldSelf.clusterRef.name : '') && \
             (has(self.clusterRef.__namespace__) ? self.clusterRef.__namespace__ : '') == \
             (has(oldSelf.clusterRef.__namespace__) ? oldSelf.clusterRef.__namespace__ : '')))",
            "Attempted to change Spec.ClusterRef which is immutable after InfraEnv creation.",
        ),
        rule(
            "(has(self.cpuArchitecture) && self.cpuArchitecture != '' ? self.cpuArchitecture : 'x86_64') == \
             (has(oldSelf.cpuArchitecture) && oldSelf.cpuArchitecture != '' ? oldSelf.cpuArchitecture : 'x86_64')",
            "Attempted to change Spec.CpuArchitecture which is immutable after InfraEnv creation.",
        ),
        rule(
            "!has(self.ntpSources) || size(self.ntpSources) == 0 || \
             !has(self.additionalNTPSources) || size(self.additionalNTPSources) == 0",
            "ntp_sources and additional_ntp_sources are mutually exclusive",
        ),
    ]
}

/// Proxies of hosts that boot a discovery image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ProxySettings {
    /// Proxy for HTTP.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// Proxy for HTTPS.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    /// Comma-separated domains and subnets to reach without a proxy.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
}

/// A change to the kernel arguments of the image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KernelArgument {
    /// Operation. The image service supports `append` only.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["append", "replace", "delete"]))]
    pub operation: Option<String>,
    /// The argument, such as `quiet` or `rd.net.timeout.carrier=60`.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r#"^(?:(?:[^ \t\n\r"]+)|(?:"[^"]*"))+$"#))]
    pub value: Option<String>,
}

/// Approval of the Agents of an InfraEnv.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentApproval {
    /// Approves Agents when they are created.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    #[schemars(extend("x-server-default" = false))]
    pub auto_approve: bool,
}

/// The state of a discovery image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InfraEnvStatus {
    /// URL of the current image.
    #[serde(rename = "isoDownloadURL", deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub iso_download_url: String,
    /// Time of the last change of `isoDownloadURL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_time: Option<Timestamp>,
    /// The condition `ImageCreated`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub conditions: Vec<AgentInstallCondition>,
    /// Selector of the Agents of this InfraEnv.
    #[serde(deserialize_with = "nullable")]
    pub agent_label_selector: Selector,
    /// URLs of the parts of the image.
    #[serde(deserialize_with = "nullable")]
    pub boot_artifacts: BootArtifactUrls,
    /// URLs for troubleshooting.
    #[serde(deserialize_with = "nullable")]
    pub debug_info: InfraEnvDebugInfo,
}

/// URLs of the parts of a discovery image. Empty URLs are serialised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BootArtifactUrls {
    /// URL of the initrd.
    #[serde(deserialize_with = "nullable")]
    pub initrd: String,
    /// URL of the rootfs.
    #[serde(deserialize_with = "nullable")]
    pub rootfs: String,
    /// URL of the kernel.
    #[serde(deserialize_with = "nullable")]
    pub kernel: String,
    /// URL of the iPXE script.
    #[serde(deserialize_with = "nullable")]
    pub ipxe_script: String,
    /// URL of the Ignition config.
    #[serde(rename = "discoveryIgnitionURL", deserialize_with = "nullable")]
    pub discovery_ignition_url: String,
}

/// URLs for troubleshooting an InfraEnv.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InfraEnvDebugInfo {
    /// URL of the events. An empty URL is serialised.
    #[serde(rename = "eventsURL", deserialize_with = "nullable")]
    pub events_url: String,
    /// URL of the network configuration in the image.
    #[serde(
        rename = "staticNetworkDownloadURL",
        deserialize_with = "nullable",
        skip_serializing_if = "zero"
    )]
    pub static_network_download_url: String,
}
