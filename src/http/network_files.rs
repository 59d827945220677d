//! The operation `ReadNetworkFiles`: reads a user's network files into the form that an infra-env stores. The web page
//! fills its form with the result.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use ignition::network::check::{DeclaredInterface, declared_interfaces};
use ignition::network::{Cancel, HostsFileError, yaml};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use axum::http::StatusCode;
use inventory::api::{ApiError, ApiErrors, Body, Reply, RequestBody, Schemas};
use inventory::auth::{Caller, Operation, User, WholeService};
use inventory::in_background;
use inventory::infra_env::MacInterface;

use crate::discovery::{DiscoveryFinding, Host, SourceLocation};
use crate::manifests::HostFiles;

/// Files with static networks of hosts.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = network_files)]
pub(crate) struct NetworkFiles {
    /// The files.
    pub files: Vec<NetworkFile>,
}

/// A file with nmstate documents, with `NMStateConfig` manifests, or with a list as in `static_network_config`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = network_file)]
pub(crate) struct NetworkFile {
    /// Name of the file, for messages.
    pub name: String,
    /// Text of the file.
    pub text: String,
}

/// Hosts that were read from network files.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = network_file_hosts)]
pub(crate) struct NetworkFileHosts {
    /// Hosts, in the order of the files.
    pub hosts: Vec<NetworkFileHost>,
    /// Findings in the files: severity, file, line, path and message.
    #[schema(value_type = Vec<Object>)]
    pub findings: Vec<DiscoveryFinding>,
}

/// A host that was read from a network file.
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

/// Returns the operation.
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
    let hosts = in_background(move |cancel| read(&files.files, cancel)).await?;
    Ok(Reply(StatusCode::OK, hosts))
}

fn read(files: &[NetworkFile], cancel: &Cancel) -> Result<NetworkFileHosts, ApiError> {
    let (mut read, mut indexes) = (HostFiles::default(), Vec::new());
    for (index, file) in files.iter().enumerate() {
        require_wanted(cancel)?;
        if let Err(HostsFileError { file, line, path, reason }) = read.add(&file.name, file.text.as_bytes()) {
            read.findings.error(SourceLocation { file, line, path }, reason);
        }
        indexes.resize(read.hosts.len(), index);
    }
    read.require_hosts();
    let HostFiles { hosts, mut findings, .. } = read;
    let mut readable = Vec::new();
    for (index, found) in indexes.into_iter().zip(hosts) {
        require_wanted(cancel)?;
        match document_error(&found) {
            Some((place, message)) => findings.error(place, message),
            None => readable.push(host(index, found)),
        }
    }
    Ok(NetworkFileHosts { hosts: readable, findings: findings.as_slice().to_vec() })
}

/// Returns an error if no client waits for the result.
fn require_wanted(cancel: &Cancel) -> Result<(), ApiError> {
    if cancel.is_cancelled() {
        return Err(ApiError::internal("the client disconnected"));
    }
    Ok(())
}

/// Returns the position and text of the error if a host's document is not an nmstate document.
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
    let given = network.interfaces().unwrap_or_default();
    let is_missing = |interface: &&DeclaredInterface| {
        interface.is_network_card && !given.iter().any(|it| it.logical_nic_name == interface.name)
    };
    let missing = declared.iter().filter(is_missing);
    let map: Vec<(String, String)> = given
        .iter()
        .map(|it| (it.logical_nic_name.clone(), it.mac_address.clone()))
        .chain(missing.map(|it| (it.name.clone(), it.mac_address.clone().unwrap_or_default())))
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

/// Formats a one-line JSON document with line breaks, so that users can read and edit it. A manifest's document is one
/// line of JSON if it could not be cut out of the file.
fn with_line_breaks(document: &str) -> String {
    let value = Some(document).filter(|text| text.starts_with('{') && !text.contains('\n'));
    let value = value.and_then(|text| serde_json::from_str::<Value>(text).ok());
    value.map_or_else(|| document.to_owned(), |value| format!("{value:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ends_when_the_client_disconnects() {
        let text = "interfaces:\n- name: eth0\n";
        let file = |number| NetworkFile { name: format!("{number}.yaml"), text: text.to_owned() };
        let files: Vec<NetworkFile> = (0..3).map(file).collect();
        let cancel = Cancel::new();
        assert_eq!(read(&files, &cancel).unwrap().hosts.len(), 3);
        cancel.cancel();
        assert!(read(&files, &cancel).is_err());
    }
}
