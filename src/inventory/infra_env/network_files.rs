//! Network files of hosts, as a user has them, in the form that an infra-env takes.

use std::collections::BTreeSet;

use ignition::network::check::interfaces;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::model::MacInterface;
use crate::api_error::ApiError;
use crate::discovery::{Finding, Findings, Host, Place};
use crate::inventory::request::request_bodies;
use crate::inventory::{Inventory, in_background};
use crate::manifests::read_hosts;

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
    let (mut hosts, mut findings) = (Vec::new(), Findings::default());
    for (index, file) in files.iter().enumerate() {
        match read_hosts(&file.name, file.text.as_bytes()) {
            Ok((found, more)) => {
                hosts.extend(found.into_iter().map(|found| host(index, found)));
                findings.append(more);
            }
            Err(error) => findings.error(Place::of(file.name.as_str()), error.to_string()),
        }
    }
    NetworkFileHosts { hosts, findings: findings.as_slice().to_vec() }
}

fn host(file: usize, Host { name, network, .. }: Host) -> NetworkFileHost {
    let declared = interfaces(&network);
    let map = match network.interfaces() {
        Some(map) => map.iter().map(|it| (it.logical_nic_name.clone(), it.mac_address.clone())).collect(),
        None => declared
            .iter()
            .filter(|interface| interface.is_network_card)
            .map(|interface| (interface.name.clone(), interface.mac_address.clone().unwrap_or_default()))
            .collect::<Vec<_>>(),
    };
    let entry = |(logical_nic_name, mac_address)| MacInterface { logical_nic_name, mac_address };
    NetworkFileHost {
        file,
        name,
        mac_interface_map: map.into_iter().map(entry).collect(),
        network_yaml: readable(network.document()),
        interfaces: declared.into_iter().map(|interface| interface.name).collect(),
    }
}

/// The document of a manifest is JSON in one line. With line breaks, people can read and change it.
fn readable(document: &str) -> String {
    let value = Some(document).filter(|text| text.starts_with('{') && !text.contains('\n'));
    let value = value.and_then(|text| serde_json::from_str::<Value>(text).ok());
    value.map_or_else(|| document.to_owned(), |value| format!("{value:#}\n"))
}
