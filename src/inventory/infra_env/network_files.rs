//! Network files of hosts, as a user has them, in the form that an infra-env takes.

use std::collections::BTreeSet;

use ignition::network::check::{DeclaredInterface, interfaces};
use ignition::network::{InputError, yaml};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::model::MacInterface;
use crate::api_error::ApiError;
use crate::discovery::{Finding, Host, Place};
use crate::inventory::request::request_bodies;
use crate::inventory::{Inventory, in_background};
use crate::manifests::HostFiles;

/// Files with the networks of hosts.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = network_files)]
pub struct NetworkFiles {
    /// The files.
    pub files: Vec<NetworkFile>,
}

/// A file with nmstate documents, with `NMStateConfig` manifests, or with a list as in `static_network_config`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = network_file)]
pub struct NetworkFile {
    /// The name of the file, for messages.
    pub name: String,
    /// The text of the file.
    pub text: String,
}

/// The hosts of some files.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = network_file_hosts)]
pub struct NetworkFileHosts {
    /// The hosts, in the order of the files.
    pub hosts: Vec<NetworkFileHost>,
    /// What is wrong with the files: severity, file, line, path and message.
    #[schema(value_type = Vec<Object>)]
    pub findings: Vec<Finding>,
}

/// A host of a file.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = network_file_host)]
pub struct NetworkFileHost {
    /// The index of its file.
    pub file: usize,
    /// The name of its manifest, or of its file.
    pub name: String,
    /// Which interface of the document is which card of the machine. A card whose MAC address the file does not have is
    /// here with an empty address.
    pub mac_interface_map: Vec<MacInterface>,
    /// The nmstate document.
    pub network_yaml: String,
    /// The names of the interfaces that the document declares or builds on.
    pub interfaces: BTreeSet<String>,
}

request_bodies! {
    NetworkFiles: "networkFiles";
}

impl Inventory {
    /// Reads network files. Nothing is stored.
    ///
    /// # Errors
    ///
    /// Returns an error if the client has gone.
    pub async fn read_network_files(&self, files: NetworkFiles) -> Result<NetworkFileHosts, ApiError> {
        in_background(move |_| Ok(read(&files.files))).await
    }
}

fn read(files: &[NetworkFile]) -> NetworkFileHosts {
    let (mut read, mut indexes) = (HostFiles::default(), Vec::new());
    for (index, file) in files.iter().enumerate() {
        if let Err(InputError { file, line, path, reason }) = read.add(&file.name, file.text.as_bytes()) {
            read.findings.error(Place { file, line, path }, reason);
        }
        indexes.resize(read.hosts.len(), index);
    }
    read.require_hosts();
    let HostFiles { hosts, mut findings, .. } = read;
    let mut readable = Vec::new();
    for (index, found) in indexes.into_iter().zip(hosts) {
        match fault(&found) {
            Some((place, message)) => findings.error(place, message),
            None => readable.push(host(index, found)),
        }
    }
    NetworkFileHosts { hosts: readable, findings: findings.as_slice().to_vec() }
}

/// Why the document of a host cannot be one.
fn fault(host: &Host) -> Option<(Place, String)> {
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
            Some((Place { line: Some(line), ..place }, format!("is not valid YAML: {}", error.problem())))
        }
    }
}

fn host(file: usize, Host { name, network, .. }: Host) -> NetworkFileHost {
    let declared = interfaces(&network);
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
        network_yaml: readable(network.document()),
        interfaces: declared.into_iter().map(|interface| interface.name).collect(),
    }
}

/// The document of a manifest is JSON in one line if it could not be cut out of the file. With line breaks, people can read
/// and change it.
fn readable(document: &str) -> String {
    let value = Some(document).filter(|text| text.starts_with('{') && !text.contains('\n'));
    let value = value.and_then(|text| serde_json::from_str::<Value>(text).ok());
    value.map_or_else(|| document.to_owned(), |value| format!("{value:#}\n"))
}
