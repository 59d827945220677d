//! The HTTP server: the router for the API and the images, and the connections of clients.
//!
//! [`app`] is the API with images, health endpoints, and the layers around all requests. [`image_app`] is the same for
//! images alone. [`serve`] accepts connections for one of them until it is shut down.

#[cfg(test)]
mod access_tests;
mod api_docs;
mod api_document;
mod app;
mod app_service;
mod certificate_metrics;
mod connection;
pub(crate) mod content;
mod controllers;
mod cors;
mod cross_site;
mod escape;
mod event_streams;
mod first_boot;
mod health;
pub mod images;
mod listener;
mod metrics;
mod network_files;
mod page;
mod redacted;
mod request_log;
mod serve;
mod source_metrics;
mod static_files;
mod store_metrics;
mod task_metrics;
mod zerocopy;

pub use api_document::openapi;
pub use app::{app, image_app};
pub use app_service::App;
pub use content::ServedFile;
pub use controllers::{ControllerHealth, Controllers};
pub(crate) use escape::NOT_UNRESERVED;
pub use listener::{
    AllowedRequests, Certificate, CertificateError, ClientAddress, InheritedListener, ListenAddr, Listener,
    Peer, PeerTransport, ServerLimits, TlsRules, TlsVersion,
};
pub(crate) use redacted::RedactedUrl;
pub use serve::{Server, serve};
#[cfg(feature = "kube-api")]
pub(crate) use store_metrics::encode_durations;
pub use zerocopy::BodyMode;
