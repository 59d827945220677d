//! The error types of network documents and of sets of hosts.

use nmstate::NmstateError;

use super::generate::{BACKEND_KEY, MAX_DOCUMENT_LEN};
use super::yaml::YamlError;
use crate::visible::visible;

/// The reason why no keyfiles can be generated from a document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The document is longer than 512 KiB.
    #[error("the nmstate document has {len} bytes; at most {MAX_DOCUMENT_LEN} are accepted")]
    TooLarge {
        /// Length of the document in bytes.
        len: usize,
    },
    /// The document is not UTF-8 text.
    #[error("the nmstate document is not UTF-8 text")]
    NotText(#[source] std::str::Utf8Error),
    /// The document is not valid YAML, or exceeds a limit of the parser.
    #[error("parsing YAML")]
    Yaml(#[source] YamlError),
    /// The policy could not be written as YAML.
    #[error("writing the nmstate policy")]
    WritePolicy(#[source] serde_yaml_ng::Error),
    /// nmstate does not accept the document as a network state.
    #[error("parsing nmstate{}", position(path, *line))]
    Parse {
        /// Path of the smallest part that nmstate rejects, such as `interfaces[0]`; empty for the whole document.
        path: String,
        /// The line of that part, if known.
        line: Option<usize>,
        /// The error of nmstate.
        source: serde_json::Error,
    },
    /// Two interfaces have the same port. If one of the two is down, the generator would assign the port at random.
    #[error("interface {} is a port of both {} and {}", visible(port), visible(first), visible(second))]
    AmbiguousPort {
        /// The name of the port.
        port: String,
        /// The first interface with the port, in alphabetical order.
        first: String,
        /// The other interface with the port.
        second: String,
    },
    /// The generator rejects the state in the document.
    #[error("generating configuration from nmstate{}", position(path, *line))]
    Generate {
        /// Path of the faulty interface, such as `interfaces[0]`; empty if not known.
        path: String,
        /// The line of that interface, if known.
        line: Option<usize>,
        /// The error of nmstate.
        source: Box<NmstateError>,
    },
    /// The generator panicked. This is a bug of the generator, which a faulty document may have triggered.
    #[error("the nmstate library failed on this document: {}", visible(message))]
    Panic {
        /// The message of the panic.
        message: String,
    },
    /// The result of the generator has no `NetworkManager` part.
    #[error("the nmstate library generated no {BACKEND_KEY} configuration")]
    NoKeyfiles,
    /// The generator wrote a keyfile without the section that contains the interface name.
    #[error("the nmstate library generated the keyfile {name:?} without a [connection] section")]
    NoConnection {
        /// The file name of the keyfile.
        name: String,
    },
    /// A profile name in the document results in an unsafe file name.
    #[error("the nmstate profile has the unsafe keyfile name {name:?}")]
    UnsafeName {
        /// The unsafe file name.
        name: String,
    },
}

fn position(path: &str, line: Option<usize>) -> String {
    match line {
        _ if path.is_empty() => String::new(),
        Some(line) => format!(" at {path}, line {line}"),
        None => format!(" at {path}"),
    }
}

/// The reason why no files can be generated for a set of hosts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// No keyfiles can be generated from the document of a host.
    #[error("network of {}", visible(host))]
    Document {
        /// The name of the host in messages.
        host: String,
        /// The error of the document.
        #[source]
        source: NetworkError,
    },
    /// The document of a host configures no interfaces.
    #[error("the network of {} has no interfaces", visible(host))]
    NoInterfaces {
        /// The name of the host in messages.
        host: String,
    },
    /// A host has no MAC addresses, so no machine can be identified as this host.
    #[error("the network of {} has no MAC addresses to match a machine", visible(host))]
    NoMacs {
        /// The name of the host in messages.
        host: String,
    },
    /// Two profiles of a host have the same file name.
    #[error("the network of {} produces two keyfiles with the name {name:?}", visible(host))]
    DuplicateKeyfile {
        /// The name of the host in messages.
        host: String,
        /// The duplicate file name.
        name: String,
    },
    /// The work was cancelled.
    #[error("network processing was cancelled")]
    Cancelled,
    /// The number of hosts exceeds the maximum for one image.
    #[error("{found} hosts; at most {max} are accepted", max = super::MAX_HOSTS)]
    TooManyHosts {
        /// The actual number of hosts.
        found: usize,
    },
}

impl HostError {
    /// Returns a function that converts the error of a document to the error of its host.
    pub(super) fn in_document_of(host: &str) -> impl Fn(NetworkError) -> Self {
        move |source| Self::Document { host: host.to_owned(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_visible() {
        let empty = String::new;
        let ambiguous = NetworkError::AmbiguousPort { port: empty(), first: "b0".into(), second: empty() };
        assert_eq!(ambiguous.to_string(), r#"interface "" is a port of both b0 and """#);
        let panic = NetworkError::Panic { message: empty() };
        assert_eq!(panic.to_string(), r#"the nmstate library failed on this document: """#);
        assert_eq!(
            HostError::NoMacs { host: empty() }.to_string(),
            r#"the network of "" has no MAC addresses to match a machine"#
        );
        let parse =
            NetworkError::Parse { path: empty(), line: Some(3), source: serde::de::Error::custom("x") };
        assert_eq!(parse.to_string(), "parsing nmstate");
    }
}
