//! The Ignition config of the cluster that a host joins, from the agent's reply to `api-vip-connectivity-check`.
//!
//! The agent removes the units and nearly all files before it sends the config, so the summary depends only on the
//! remaining parts.

use std::net::IpAddr;

use assisted::reply::ApiVipReport;
use assisted::step::StepType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::compact::compact;
use super::error::InvalidReply;
use super::excess::{ExcessLog, ExcessPart};
use super::limits::{MAX_ERROR_TEXT, MAX_TANG_SERVERS, MAX_URL};

/// Manifests of static pods that exist only in a cluster that manages its own networking.
const MANAGED_NETWORKING: [&str; 2] =
    ["/etc/kubernetes/manifests/coredns.yaml", "/etc/kubernetes/manifests/keepalived.yaml"];

/// Path of the kubelet's kubeconfig.
const KUBECONFIG: &str = "/etc/kubernetes/kubeconfig";

compact! {
    /// The download of the Ignition config of the cluster that the host joins.
    #[derive(Eq)]
    IgnitionEndpoint {
        /// Whether the agent downloaded the config.
        is_success: bool,
        /// URL of the config, without user name and password.
        url: Box<str>,
        /// Error message of a failed download.
        error: Box<str>,
        /// Tang servers that the config uses for disk encryption, as JSON in the format of the step's argument. Empty
        /// if it uses none.
        tang_servers: Box<str>,
        /// Method of disk encryption in the config: `tpm2`, `tang`, or `unknown` for other methods. Empty if the config
        /// does not encrypt disks.
        disk_encryption: Box<str>,
        /// Whether the cluster manages its own networking. This is so if the config contains manifests for internal DNS
        /// or for virtual IP addresses, or if the kubelet connects to the API by IP address.
        has_managed_networking: bool,
    }
}

/// The parts of an Ignition config that the summary needs.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    storage: Option<Storage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Storage {
    luks: Option<Vec<Luks>>,
    files: Option<Vec<File>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Luks {
    clevis: Option<Clevis>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Clevis {
    tang: Option<Vec<Tang>>,
    tpm2: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tang {
    url: Option<String>,
    thumbprint: Option<String>,
}

/// A Tang server, in the format of the argument of `tang-connectivity-check`.
#[derive(Serialize)]
struct TangArgument<'a> {
    url: &'a str,
    thumbprint: &'a str,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    path: String,
    contents: Option<Contents>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Contents {
    source: Option<String>,
}

/// Converts the reply of the agent into a summary.
pub(super) fn read_ignition_endpoint(
    log: &mut ExcessLog,
    report: &ApiVipReport<'_>,
) -> Result<IgnitionEndpoint, InvalidReply> {
    let storage = match &*report.ignition {
        "" => Storage::default(),
        text => parse(log.step(), text)?,
    };
    let clevis = storage.luks.as_deref().and_then(<[Luks]>::first).and_then(|luks| luks.clevis.as_ref());
    Ok(IgnitionEndpoint {
        is_success: report.is_success,
        url: log.text(&without_user(&report.url), MAX_URL),
        error: log.text(&report.download_error, MAX_ERROR_TEXT),
        tang_servers: tang_servers(log, clevis)?,
        disk_encryption: clevis.map_or("", disk_encryption).into(),
        has_managed_networking: storage.files.iter().flatten().any(shows_managed_networking),
    })
}

fn parse(step: StepType, ignition: &str) -> Result<Storage, InvalidReply> {
    let config: Config = serde_json::from_str(ignition).map_err(|error| InvalidReply::json(step, &error))?;
    Ok(config.storage.unwrap_or_default())
}

/// Removes the user name and password from a URL.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

fn disk_encryption(clevis: &Clevis) -> &'static str {
    match clevis {
        Clevis { tpm2: Some(true), .. } => "tpm2",
        Clevis { tang: Some(tang), .. } if !tang.is_empty() => "tang",
        Clevis { .. } => "unknown",
    }
}

/// Returns the Tang servers as JSON, up to the limit. Empty without Tang servers.
fn tang_servers(log: &mut ExcessLog, clevis: Option<&Clevis>) -> Result<Box<str>, InvalidReply> {
    let servers = clevis.and_then(|clevis| clevis.tang.as_deref()).unwrap_or_default();
    let mut list: Vec<String> = Vec::new();
    let mut len = "[]".len();
    for server in servers {
        let Tang { url, thumbprint } = server;
        let argument = TangArgument {
            url: url.as_deref().unwrap_or_default(),
            thumbprint: thumbprint.as_deref().unwrap_or_default(),
        };
        let json =
            serde_json::to_string(&argument).map_err(|error| InvalidReply::json(log.step(), &error))?;
        len = len.saturating_add(json.len()).saturating_add(",".len());
        if len > MAX_TANG_SERVERS {
            break;
        }
        list.push(json);
    }
    log.record(ExcessPart::TangServers, servers.len(), list.len());
    Ok(if list.is_empty() { "".into() } else { format!("[{}]", list.join(",")).into() })
}

fn shows_managed_networking(file: &File) -> bool {
    if MANAGED_NETWORKING.contains(&&*file.path) {
        return true;
    }
    let source = file.contents.as_ref().and_then(|contents| contents.source.as_deref());
    file.path == KUBECONFIG && source.and_then(decode_data_url).is_some_and(|text| has_ip_server(&text))
}

/// Decodes a `data` URL. Returns `None` if the URL is invalid or its data is not UTF-8 text.
fn decode_data_url(source: &str) -> Option<String> {
    let (kind, data) = source.strip_prefix("data:")?.split_once(',')?;
    let data = percent_decode(data)?;
    let data = if kind.ends_with(";base64") { STANDARD.decode(data).ok()? } else { data };
    String::from_utf8(data).ok()
}

fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut decoded = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        decoded.extend_from_slice(rest.as_bytes());
    }
    Some(decoded)
}

/// Returns `true` if the kubeconfig contains a server with an IP address. Kubeconfigs here are short and generated,
/// with each server on its own line, so no YAML parser is needed.
fn has_ip_server(kubeconfig: &str) -> bool {
    let servers =
        kubeconfig.lines().filter_map(|line| line.trim_start_matches([' ', '-']).strip_prefix("server:"));
    servers.map(|server| server.trim().trim_matches(['"', '\''])).any(is_ip_url)
}

fn is_ip_url(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => authority.split(':').next(),
    };
    host.is_some_and(|host| host.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed_from_urls() {
        for (url, expected) in [
            ("https://user:pa@ss@api:22623/config/worker?a=b@c", "https://api:22623/config/worker?a=b@c"),
            ("https://api/@x", "https://api/@x"),
            ("http://user@[fd00::1]?x", "http://[fd00::1]?x"),
            ("api", "api"),
            ("", ""),
        ] {
            assert_eq!(without_user(url), expected);
        }
    }

    #[test]
    fn kubeconfig_with_an_ip_address_is_recognized() {
        for (kubeconfig, expected) in [
            ("clusters:\n- cluster:\n    server: https://192.0.2.5:6443\n  name: local\n", true),
            ("- server: 'https://[fd00::5]:6443/'\n", true),
            ("  server: \"https://192.0.2.5\"\n", true),
            ("    server: https://api-int.c.example.com:6443\n", false),
            ("    server:\n", false),
            ("# no server: https://192.0.2.5\n", false),
            ("", false),
        ] {
            assert_eq!(has_ip_server(kubeconfig), expected, "{kubeconfig}");
        }
    }

    #[test]
    fn data_urls_are_decoded() {
        for (url, expected) in [
            ("data:,a%20b%25", Some("a b%")),
            ("data:text/plain;charset=utf-8;base64,YSBi", Some("a b")),
            ("data:;base64,YSBi%3D", None),
            ("data:;base64,YQ%3D%3D", Some("a")),
            ("data:,%2", None),
            ("data:,%+1", None),
            ("data:,%é", None),
            ("data:,%ff", None),
            ("https://example.com/,", None),
        ] {
            assert_eq!(decode_data_url(url).as_deref(), expected, "{url}");
        }
    }
}
