//! The infra-env resource, its parts, and the request bodies of its operations.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::architecture::{CpuArchitecture, ImageType};
use crate::extensible::Extensible;
use crate::id::{ClusterId, InfraEnvId};
use crate::secret::Secret;
use crate::time::{Micros, Millis};
use crate::wire::{empty_as_none, is_default, lenient};

/// An infra-env: the description of the discovery images that a group of hosts boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = infra_env))]
pub struct InfraEnv {
    /// Always `InfraEnv`.
    pub kind: Cow<'static, str>,
    /// Id of the infra-env.
    pub id: InfraEnvId,
    /// Path of the resource.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub href: String,
    /// Name. Not unique.
    pub name: String,
    /// OpenShift version whose base image the hosts boot.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    /// User name of the owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    /// Organization of the owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub org_id: String,
    /// Domain of the owner's email address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email_domain: String,
    /// Proxies for the hosts.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub proxy: Proxy,
    /// Additional time servers, separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub additional_ntp_sources: String,
    /// Time servers that replace all others, separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    /// Public SSH keys that can log in, one per line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ssh_authorized_key: String,
    /// Whether a pull secret is set. The service never returns the secret.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pull_secret_set: bool,
    /// Static networks of the hosts: a list of `host_static_network_config`, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub static_network_config: String,
    /// IP address of the rendezvous host of a disconnected cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendezvous_ip: Option<String>,
    /// Type of the image at `download_url`.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(value_type = ImageType))]
    pub image_type: Extensible<ImageType>,
    /// User-supplied override of the discovery Ignition config, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ignition_config_override: String,
    /// Cluster to which the hosts are bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Size of the image. The Assisted Installer does not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub size_bytes: Option<i64>,
    /// URL of the image.
    #[serde(default, skip_serializing_if = "Secret::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub download_url: Secret,
    /// Version of the program that made the image. The Assisted Installer does not set it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub generator_version: String,
    /// Time of the last change.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub updated_at: Micros,
    /// Creation time.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub created_at: Micros,
    /// Time when `download_url` expires. The year 1 means never.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub expires_at: Millis,
    /// CPU architecture of the hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = true))]
    pub cpu_architecture: Option<Extensible<CpuArchitecture>>,
    /// Changes to the kernel arguments: a list of `kernel_argument`, as JSON in a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<String>,
    /// Additional certificates to trust, in PEM format.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub additional_trust_bundle: String,
    /// Seconds that a host waits before it checks its network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_discovery_delay_seconds: Option<i64>,
}

impl InfraEnv {
    /// The value of `kind`.
    pub const KIND: &'static str = "InfraEnv";

    /// Parses the static networks of the hosts.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a list of static networks.
    pub fn static_networks(&self) -> Result<Vec<HostStaticNetwork>, serde_json::Error> {
        match self.static_network_config.as_str() {
            "" => Ok(Vec::new()),
            text => serde_json::from_str(text),
        }
    }

    /// Parses the changes to the kernel arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a list of changes.
    pub fn kernel_argument_changes(&self) -> Result<Vec<KernelArgument>, serde_json::Error> {
        match self.kernel_arguments.as_deref() {
            None | Some("") => Ok(Vec::new()),
            Some(text) => serde_json::from_str(text),
        }
    }
}

/// Proxies for hosts. An absent proxy stays unchanged; an empty one is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = proxy))]
pub struct Proxy {
    /// Proxy for `http:` URLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// Proxy for `https:` URLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    /// Destinations to reach without a proxy: names, addresses and networks, separated by commas, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
}

/// Static network of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = host_static_network_config))]
pub struct HostStaticNetwork {
    /// MAC addresses of the interfaces in `network_yaml`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub mac_interface_map: Vec<MacInterface>,
    /// The nmstate document.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub network_yaml: String,
}

/// MAC address of one interface.
#[derive(Clone, Debug, PartialOrd, Ord, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = mac_interface_map_item))]
pub struct MacInterface {
    /// Name of the interface in the nmstate document.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub logical_nic_name: String,
    /// MAC address of the interface.
    #[cfg_attr(feature = "openapi", schema(pattern = r"^([0-9A-Fa-f]{2}[:]){5}([0-9A-Fa-f]{2})$"))]
    pub mac_address: String,
}

/// Operation on a kernel argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = kernel_argument_operation))]
pub enum KernelArgumentOperation {
    /// Append the argument.
    Append,
    /// Replace an argument.
    Replace,
    /// Delete the argument.
    Delete,
}

/// A change to the kernel arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = kernel_argument))]
pub struct KernelArgument {
    /// Operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<KernelArgumentOperation>,
    /// The kernel argument. If empty, the change has no effect.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(
        feature = "openapi",
        schema(required = false, pattern = r#"^(?:(?:[^ \t\n\r"]+)|(?:"[^"]*"))+$"#)
    )]
    pub value: String,
}

lenient!(Proxy, HostStaticNetwork, MacInterface, KernelArgument);

/// All findings in the static networks, in the config and in the addresses of an infra-env.
///
/// Only Kindling has this resource. Each finding has at least `severity` and `message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(
        as = preflight,
        description = "All findings in the static networks, in the config and in the addresses of an infra-env."
    )
)]
pub struct Preflight {
    /// Id of the infra-env.
    pub infra_env_id: InfraEnvId,
    /// Generation of the checked image.
    pub image_generation: u64,
    /// Findings in the static networks: severity, rule, host, interface, path, line and message.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>, required = true))]
    pub network: Vec<Value>,
    /// Findings in the Ignition config override: severity, pointer, line and message.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>, required = true))]
    pub ignition: Vec<Value>,
    /// URLs in the image that machines cannot reach: severity, URL and message.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>, required = true))]
    pub addresses: Vec<Value>,
}

/// Parameters of a new infra-env.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = infra_env_create_params))]
pub struct InfraEnvCreateParams {
    /// Name of the infra-env.
    pub name: String,
    /// Pull secret: the registry credentials, as JSON in a string.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pull_secret: Secret,
    /// Proxies for the hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Additional time servers, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_ntp_sources: Option<String>,
    /// Time servers that replace all others, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
    /// Public SSH keys that can log in, one per line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_authorized_key: Option<String>,
    /// Static networks of the hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub static_network_config: Option<Vec<HostStaticNetwork>>,
    /// IP address of the rendezvous host of a disconnected cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendezvous_ip: Option<String>,
    /// Type of the image.
    #[serde(default, deserialize_with = "empty_as_none", skip_serializing_if = "Option::is_none")]
    pub image_type: Option<ImageType>,
    /// User-supplied override of the discovery Ignition config, as JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_config_override: Option<String>,
    /// Cluster to which the hosts are bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// OpenShift version whose base image the hosts boot. Absent: the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_version: Option<String>,
    /// CPU architecture of the hosts.
    #[serde(default, deserialize_with = "empty_as_none", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::architecture::InfraEnvArchitecture>))]
    pub cpu_architecture: Option<CpuArchitecture>,
    /// Changes to the kernel arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<Vec<KernelArgument>>,
    /// Additional certificates to trust, in PEM format.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 65535))]
    pub additional_trust_bundle: Option<String>,
    /// Seconds that a host waits before it checks its network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4_294_967_295_u32))]
    pub network_discovery_delay_seconds: Option<i64>,
}

/// Changes to an infra-env. Absent and null fields stay unchanged.
///
/// The Assisted Service refuses `id`, `name`, `cluster_id` and `cpu_architecture`. It ignores an empty
/// `ssh_authorized_key` or `ignition_config_override`, so these values cannot be removed. Set all three keys of
/// `proxy`, because the service can otherwise miss a change.
///
/// Kindling accepts an immutable field if it has the current value, and removes a value if the field documents that for
/// empty values. It also accepts the body of a GET response, which this type cannot represent: Kindling takes `type` as
/// `image_type` and lists as JSON in a string, and ignores fields that only the service sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(
        as = infra_env_update_params,
        description = "Changes to an infra-env. Absent and null fields stay unchanged.\n\n\
            The body of a GET response is accepted: `type` is read as `image_type`, lists can be JSON in a string, \
            and fields\nthat only the service sets are ignored."
    )
)]
pub struct InfraEnvUpdateParams {
    /// Id. Immutable: if set, it must be the current value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<InfraEnvId>,
    /// Name. Immutable: if set, it must be the current value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Cluster. Immutable: if set, it must be the current value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// CPU architecture of the hosts. Immutable: if set, it must be the current value.
    #[serde(default, deserialize_with = "empty_as_none", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::architecture::InfraEnvArchitecture>))]
    pub cpu_architecture: Option<CpuArchitecture>,
    /// Proxies for the hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Additional time servers, separated by commas. Empty: removes all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_ntp_sources: Option<String>,
    /// Time servers that replace all others, separated by commas. Empty: removes all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
    /// Public SSH keys that can log in, one per line. Empty: removes all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_authorized_key: Option<String>,
    /// Pull secret: the registry credentials, as JSON in a string. Unchanged if empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub pull_secret: Option<Secret>,
    /// Static networks of the hosts. Replaces all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub static_network_config: Option<Vec<HostStaticNetwork>>,
    /// IP address of the rendezvous host of a disconnected cluster. Empty: removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendezvous_ip: Option<String>,
    /// Type of the image. Unchanged if empty.
    #[serde(default, deserialize_with = "empty_as_none", skip_serializing_if = "Option::is_none")]
    pub image_type: Option<ImageType>,
    /// User-supplied override of the discovery Ignition config, as JSON in a string. Empty: removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_config_override: Option<String>,
    /// Changes to the kernel arguments. Replaces all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<Vec<KernelArgument>>,
    /// Additional certificates to trust, in PEM format. Empty: removes all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 65535))]
    pub additional_trust_bundle: Option<String>,
    /// OpenShift version whose base image the hosts boot. Unchanged if empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_version: Option<String>,
    /// Seconds that a host waits before it checks its network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 4_294_967_295_u32))]
    pub network_discovery_delay_seconds: Option<i64>,
}

impl InfraEnvCreateParams {
    /// Returns parameters with these required values. The service chooses everything else.
    ///
    /// # Examples
    ///
    /// ```
    /// use assisted::Secret;
    /// use assisted::infra_env::InfraEnvCreateParams;
    ///
    /// let params = InfraEnvCreateParams {
    ///     openshift_version: Some("4.18".to_owned()),
    ///     ..InfraEnvCreateParams::new("edge", Secret::new("{}"))
    /// };
    /// ```
    pub fn new(name: impl Into<String>, pull_secret: Secret) -> Self {
        Self {
            name: name.into(),
            pull_secret,
            proxy: None,
            additional_ntp_sources: None,
            ntp_sources: None,
            ssh_authorized_key: None,
            static_network_config: None,
            rendezvous_ip: None,
            image_type: None,
            ignition_config_override: None,
            cluster_id: None,
            openshift_version: None,
            cpu_architecture: None,
            kernel_arguments: None,
            additional_trust_bundle: None,
            network_discovery_delay_seconds: None,
        }
    }
}

/// A URL with a token for one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = presigned_url))]
pub struct PresignedUrl {
    /// URL of a file, including the token.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub url: Secret,
    /// Time when the URL expires. The year 1 means never.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub expires_at: Millis,
}
