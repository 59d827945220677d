//! Why a document or a set of hosts gave nothing.

use nmstate::NmstateError;

use super::MAX_DOCUMENT_LEN;
use super::generate::BACKEND;
use super::yaml::YamlError;

/// Why a document gave no keyfiles.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The document is longer than [`MAX_DOCUMENT_LEN`].
    #[error("the nmstate document has {len} bytes; at most {MAX_DOCUMENT_LEN} are accepted")]
    TooLarge {
        /// Length of the document.
        len: usize,
    },
    /// The document is not text.
    #[error("the nmstate document is not UTF-8 text")]
    NotText(#[source] std::str::Utf8Error),
    /// The document is not YAML, or exceeds the budget of the reader.
    #[error("parsing YAML")]
    Yaml(#[source] YamlError),
    /// The policy could not be written as YAML.
    #[error("writing the nmstate policy")]
    WritePolicy(#[source] serde_yaml_ng::Error),
    /// The document is not a network state.
    #[error("parsing nmstate{}", position(path, *line))]
    Parse {
        /// The smallest part that nmstate refuses, such as `interfaces[0]`; empty for the whole document.
        path: String,
        /// The line of that part, if it has one.
        line: Option<usize>,
        /// What nmstate says.
        source: serde_json::Error,
    },
    /// Two interfaces name the same port. The generator would give it to either of them at random when one of the
    /// two is down.
    #[error("interface {port} is a port of both {first} and {second}")]
    AmbiguousPort {
        /// The port.
        port: String,
        /// The interface that names it first, in alphabetical order.
        first: String,
        /// The other interface.
        second: String,
    },
    /// The document describes a state for which no keyfiles can be made.
    #[error("generating configuration from nmstate")]
    Generate {
        /// The interface at fault, where it is only one.
        interface: Option<String>,
        /// Why: of several faults always the same one.
        source: NmstateError,
    },
    /// The generator panicked. The document may be at fault, the generator certainly is.
    #[error("the nmstate library failed on this document: {message}")]
    Panic {
        /// What the generator said.
        message: String,
    },
    /// The generator answered without its `NetworkManager` part.
    #[error("the nmstate library generated no {BACKEND} configuration")]
    NoKeyfiles,
    /// A profile name in the document makes a file name that must not be written.
    #[error("nmstate profile gives the unsafe keyfile name {name:?}")]
    UnsafeName {
        /// The offending file name.
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

/// Why a set of hosts gave no files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The document of a host gave no keyfiles.
    #[error("network of {host}")]
    Document {
        /// The host.
        host: String,
        /// Why.
        #[source]
        source: NetworkError,
    },
    /// The document of a host has no interfaces that are to be up or down.
    #[error("the network of {host} has no interfaces")]
    NoInterfaces {
        /// The host.
        host: String,
    },
    /// A host has no MAC addresses to know it by.
    #[error("the network of {host} has no MAC addresses that would tell which machine it is for")]
    NoMacs {
        /// The host.
        host: String,
    },
    /// Two profiles of a host have one file name.
    #[error("the network of {host} gives two keyfiles of the name {name:?}")]
    DuplicateKeyfile {
        /// The host.
        host: String,
        /// The file name.
        name: String,
    },
    /// The work was cancelled.
    #[error("the work on the networks was cancelled")]
    Cancelled,
    /// There are more hosts than one image is for.
    #[error("{found} hosts; at most {max} are accepted", max = super::MAX_HOSTS)]
    TooManyHosts {
        /// How many there are.
        found: usize,
    },
}
