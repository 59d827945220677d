//! The operation `ReadNetworkFiles`. It converts a user's network files to the form that an infra-env stores. The web
//! page fills its form with the result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use assisted::infra_env::MacInterface;
use ignition::network::check::{
    DeclaredInterface, NetworkFinding, check_hosts_cancellable, declared_interfaces,
};
use ignition::network::{Cancel, HostNetwork, HostsFileError, KeyfileCache, yaml};
use ignition::report::Severity;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use axum::http::StatusCode;
use inventory::api::auth::{Caller, Operation, User, WholeService};
use inventory::api::{ApiError, ApiErrors, Body, Reply, RequestBody, Schemas};
use inventory::in_background;

use discovery::manifests::HostFiles;
use discovery::{DiscoveryFinding, DiscoveryReport, Host, SourceLocation};

/// Maximum number of files, and of hosts in all files. Each host takes time and about 100 bytes of the response, even
/// if its document is short.
const MAX_HOSTS: usize = 10_000;
/// Maximum number of findings to list individually.
const MAX_FINDINGS: usize = 1000;

/// Files with static networks of hosts.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = network_files)]
pub(crate) struct NetworkFiles {
    /// Up to 10,000 files, with up to 10,000 hosts in total.
    pub files: Vec<NetworkFile>,
    /// Whether the networks are checked too, like the static networks of an infra-env.
    #[serde(default)]
    #[schema(required = false)]
    pub check: bool,
}

/// A file with nmstate documents, with `NMStateConfig` manifests, or with a list as in `static_network_config`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = network_file)]
pub(crate) struct NetworkFile {
    /// Name of the file, for messages.
    // The length is limited, because the response repeats the name for each host.
    #[schema(max_length = 255, pattern = r"^[^\u0000-\u001f]*$")]
    pub name: String,
    /// Text of the file.
    pub text: String,
}

/// Hosts read from network files.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = network_file_hosts)]
pub(crate) struct NetworkFileHosts {
    /// Hosts, in the order of the files.
    pub hosts: Vec<NetworkFileHost>,
    /// Findings in the files: severity, file, line, path and message. If there are more than 1000, the last ones count
    /// the other findings of each file.
    #[schema(value_type = Vec<Object>)]
    pub findings: Vec<DiscoveryFinding>,
    /// The first 1000 findings of the check of the networks, as in the preflight of an infra-env. `host` is the index
    /// among all hosts of the files, including hosts that are missing from `hosts` because of errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub network: Option<Vec<NetworkFinding>>,
}

/// A host read from a network file.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = network_file_host)]
pub(crate) struct NetworkFileHost {
    /// Index of the host's file in the request.
    pub file: usize,
    /// Name of the host's manifest, or of its file.
    pub name: String,
    /// MAC addresses of the interfaces in `network_yaml`. The address is empty if the file does not contain it.
    pub mac_interface_map: Vec<MacInterface>,
    /// The nmstate document.
    pub network_yaml: String,
    /// Names of the interfaces that the document declares or depends on.
    pub interfaces: BTreeSet<String>,
}

impl RequestBody for NetworkFiles {
    const NAME: &'static str = "networkFiles";

    fn rules() -> &'static Schemas {
        static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
        SCHEMAS.get_or_init(Schemas::for_type::<Self>)
    }
}

pub(super) fn operation() -> Operation {
    Operation::new(utoipa_axum::routes!(read_network_files), read_network_files)
}

/// Reads the static networks of hosts from files
///
/// The web page fills its form with the result. The service does not store the files.
#[utoipa::path(
    post,
    path = "/v2/network-files",
    operation_id = "ReadNetworkFiles",
    tag = "infra-envs",
    request_body(content = NetworkFiles, example = json!({"files": [{
        "name": "node-0.yaml",
        "text": "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  mac-address: 52:54:00:00:00:01\n",
    }]})),
    responses((status = OK, body = NetworkFileHosts), ApiErrors)
)]
async fn read_network_files(
    _caller: Caller<User, WholeService>,
    Body(files): Body<NetworkFiles>,
) -> Result<Reply<NetworkFileHosts>, ApiError> {
    let hosts = in_background(move |cancel| read(&files, cancel)).await?;
    Ok(Reply(StatusCode::OK, hosts))
}

fn read(NetworkFiles { files, check }: &NetworkFiles, cancel: &Cancel) -> Result<NetworkFileHosts, ApiError> {
    if files.len() > MAX_HOSTS {
        return Err(ApiError::bad(format!("{} files; at most {MAX_HOSTS} are accepted", files.len())));
    }
    let (mut read, mut indexes) = (HostFiles::with_max_hosts(MAX_HOSTS), Vec::new());
    for (index, file) in files.iter().enumerate() {
        require_client(cancel)?;
        if let Err(HostsFileError { file, line, path, reason, .. }) =
            read.add(&file.name, file.text.as_bytes())
        {
            read.findings.error(SourceLocation { file, line, path }, reason);
        }
        indexes.resize(read.hosts.len(), index);
    }
    read.require_hosts();
    let HostFiles { hosts, mut findings, .. } = read;
    let network = check.then(|| check_networks(files, &indexes, &hosts, cancel)).transpose()?;
    let mut readable = Vec::new();
    for (index, found) in indexes.into_iter().zip(hosts) {
        require_client(cancel)?;
        match document_error(&found) {
            Some((place, message)) => findings.error(place, message),
            None => readable.push(host(index, found)),
        }
    }
    Ok(NetworkFileHosts { hosts: readable, findings: limited(findings.as_slice()), network })
}

/// Checks all networks, and returns the first findings. `indexes` contains the index of each host's file.
fn check_networks(
    files: &[NetworkFile],
    indexes: &[usize],
    hosts: &[Host],
    cancel: &Cancel,
) -> Result<Vec<NetworkFinding>, ApiError> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for index in indexes {
        *counts.entry(*index).or_default() += 1;
    }
    let with_name = |(index, host): (&usize, &Host)| {
        // If a file contains only one host, use the name of the file, even if the host is in a list.
        let file = files.get(*index).filter(|_| counts.get(index) == Some(&1));
        host.network.clone().with_name(file.map_or(host.name.as_str(), |file| file.name.as_str()))
    };
    let networks: Vec<HostNetwork> = indexes.iter().zip(hosts).map(with_name).collect();
    let report = check_hosts_cancellable(&networks, &KeyfileCache::default(), cancel);
    let report = report.ok_or_else(|| ApiError::internal("the client disconnected"))?;
    Ok(report.findings().iter().take(MAX_FINDINGS).cloned().collect())
}

/// Returns the first findings. For each file, one more finding counts the remaining findings, with their highest
/// severity: the page rejects files with errors.
fn limited(findings: &[DiscoveryFinding]) -> Vec<DiscoveryFinding> {
    let (listed, others) = findings.split_at(findings.len().min(MAX_FINDINGS));
    let mut counts: BTreeMap<&str, (Severity, usize)> = BTreeMap::new();
    for DiscoveryFinding { severity, place, .. } in others {
        let (highest, count) = counts.entry(&place.file).or_insert((*severity, 0));
        *highest = (*highest).min(*severity);
        *count += 1;
    }
    let mut limited = DiscoveryReport::default();
    for (file, (severity, count)) in counts {
        let message = match count {
            1 => "1 further finding is not listed".to_owned(),
            _ => format!("{count} further findings are not listed"),
        };
        limited.push(DiscoveryFinding::new(severity, SourceLocation::whole(file), message));
    }
    [listed, limited.as_slice()].concat()
}

/// Returns an error if the client has disconnected.
fn require_client(cancel: &Cancel) -> Result<(), ApiError> {
    if cancel.is_cancelled() {
        return Err(ApiError::internal("the client disconnected"));
    }
    Ok(())
}

/// If a host's document is not an nmstate document, returns the position and the text of the error.
fn document_error(host: &Host) -> Option<(SourceLocation, String)> {
    let place = host.place();
    match yaml::read(host.network.document()) {
        Ok(Value::Object(_)) => None,
        Ok(Value::Null) => Some((place, "has no hosts".to_owned())),
        Ok(_) => {
            let message = "is not an nmstate document, an NMStateConfig or a list of hosts";
            Some((place, message.to_owned()))
        }
        Err(error) => {
            let line = place.line.unwrap_or(1).saturating_add(error.line()).saturating_sub(1);
            Some((
                SourceLocation { line: Some(line), ..place },
                format!("is not valid YAML: {}", error.problem()),
            ))
        }
    }
}

fn host(file: usize, Host { name, network, .. }: Host) -> NetworkFileHost {
    let declared = declared_interfaces(&network);
    let entries = network.interfaces().unwrap_or_default();
    let is_missing = |interface: &&DeclaredInterface| {
        interface.is_network_card && !entries.iter().any(|entry| entry.logical_nic_name == interface.name)
    };
    let missing = declared.iter().filter(is_missing);
    let map: Vec<(String, String)> = entries
        .iter()
        .map(|entry| (entry.logical_nic_name.clone(), entry.mac_address.clone()))
        .chain(missing.map(|card| (card.name.clone(), card.mac_address.clone().unwrap_or_default())))
        .collect();
    let entry = |(logical_nic_name, mac_address)| MacInterface { logical_nic_name, mac_address };
    NetworkFileHost {
        file,
        name,
        mac_interface_map: map.into_iter().map(entry).collect(),
        network_yaml: with_line_breaks(network.document()),
        interfaces: declared.into_iter().map(|interface| interface.name).collect(),
    }
}

/// Adds line breaks to a JSON document on one line, so that users can read and edit it. The document of a manifest is
/// JSON on one line if its text could not be extracted from the file.
fn with_line_breaks(document: &str) -> String {
    let value = Some(document).filter(|text| text.starts_with('{') && !text.contains('\n'));
    let value = value.and_then(|text| serde_json::from_str::<Value>(text).ok());
    value.map_or_else(|| document.to_owned(), |value| format!("{value:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: impl Into<String>) -> NetworkFile {
        NetworkFile { name: name.to_owned(), text: text.into() }
    }

    fn read(files: &[NetworkFile], cancel: &Cancel) -> Result<NetworkFileHosts, ApiError> {
        super::read(&NetworkFiles { files: files.to_vec(), check: false }, cancel)
    }

    fn response_len(hosts: &NetworkFileHosts) -> usize {
        serde_json::to_vec(hosts).unwrap().len()
    }

    /// The request has two files of 439 KiB, with 100,000 documents in total.
    #[test]
    fn response_to_many_short_documents_is_short() {
        let text = "---\na: 1\n".repeat(50_000);
        let hosts = read(&[file("one.yaml", text.clone()), file("two.yaml", text)], &Cancel::new()).unwrap();
        // Documents are counted first. If there are too many, they are not read.
        assert!(hosts.hosts.is_empty());
        let reasons: Vec<_> = hosts.findings.iter().map(ToString::to_string).collect();
        let reason = "error: with this file there are 50000 documents; at most 10000 hosts are accepted";
        assert_eq!(reasons, ["one.yaml", "two.yaml"].map(|file| format!("{file}: {reason}")));
        let hosts = read(&[file("one.yaml", "---\na: 1\n".repeat(MAX_HOSTS))], &Cancel::new()).unwrap();
        assert_eq!(hosts.hosts.len(), MAX_HOSTS);
        assert!(response_len(&hosts) < 2 << 20, "{}", response_len(&hosts));
    }

    #[test]
    fn findings_beyond_the_limit_are_counted_for_each_file() {
        let items = |count: usize| format!("kind: List\nitems: [{}]\n", "1,".repeat(count));
        let files =
            [file("one.yaml", items(200_000)), file("two.yaml", items(9)), file("three.yaml", "hello\n")];
        let hosts = read(&files, &Cancel::new()).unwrap();
        assert!(response_len(&hosts) < 1 << 20, "{}", response_len(&hosts));
        let (listed, counted) = hosts.findings.split_at(MAX_FINDINGS);
        assert!(listed.iter().all(|finding| finding.place.file == "one.yaml"));
        let counted: Vec<_> = counted.iter().map(ToString::to_string).collect();
        let expected = [
            "one.yaml: warning: 199000 further findings are not listed",
            "three.yaml: error: 1 further finding is not listed",
            "two.yaml: warning: 9 further findings are not listed",
        ];
        assert_eq!(counted, expected);
    }

    #[test]
    fn rejects_too_many_files() {
        let files = vec![file("a", ""); MAX_HOSTS + 1];
        let refusal = read(&files, &Cancel::new()).unwrap_err();
        assert_eq!(refusal.reason(), "10001 files; at most 10000 are accepted");
    }

    #[test]
    fn reading_ends_when_the_client_disconnects() {
        let files = ["1", "2", "3"].map(|name| file(name, "interfaces:\n- name: eth0\n"));
        let cancel = Cancel::new();
        assert_eq!(read(&files, &cancel).unwrap().hosts.len(), 3);
        cancel.cancel();
        assert!(read(&files, &cancel).is_err());
    }
}
