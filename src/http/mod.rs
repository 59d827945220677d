//! The HTTP face: what stands in front of the API for all requests, and the server that takes them.
//!
//! [`app`] is the API with its health, its log, and what clients may ask of any answer, [`image_app`] the same of images alone; [`serve`] takes connections for it
//! until it is told to end. What a URL may hold that must not be seen is taken out by [`Redacted`].

#[cfg(test)]
mod access_tests;
mod app;
mod connection;
pub mod content;
mod cross_site;
mod escape;
mod first_boot;
mod health;
pub mod images;
mod listener;
mod metrics;
mod origin;
mod page;
mod redacted;
mod request;
mod serve;
mod shortcut;
pub(crate) mod zerocopy;

pub use app::{app, image_app};
pub use content::Content;
pub(crate) use escape::unescaped;
pub use listener::{
    Certificate, CertificateError, Client, Inherited, Limits, ListenAddr, Listener, MIN_SHARE, Peer, Reach,
    TlsRules, TlsVersion, Transport,
};
pub use metrics::Metrics;
pub use redacted::Redacted;
pub use serve::{Server, serve, serve_within};
pub use shortcut::App;
pub use zerocopy::BodyMode;
