//! What an installed machine boots with: a small config that points to the large one.
//!
//! The machine config server of a cluster serves a config for each role. A pointer config names its URL, who signed its
//! certificate, and what is the machine's own: its name, its address, what somebody wants to have otherwise for this
//! machine.
//!
//! * [`Endpoint`] writes the pointer config of a machine that joins a cluster which runs already.
//! * [`Host`] puts the machine's own parts into a pointer config, that one or the one of the installer.

use std::fmt;
use std::net::IpAddr;

use crate::builder::{FileMode, UnitState};
use crate::discovery::overrides::{apply, checked};
use crate::discovery::parts::{Parts, resource};
use crate::discovery::{
    CertificateBundle, ComposeError, Composed, HostName, HttpUrl, InputError, Override, Token, is_host_name,
};
use crate::document::Document;
use crate::json::Json;
use crate::merge::merge;
use crate::report::Report;
use crate::spec::Spec;

/// The field that holds the override of a host.
const OVERRIDE: &str = "ignition_config_overrides";

/// The spec version of pointer configs.
pub const SPEC: Spec = Spec::V3_2;

/// The ports of a machine config server.
const HTTPS_PORT: u16 = 22623;
const HTTP_PORT: u16 = 22624;

/// A machine config pool: the group of machines that share a config.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pool(String);

impl Pool {
    /// Takes the name of a pool, such as `worker`.
    ///
    /// # Errors
    ///
    /// When the name is none that the cluster could have.
    pub fn new(name: &str) -> Result<Self, InputError> {
        if is_host_name(name) && !name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Ok(Self(name.to_owned()));
        }
        Err(InputError::new("machine_config_pool_name", name, "is no name of a machine config pool"))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where a machine config server is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Server {
    /// At a URL below which the pools are.
    At(HttpUrl),
    /// On the cluster's API host, a name such as `api.cluster.example.com` or an address.
    ApiHost(String),
}

/// A header that a machine sends when it fetches its config.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    name: String,
    value: String,
}

impl Header {
    /// Takes a header.
    ///
    /// # Errors
    ///
    /// When the name is no token of HTTP, or the value is empty or holds anything but printable ASCII and blanks.
    pub fn new(name: &str, value: &str) -> Result<Self, InputError> {
        const FIELD: &str = "ignition_endpoint.headers";
        let is_token = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(InputError::new(FIELD, name, "is no name of a header"));
        }
        if value.is_empty() || !value.bytes().all(|it| it == b' ' || it.is_ascii_graphic()) {
            return Err(InputError::new(FIELD, name, "has an empty value or one that no header has"));
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

/// The value may let somebody in.
impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Header({}: *****)", self.name)
    }
}

/// The config of a pool, as a machine fetches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The server.
    pub server: Server,
    /// The pool.
    pub pool: Pool,
    /// A token that the server asks for.
    pub token: Option<Token>,
    /// More headers that it asks for.
    pub headers: Vec<Header>,
    /// Who signed the server's certificate. With one, the API host is asked over HTTPS.
    pub authority: Option<CertificateBundle>,
}

impl Endpoint {
    /// The URL of the pool's config.
    ///
    /// # Errors
    ///
    /// When the API host is neither a host name nor an address.
    pub fn url(&self) -> Result<String, InputError> {
        let pool = self.pool.as_str();
        let host = match &self.server {
            Server::At(url) => return Ok(url.join(&format!("/{pool}"))),
            Server::ApiHost(host) => host,
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
        // The certificate is for the internal name only.
        let internal = host.strip_prefix("api.").map(|rest| format!("api-int.{rest}"));
        Ok(format!("https://{}:{HTTPS_PORT}/config/{pool}", internal.unwrap_or(host)))
    }

    /// The pointer config.
    ///
    /// # Errors
    ///
    /// When the API host is neither a host name nor an address, and when a header is given twice.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::pointer::{Endpoint, Pool, Server};
    ///
    /// let server = Server::ApiHost("api.a.example.com".to_owned());
    /// let endpoint = Endpoint { server, pool: Pool::new("worker")?, token: None, headers: Vec::new(), authority: None };
    /// let config = endpoint.pointer_config()?;
    /// assert!(config.to_string().contains(r#""source":"http://api.a.example.com:22624/config/worker""#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pointer_config(&self) -> Result<Document, ComposeError> {
        let token = self.token.iter().map(|token| Header {
            name: "Authorization".to_owned(),
            value: format!("Bearer {}", token.reveal()),
        });
        let headers = token.chain(self.headers.iter().cloned());
        let headers = headers
            .map(|Header { name, value }| Json::object([("name", name.into()), ("value", value.into())]));
        let merged = [("source", self.url()?.into()), ("httpHeaders", Json::List(headers.collect()))];
        let config = Json::object([("merge", Json::List(vec![Json::object(merged)]))]);
        let authorities = self.authority.iter().map(|pem| resource(pem.as_pem().as_bytes())).collect();
        let tls = Json::object([("certificateAuthorities", Json::List(authorities))]);
        let mut parts = Parts::default();
        parts.ignition.set("config", config);
        parts.ignition.set("security", Json::object([("tls", tls)]));
        checked(document(parts)?)
    }
}

/// Whether the system that ran the discovery has been started from a disk of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiscoveryMedia {
    /// It came over the network or from removable media, and is gone.
    #[default]
    Transient,
    /// It is on a disk and wants to be removed.
    Disk,
}

/// What is a machine's own.
#[derive(Clone, Debug)]
pub struct Host {
    hostname: HostName,
    /// An address in the network on which the node shall have its own, where the cluster has to be told.
    pub node_ip_hint: Option<IpAddr>,
    /// The pool, where it is not that of the role.
    pub pool: Option<Pool>,
    /// What shall be otherwise on this machine.
    pub config_override: Option<Override>,
    /// Where the discovery came from.
    pub discovery_media: DiscoveryMedia,
}

impl Host {
    /// A machine that has a name and nothing else of its own.
    ///
    /// # Errors
    ///
    /// When the name is no host name in lower case, or longer than 64 characters.
    pub fn new(hostname: &str) -> Result<Self, InputError> {
        Ok(Self {
            hostname: HostName::parse("requested_hostname", hostname)?,
            node_ip_hint: None,
            pool: None,
            config_override: None,
            discovery_media: DiscoveryMedia::Transient,
        })
    }

    /// The pointer config with the machine's own parts: name and address, then the override, then the pool and the removal
    /// of the discovery.
    ///
    /// A file that is in the pointer config already is replaced, where a second one of its path would make a config that
    /// no machine boots with.
    ///
    /// # Errors
    ///
    /// When the override is no valid config or makes one that is none, and when a pool is given but the config points to
    /// none.
    pub fn compose(&self, pointer: &Document) -> Result<Composed, ComposeError> {
        let named = checked(merge(pointer, &document(self.own_files())?))?;
        let mut composed = match &self.config_override {
            Some(over) => apply(&named, OVERRIDE, over)?,
            None => Composed { config: named, warnings: Report::default() },
        };
        if let Some(pool) = &self.pool {
            point_to(&mut composed.config, pool)?;
        }
        if self.discovery_media == DiscoveryMedia::Disk {
            composed.config = checked(merge(&composed.config, &document(removal())?))?;
        }
        Ok(composed)
    }

    fn own_files(&self) -> Parts {
        let mut parts = Parts::default();
        parts.file("/etc/hostname", FileMode::PUBLIC, self.hostname.as_str());
        if let Some(hint) = self.node_ip_hint {
            let line = format!("KUBELET_NODEIP_HINT={hint}\n");
            parts.file("/etc/default/nodeip-configuration", FileMode::PUBLIC, line);
        }
        parts
    }
}

/// Removes the system that ran the discovery.
fn removal() -> Parts {
    let mut parts = Parts::default();
    let script = include_str!("discovery/content/cleanup-assisted-discovery-stateroot.sh");
    parts.file("/usr/local/bin/cleanup-assisted-discovery-stateroot.sh", FileMode::EXECUTABLE, script);
    let unit = include_str!("discovery/content/cleanup-assisted-discovery-stateroot.service");
    parts.unit("cleanup-assisted-discovery-stateroot.service", UnitState::Enabled, unit);
    parts
}

fn document(parts: Parts) -> Result<Document, ComposeError> {
    parts.into_document(SPEC).map_err(|error| ComposeError::Invalid { finding: error.to_finding() })
}

/// Makes a config that points to the pool of a worker point to another.
fn point_to(config: &mut Document, pool: &Pool) -> Result<(), InputError> {
    const WORKERS: &str = "/config/worker";
    let mut count = 0;
    let merges = config.root_mut().pointer_mut("/ignition/config/merge").and_then(Json::as_list_mut);
    for source in merges.into_iter().flatten().filter_map(|entry| entry.get_mut("source")) {
        if let Some(start) = source.as_text().and_then(|source| source.strip_suffix(WORKERS)) {
            *source = format!("{start}/config/{}", pool.as_str()).into();
            count += 1;
        }
    }
    if count == 0 {
        let reason = format!("the pointer config has no source that ends in {WORKERS}");
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

    fn endpoint(server: Server, authority: bool) -> Endpoint {
        let authority = authority.then(|| CertificateBundle::parse("f", PEM).unwrap());
        Endpoint { server, pool: Pool::new("worker").unwrap(), token: None, headers: Vec::new(), authority }
    }

    fn api(host: &str, authority: bool) -> String {
        endpoint(Server::ApiHost(host.to_owned()), authority).url().unwrap()
    }

    fn names(document: &Document, pointer: &str, key: &str) -> Vec<String> {
        let root = document.to_value();
        let list = root.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
        list.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
    }

    fn contents(config: &Document, path: &str) -> Vec<String> {
        let root = config.to_value();
        let files = root["storage"]["files"].as_array().unwrap();
        let of = files.iter().filter(|file| file["path"] == path);
        let text =
            |file: &Value| resource::contents(file["contents"]["source"].as_str().unwrap(), None).unwrap();
        of.map(|file| String::from_utf8(text(file)).unwrap()).collect()
    }

    #[test]
    fn the_server_is_at_the_api_host_or_at_a_url() {
        assert_eq!(api("api.a.b", false), "http://api.a.b:22624/config/worker");
        assert_eq!(api("api.a.b", true), "https://api-int.a.b:22623/config/worker");
        assert_eq!(api("fd00::1", false), "http://[fd00::1]:22624/config/worker");
        assert_eq!(api("192.0.2.1", true), "https://192.0.2.1:22623/config/worker");
        let custom = Server::At(HttpUrl::parse("f", "https://a:1/ignition/").unwrap());
        assert_eq!(endpoint(custom, true).url().unwrap(), "https://a:1/ignition/worker");
        let bad = endpoint(Server::ApiHost("a/b".to_owned()), false);
        assert!(bad.pointer_config().unwrap_err().to_string().starts_with("api_host \"a/b\""));
    }

    #[test]
    fn a_pointer_config_has_source_token_and_authority() {
        let mut endpoint = endpoint(Server::ApiHost("api.a".to_owned()), true);
        endpoint.token = Some(Token::new("t0ken").unwrap());
        endpoint.headers = vec![Header::new("X-Site", "hunter 2").unwrap()];
        assert!(!format!("{endpoint:?}").contains("hunter"));
        let config = endpoint.pointer_config().unwrap();
        let root = config.to_value();
        assert_eq!(root["ignition"]["version"], "3.2.0");
        let merge = &root["ignition"]["config"]["merge"][0];
        let headers = json!([{"name": "Authorization", "value": "Bearer t0ken"}, {"name": "X-Site", "value": "hunter 2"}]);
        assert_eq!(merge["httpHeaders"], headers);
        let authority = root["ignition"]["security"]["tls"]["certificateAuthorities"][0]["source"].as_str();
        assert_eq!(resource::contents(authority.unwrap(), None).unwrap(), PEM.as_bytes());
    }

    #[test]
    fn a_host_has_its_own_files_after_those_of_its_role() {
        let role = json!({"ignition": {"version": "3.1.0", "config": {"merge": [{"source": "https://api-int.a:22623/config/worker"}]}},
            "storage": {"files": [{"path": "/etc/hostname", "contents": {"source": "data:,old"}}, {"path": "/etc/x"}]}});
        let role = Document::parse(role.to_string().as_bytes()).unwrap().document;
        let mut host = Host::new("node-1.example.com").unwrap();
        host.node_ip_hint = Some("192.0.2.0".parse().unwrap());
        host.pool = Some(Pool::new("infra").unwrap());
        host.discovery_media = DiscoveryMedia::Disk;
        let text = r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/own","contents":{"source":"data:,x"}}]}}"#;
        host.config_override = Some(Override::new(text));
        let config = host.compose(&role).unwrap().config;
        assert_eq!(contents(&config, "/etc/hostname"), ["node-1.example.com"]);
        assert_eq!(
            contents(&config, "/etc/default/nodeip-configuration"),
            ["KUBELET_NODEIP_HINT=192.0.2.0\n"]
        );
        assert_eq!(contents(&config, "/etc/own"), ["x"]);
        assert_eq!(
            names(&config, "/ignition/config/merge", "source"),
            ["https://api-int.a:22623/config/infra"]
        );
        assert_eq!(
            names(&config, "/systemd/units", "name"),
            ["cleanup-assisted-discovery-stateroot.service"]
        );
    }

    #[test]
    fn bad_headers_are_named() {
        for (name, value) in [("", "a"), ("A B", "a"), ("A:", "a"), ("A", ""), ("A", "a\r\nB: c")] {
            assert!(
                Header::new(name, value).unwrap_err().to_string().starts_with("ignition_endpoint.headers ")
            );
        }
        let mut endpoint = endpoint(Server::ApiHost("api.a".to_owned()), false);
        endpoint.headers = vec![Header::new("A", "a").unwrap(), Header::new("A", "b").unwrap()];
        let error = endpoint.pointer_config().unwrap_err().to_string();
        assert!(error.contains("/ignition/config/merge/0/httpHeaders/1"), "{error}");
    }

    #[test]
    fn bad_hosts_are_named() {
        for bad in ["", "A", "a_b", "a\nb", "localhost "] {
            assert!(Host::new(bad).unwrap_err().to_string().starts_with("requested_hostname "));
            assert!(Pool::new(bad).is_err());
        }
        let mut host = Host::new("a").unwrap();
        host.pool = Some(Pool::new("infra").unwrap());
        let error = host.compose(&Document::empty(Spec::V3_1)).unwrap_err().to_string();
        assert!(
            error.starts_with("machine_config_pool_name \"infra\": the pointer config has no source"),
            "{error}"
        );
        host.pool = None;
        host.config_override = Some(Override::new("{}"));
        assert!(host.compose(&Document::empty(Spec::V3_1)).unwrap_err().to_string().starts_with(OVERRIDE));
    }
}
