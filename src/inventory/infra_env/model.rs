//! Infra-envs as clients see and send them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::images::{CpuArchitecture, ImageType};
use crate::inventory::id::{ClusterId, InfraEnvId};
use crate::inventory::request::request_bodies;
use crate::inventory::time::{Micros, Millis};

/// An infra-env: what a group of machines boots.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = infra_env)]
pub struct InfraEnv {
    /// Always `InfraEnv`.
    pub kind: &'static str,
    /// Its id.
    pub id: InfraEnvId,
    /// Its path.
    pub href: String,
    /// Its name. Others may have the same.
    pub name: String,
    /// The version whose live image its machines boot.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    /// Whose it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    /// The domain of the owner's mail address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email_domain: String,
    /// Proxies.
    pub proxy: Proxy,
    /// Time servers beside those that a machine has from elsewhere, with commas between them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub additional_ntp_sources: String,
    /// The only time servers, with commas between them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    /// Who may log in, one key a line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ssh_authorized_key: String,
    /// Whether there is a pull secret. It is never shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pull_secret_set: bool,
    /// The networks of its machines: a list of `host_static_network_config`, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub static_network_config: String,
    /// The address of the machine that the others of a disconnected cluster meet at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendezvous_ip: Option<String>,
    /// The kind of image that `download_url` gives.
    #[serde(rename = "type")]
    pub image_type: ImageType,
    /// What shall be otherwise in the Ignition config, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignition_config_override: String,
    /// The cluster that its machines become part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Where its image is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub download_url: String,
    /// When it changed last.
    pub updated_at: Micros,
    /// When it was made.
    pub created_at: Micros,
    /// When `download_url` ends. In the year 1: never.
    pub expires_at: Millis,
    /// The processor of its machines.
    #[schema(value_type = String)]
    pub cpu_architecture: CpuArchitecture,
    /// Changes of the kernel arguments: a list of `kernel_argument`, as JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<String>,
    /// More certificates to trust.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub additional_trust_bundle: String,
    /// How long a machine waits before it looks at its network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_discovery_delay_seconds: Option<i64>,
}

/// Proxies of machines. What is absent is left as it is, what is empty is taken away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = proxy)]
pub struct Proxy {
    /// For `http:` URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// For `https:` URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    /// What is reached without a proxy: names, addresses and networks, with commas between them, or `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
}

/// The network of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = host_static_network_config)]
pub struct HostStaticNetwork {
    /// Which interface of the document is which card of the machine.
    #[serde(default)]
    #[schema(required = false)]
    pub mac_interface_map: Vec<MacInterface>,
    /// An nmstate document.
    #[serde(default)]
    #[schema(required = false)]
    pub network_yaml: String,
}

/// A card of a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = mac_interface_map_item)]
pub struct MacInterface {
    /// The name of its interface in the document.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub logical_nic_name: String,
    /// Its address.
    #[schema(pattern = r"^([0-9A-Fa-f]{2}[:]){5}([0-9A-Fa-f]{2})$")]
    pub mac_address: String,
}

/// What is done with a kernel argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = kernel_argument_operation)]
pub enum KernelArgumentOperation {
    /// It comes after the others.
    Append,
    /// It takes the place of one.
    Replace,
    /// It goes.
    Delete,
}

/// A change of the kernel arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = kernel_argument)]
pub struct KernelArgument {
    /// What is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<KernelArgumentOperation>,
    /// The argument. Without it, nothing is done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, pattern = r#"^(?:(?:[^ \t\n\r"]+)|(?:"[^"]*"))+$"#)]
    pub value: String,
}

/// What an infra-env is made from.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = infra_env_create_params)]
pub struct InfraEnvCreateParams {
    /// Its name.
    pub name: String,
    /// Credentials of registries: a `config.json`, in a string.
    pub pull_secret: String,
    /// Proxies.
    pub proxy: Option<Proxy>,
    /// Time servers beside those that a machine has from elsewhere, with commas between them.
    pub additional_ntp_sources: Option<String>,
    /// The only time servers, with commas between them.
    pub ntp_sources: Option<String>,
    /// Who may log in, one key a line.
    pub ssh_authorized_key: Option<String>,
    /// The networks of its machines.
    pub static_network_config: Option<Vec<HostStaticNetwork>>,
    /// The address of the machine that the others of a disconnected cluster meet at.
    pub rendezvous_ip: Option<String>,
    /// The kind of image.
    pub image_type: Option<ImageType>,
    /// What shall be otherwise in the Ignition config, as JSON in a string.
    pub ignition_config_override: Option<String>,
    /// The cluster that its machines become part of.
    pub cluster_id: Option<ClusterId>,
    /// The version whose live image its machines boot. The newest one if it is absent.
    pub openshift_version: Option<String>,
    /// The processor of its machines.
    #[schema(value_type = Option<Architecture>)]
    pub cpu_architecture: Option<CpuArchitecture>,
    /// Changes of the kernel arguments.
    pub kernel_arguments: Option<Vec<KernelArgument>>,
    /// More certificates to trust.
    #[schema(max_length = 65535)]
    pub additional_trust_bundle: Option<String>,
    /// How long a machine waits before it looks at its network.
    #[schema(minimum = 0, maximum = 4_294_967_295_u32)]
    pub network_discovery_delay_seconds: Option<i64>,
}

/// The processor of a machine, under all its names.
#[derive(Debug, ToSchema)]
#[schema(as = cpu_architecture)]
#[expect(dead_code, reason = "the type describes values; it is never made")]
pub(super) enum Architecture {
    /// Intel and AMD, 64 bits.
    #[schema(rename = "x86_64")]
    X86_64,
    /// ARM, 64 bits.
    #[schema(rename = "aarch64")]
    Aarch64,
    /// ARM, 64 bits.
    #[schema(rename = "arm64")]
    Arm64,
    /// POWER, little-endian.
    #[schema(rename = "ppc64le")]
    Ppc64le,
    /// IBM Z.
    #[schema(rename = "s390x")]
    S390x,
}

/// What an infra-env is changed to. What is absent or null is left as it is.
///
/// A body that a GET gave may come back: `type` is read as `image_type`, lists may be JSON in a string, and what only the
/// service sets is passed over.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = infra_env_update_params)]
pub struct InfraEnvUpdateParams {
    /// Its id, if the body says it: it cannot change.
    pub id: Option<InfraEnvId>,
    /// Its name, if the body says it: it cannot change.
    pub name: Option<String>,
    /// Its cluster, if the body says it: it cannot change.
    pub cluster_id: Option<ClusterId>,
    /// The processor of its machines, if the body says it: it cannot change.
    #[schema(value_type = Option<Architecture>)]
    pub cpu_architecture: Option<CpuArchitecture>,
    /// Proxies.
    pub proxy: Option<Proxy>,
    /// Time servers beside those that a machine has from elsewhere; none if empty.
    pub additional_ntp_sources: Option<String>,
    /// The only time servers; none if empty.
    pub ntp_sources: Option<String>,
    /// Who may log in, one key a line; nobody if empty.
    pub ssh_authorized_key: Option<String>,
    /// Credentials of registries; left as they are if empty.
    pub pull_secret: Option<String>,
    /// The networks of its machines, all of them.
    pub static_network_config: Option<Vec<HostStaticNetwork>>,
    /// The address of the machine that the others of a disconnected cluster meet at; none if empty.
    pub rendezvous_ip: Option<String>,
    /// The kind of image; left as it is if empty.
    pub image_type: Option<ImageType>,
    /// What shall be otherwise in the Ignition config, as JSON in a string; nothing if empty.
    pub ignition_config_override: Option<String>,
    /// Changes of the kernel arguments, all of them.
    pub kernel_arguments: Option<Vec<KernelArgument>>,
    /// More certificates to trust; none if empty.
    #[schema(max_length = 65535)]
    pub additional_trust_bundle: Option<String>,
    /// The version whose live image its machines boot; left as it is if empty.
    pub openshift_version: Option<String>,
    /// How long a machine waits before it looks at its network.
    #[schema(minimum = 0, maximum = 4_294_967_295_u32)]
    pub network_discovery_delay_seconds: Option<i64>,
}

request_bodies! {
    InfraEnvCreateParams: "infraenvCreateParams";
    InfraEnvUpdateParams: "infraEnvUpdateParams", prepared by accept_what_was_shown;
}

/// Makes of a body that a GET gave one that a PATCH takes.
fn accept_what_was_shown(body: &mut Value) {
    /// What only the service sets.
    const SHOWN_ONLY: [&str; 11] = [
        "kind",
        "href",
        "user_name",
        "email_domain",
        "pull_secret_set",
        "download_url",
        "updated_at",
        "created_at",
        "expires_at",
        "size_bytes",
        "generator_version",
    ];
    let Value::Object(map) = body else { return };
    for key in SHOWN_ONLY {
        map.shift_remove(key);
    }
    if let Some(image_type) = map.shift_remove("type")
        && !map.contains_key("image_type")
    {
        map.insert("image_type".to_owned(), image_type);
    }
    if map.get("image_type").and_then(Value::as_str) == Some("") {
        map.shift_remove("image_type");
    }
    for key in ["static_network_config", "kernel_arguments"] {
        let Some(list) = map.get_mut(key) else { continue };
        if let Some(parsed) = list.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok())
            && parsed.is_array()
        {
            *list = parsed;
        }
    }
}

/// A URL that works for a while.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = presigned_url)]
pub struct PresignedUrl {
    /// The URL.
    pub url: String,
    /// When it ends. In the year 1: never.
    pub expires_at: Millis,
}
