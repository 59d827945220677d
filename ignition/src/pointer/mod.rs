//! Pointer configs: small configs of hosts to be installed. Each points to the full config of the host's pool.
//!
//! The machine config server of a cluster serves one config for each machine config pool. A pointer config contains the
//! URL of the pool's config, the authority that signed the server's certificate, and the settings of a single host: the
//! host's name, address hint and override.
//!
//! * [`ConfigEndpoint`] generates the pointer config of a host that joins a running cluster.
//! * [`InstalledHost`] adds the settings of one host to a pointer config, either from [`ConfigEndpoint`] or from the
//!   installer.
//!
//! Planned caller: the installation flow, which generates the config of each host before the host is installed.

use std::fmt;
use std::net::IpAddr;

use crate::builder::{ConfigBuilder, FileMode, UnitState};
use crate::config::Config;
use crate::discovery::overrides::{apply_override, validated};
use crate::discovery::{
    AgentToken, CertificateBundle, ComposeError, ComposedConfig, HostName, HttpUrl, InputError, Override,
    is_host_name,
};
use crate::json::Json;
use crate::merge::merge;
use crate::report::ConfigReport;
use crate::spec::Spec;

/// The name of the API field with the override of a host.
const OVERRIDE_FIELD: &str = "ignition_config_overrides";

/// The spec version of pointer configs.
pub(crate) const SPEC: Spec = Spec::V3_2;

/// The HTTPS and HTTP ports of a machine config server.
const HTTPS_PORT: u16 = 22623;
const HTTP_PORT: u16 = 22624;

/// The name of a machine config pool, a group of hosts that share a config.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineConfigPool(String);

impl MachineConfigPool {
    /// Creates a pool from its name, such as `worker`.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is not valid for a pool.
    pub fn new(name: &str) -> Result<Self, InputError> {
        if is_host_name(name) && !name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Ok(Self(name.to_owned()));
        }
        Err(InputError::new("machine_config_pool_name", name, "is not a valid name of a machine config pool"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The address of a machine config server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MachineConfigServer {
    /// The URL of the server. The name of a pool is appended to it.
    Url(HttpUrl),
    /// The API host of the cluster, such as `api.cluster.example.com` or an IP address.
    ApiHost(String),
}

/// An HTTP header that a host sends with the request for its config.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestHeader {
    name: String,
    value: String,
}

impl RequestHeader {
    /// Creates a header.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is not an HTTP token, or if the value is empty or contains characters other than
    /// printable ASCII and blanks.
    pub fn new(name: &str, value: &str) -> Result<Self, InputError> {
        const FIELD: &str = "ignition_endpoint.headers";
        let is_token = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(InputError::new(FIELD, name, "is not a valid header name"));
        }
        if value.is_empty() || !value.bytes().all(|it| it == b' ' || it.is_ascii_graphic()) {
            return Err(InputError::new(FIELD, name, "has an empty or invalid value"));
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

/// Hides the value, which may be a credential.
impl fmt::Debug for RequestHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestHeader({}: *****)", self.name)
    }
}

/// The source of a pool's config, from which hosts fetch it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEndpoint {
    /// The machine config server.
    pub server: MachineConfigServer,
    /// The machine config pool of the host.
    pub pool: MachineConfigPool,
    /// The token that the server requires, if any.
    pub token: Option<AgentToken>,
    /// Additional headers that the server requires, each with a different name.
    pub headers: Vec<RequestHeader>,
    /// The authority that signed the server's certificate. If set, hosts use HTTPS for the API host.
    pub authority: Option<CertificateBundle>,
}

impl ConfigEndpoint {
    /// Returns the URL of the pool's config.
    ///
    /// # Errors
    ///
    /// Returns an error if the API host is neither a host name nor an IP address.
    pub fn url(&self) -> Result<String, InputError> {
        let pool = self.pool.as_str();
        let host = match &self.server {
            MachineConfigServer::Url(url) => return Ok(url.join(&format!("/{pool}"))),
            MachineConfigServer::ApiHost(host) => host,
        };
        let host = match host.parse() {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            Ok(IpAddr::V4(address)) => address.to_string(),
            Err(_) if is_host_name(host) => host.clone(),
            Err(_) => return Err(InputError::new("api_host", host, "is neither a host name nor an address")),
        };
        if self.authority.is_none() {
            return Ok(format!("http://{host}:{HTTP_PORT}/config/{pool}"));
        }
        // The server's certificate is valid only for the internal name.
        let internal = host.strip_prefix("api.").map(|rest| format!("api-int.{rest}"));
        Ok(format!("https://{}:{HTTPS_PORT}/config/{pool}", internal.unwrap_or(host)))
    }

    /// Returns the pointer config of a host in the pool.
    ///
    /// # Errors
    ///
    /// * [`ComposeError::Input`] if the API host is neither a host name nor an IP address.
    /// * [`ComposeError::Invalid`] if two headers have the same name.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::pointer::{ConfigEndpoint, MachineConfigPool, MachineConfigServer};
    ///
    /// let endpoint = ConfigEndpoint {
    ///     server: MachineConfigServer::ApiHost("api.a.example.com".to_owned()),
    ///     pool: MachineConfigPool::new("worker")?,
    ///     token: None,
    ///     headers: Vec::new(),
    ///     authority: None,
    /// };
    /// let config = endpoint.pointer_config()?;
    /// assert!(config.to_string().contains(r#""source":"http://api.a.example.com:22624/config/worker""#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pointer_config(&self) -> Result<Config, ComposeError> {
        let token = self.token.iter().map(|token| RequestHeader {
            name: "Authorization".to_owned(),
            value: format!("Bearer {}", token.reveal()),
        });
        let headers = token.chain(self.headers.iter().cloned());
        let headers = headers.map(|RequestHeader { name, value }| {
            Json::object([("name", name.into()), ("value", value.into())])
        });
        let merged = [("source", self.url()?.into()), ("httpHeaders", Json::List(headers.collect()))];
        let mut builder = ConfigBuilder::new();
        builder.merge_reference(Json::object(merged));
        if let Some(authority) = &self.authority {
            builder.add_plain_certificate_authority(authority.as_pem());
        }
        validated(builder.into_config(SPEC)?)
    }
}

/// The medium that the discovery system was booted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiscoveryMedia {
    /// The network or removable media. Nothing of it remains on the host.
    #[default]
    Transient,
    /// A disk of the host. The discovery system must be removed from it.
    Disk,
}

/// The settings of one host that is to be installed.
#[derive(Clone, Debug)]
pub struct InstalledHost {
    hostname: HostName,
    /// An address in the network that contains the node's own address, if the cluster needs the hint.
    pub node_ip_hint: Option<IpAddr>,
    /// The pool of the host, if it differs from the default pool of the role.
    pub pool: Option<MachineConfigPool>,
    /// The user's override for this host.
    pub config_override: Option<Override>,
    /// The medium that the discovery system was booted from.
    pub discovery_media: DiscoveryMedia,
}

impl InstalledHost {
    /// Creates the settings of a host that has only a name.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is not a lower-case host name or is longer than 64 characters.
    pub fn new(hostname: &str) -> Result<Self, InputError> {
        Ok(Self {
            hostname: HostName::parse("requested_hostname", hostname)?,
            node_ip_hint: None,
            pool: None,
            config_override: None,
            discovery_media: DiscoveryMedia::Transient,
        })
    }

    /// Adds the settings of the host to a pointer config: first the name and the address hint, then the override, then
    /// the pool and the removal of the discovery system.
    ///
    /// Files of the host replace files of the pointer config with the same path, because Ignition rejects two files
    /// with the same path.
    ///
    /// # Errors
    ///
    /// * [`ComposeError::Override`] if the override is not a valid config.
    /// * [`ComposeError::Merged`] if the override is valid, but the merged config is not.
    /// * [`ComposeError::Invalid`] if the result without the override is not valid.
    /// * [`ComposeError::Input`] if a pool is set and no source in the config belongs to the worker pool.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::config::Config;
    /// use ignition::pointer::InstalledHost;
    ///
    /// let pointer = Config::parse(br#"{"ignition": {"version": "3.2.0"}}"#)?.config;
    /// let config = InstalledHost::new("node-0")?.compose(&pointer)?.config;
    /// assert!(config.to_string().contains(r#""source":"data:,node-0""#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compose(&self, pointer: &Config) -> Result<ComposedConfig, ComposeError> {
        let base = validated(merge(pointer, &self.host_files().into_config(SPEC)?))?;
        let mut composed = match &self.config_override {
            Some(over) => apply_override(&base, OVERRIDE_FIELD, over)?,
            None => ComposedConfig { config: base, warnings: ConfigReport::default() },
        };
        if let Some(pool) = &self.pool {
            set_pool(&mut composed.config, pool)?;
        }
        if self.discovery_media == DiscoveryMedia::Disk {
            composed.config = validated(merge(&composed.config, &discovery_removal().into_config(SPEC)?))?;
        }
        Ok(composed)
    }

    fn host_files(&self) -> ConfigBuilder {
        let mut builder = ConfigBuilder::new();
        builder.replace_file("/etc/hostname", FileMode::PUBLIC, self.hostname.as_str());
        if let Some(hint) = self.node_ip_hint {
            let line = format!("KUBELET_NODEIP_HINT={hint}\n");
            builder.replace_file("/etc/default/nodeip-configuration", FileMode::PUBLIC, line);
        }
        builder
    }
}

/// Returns the files and the unit that remove the discovery system from the disk.
fn discovery_removal() -> ConfigBuilder {
    let mut builder = ConfigBuilder::new();
    let path = "/usr/local/bin/cleanup-assisted-discovery-stateroot.sh";
    let script = include_str!("content/cleanup-assisted-discovery-stateroot.sh");
    builder.replace_file(path, FileMode::EXECUTABLE, script);
    let unit = include_str!("content/cleanup-assisted-discovery-stateroot.service");
    builder.replace_unit("cleanup-assisted-discovery-stateroot.service", UnitState::Enabled, unit);
    builder
}

/// Replaces the worker pool with another pool in the sources of a config.
fn set_pool(config: &mut Config, pool: &MachineConfigPool) -> Result<(), InputError> {
    const WORKER_POOL_PATH: &str = "/config/worker";
    let mut count = 0;
    let merges = config.root_mut().pointer_mut("/ignition/config/merge").and_then(Json::as_list_mut);
    for source in merges.into_iter().flatten().filter_map(|entry| entry.get_mut("source")) {
        if let Some(start) = source.as_text().and_then(|source| source.strip_suffix(WORKER_POOL_PATH)) {
            *source = format!("{start}/config/{}", pool.as_str()).into();
            count += 1;
        }
    }
    if count == 0 {
        let reason = format!("the pointer config has no source that ends in {WORKER_POOL_PATH}");
        return Err(InputError::new("machine_config_pool_name", pool.as_str(), reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::resource;

    const PEM: &str = "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n";

    fn endpoint(server: MachineConfigServer, authority: bool) -> ConfigEndpoint {
        let authority = authority.then(|| CertificateBundle::parse("f", PEM).unwrap());
        ConfigEndpoint {
            server,
            pool: MachineConfigPool::new("worker").unwrap(),
            token: None,
            headers: Vec::new(),
            authority,
        }
    }

    fn api_host_url(host: &str, authority: bool) -> String {
        endpoint(MachineConfigServer::ApiHost(host.to_owned()), authority).url().unwrap()
    }

    fn list_names(config: &Config, pointer: &str, key: &str) -> Vec<String> {
        let root = config.to_value();
        let list = root.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
        list.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
    }

    fn file_contents(config: &Config, path: &str) -> Vec<String> {
        let root = config.to_value();
        let files = root["storage"]["files"].as_array().unwrap();
        let of = files.iter().filter(|file| file["path"] == path);
        let text =
            |file: &Value| resource::decode_contents(file["contents"]["source"].as_str().unwrap(), None);
        of.map(|file| String::from_utf8(text(file)).unwrap()).collect()
    }

    #[test]
    fn server_url_comes_from_api_host_or_url() {
        assert_eq!(api_host_url("api.a.b", false), "http://api.a.b:22624/config/worker");
        assert_eq!(api_host_url("api.a.b", true), "https://api-int.a.b:22623/config/worker");
        assert_eq!(api_host_url("fd00::1", false), "http://[fd00::1]:22624/config/worker");
        assert_eq!(api_host_url("192.0.2.1", true), "https://192.0.2.1:22623/config/worker");
        let custom = MachineConfigServer::Url(HttpUrl::parse("f", "https://a:1/ignition/").unwrap());
        assert_eq!(endpoint(custom, true).url().unwrap(), "https://a:1/ignition/worker");
        let bad = endpoint(MachineConfigServer::ApiHost("a/b".to_owned()), false);
        assert!(bad.pointer_config().unwrap_err().to_string().starts_with("api_host \"a/b\""));
    }

    #[test]
    fn pointer_config_has_source_token_and_authority() {
        let mut endpoint = endpoint(MachineConfigServer::ApiHost("api.a".to_owned()), true);
        endpoint.token = Some(AgentToken::new("t0ken").unwrap());
        endpoint.headers = vec![RequestHeader::new("X-Site", "hunter 2").unwrap()];
        assert!(!format!("{endpoint:?}").contains("hunter"));
        let config = endpoint.pointer_config().unwrap();
        let root = config.to_value();
        assert_eq!(root["ignition"]["version"], "3.2.0");
        let merge = &root["ignition"]["config"]["merge"][0];
        let headers = json!([{"name": "Authorization", "value": "Bearer t0ken"}, {"name": "X-Site", "value": "hunter 2"}]);
        assert_eq!(merge["httpHeaders"], headers);
        let authority = root["ignition"]["security"]["tls"]["certificateAuthorities"][0]["source"].as_str();
        assert_eq!(resource::decode_contents(authority.unwrap(), None), PEM.as_bytes());
    }

    #[test]
    fn host_files_are_merged_over_files_of_the_role() {
        let role = json!({"ignition": {"version": "3.1.0", "config": {"merge": [{"source": "https://api-int.a:22623/config/worker"}]}},
            "storage": {"files": [{"path": "/etc/hostname", "contents": {"source": "data:,old"}}, {"path": "/etc/x"}]}});
        let role = Config::parse(role.to_string().as_bytes()).unwrap().config;
        let mut host = InstalledHost::new("node-1.example.com").unwrap();
        host.node_ip_hint = Some("192.0.2.0".parse().unwrap());
        host.pool = Some(MachineConfigPool::new("infra").unwrap());
        host.discovery_media = DiscoveryMedia::Disk;
        let text = r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/own","contents":{"source":"data:,x"}}]}}"#;
        host.config_override = Some(Override::new(text));
        let config = host.compose(&role).unwrap().config;
        assert_eq!(file_contents(&config, "/etc/hostname"), ["node-1.example.com"]);
        assert_eq!(
            file_contents(&config, "/etc/default/nodeip-configuration"),
            ["KUBELET_NODEIP_HINT=192.0.2.0\n"]
        );
        assert_eq!(file_contents(&config, "/etc/own"), ["x"]);
        assert_eq!(
            list_names(&config, "/ignition/config/merge", "source"),
            ["https://api-int.a:22623/config/infra"]
        );
        assert_eq!(
            list_names(&config, "/systemd/units", "name"),
            ["cleanup-assisted-discovery-stateroot.service"]
        );
    }

    #[test]
    fn rejects_invalid_headers() {
        for (name, value) in [("", "a"), ("A B", "a"), ("A:", "a"), ("A", ""), ("A", "a\r\nB: c")] {
            assert!(
                RequestHeader::new(name, value)
                    .unwrap_err()
                    .to_string()
                    .starts_with("ignition_endpoint.headers ")
            );
        }
        let mut endpoint = endpoint(MachineConfigServer::ApiHost("api.a".to_owned()), false);
        endpoint.headers = vec![RequestHeader::new("A", "a").unwrap(), RequestHeader::new("A", "b").unwrap()];
        let error = endpoint.pointer_config().unwrap_err().to_string();
        assert!(error.contains("/ignition/config/merge/0/httpHeaders/1"), "{error}");
    }

    #[test]
    fn rejects_invalid_hosts() {
        for bad in ["", "A", "a_b", "a\nb", "localhost "] {
            assert!(InstalledHost::new(bad).unwrap_err().to_string().starts_with("requested_hostname "));
            assert!(MachineConfigPool::new(bad).is_err());
        }
        let mut host = InstalledHost::new("a").unwrap();
        host.pool = Some(MachineConfigPool::new("infra").unwrap());
        let error = host.compose(&Config::empty(Spec::V3_1)).unwrap_err().to_string();
        assert!(
            error.starts_with("machine_config_pool_name \"infra\": the pointer config has no source"),
            "{error}"
        );
        host.pool = None;
        host.config_override = Some(Override::new("{}"));
        assert!(
            host.compose(&Config::empty(Spec::V3_1)).unwrap_err().to_string().starts_with(OVERRIDE_FIELD)
        );
    }
}
