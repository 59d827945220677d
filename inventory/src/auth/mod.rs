//! Authentication and authorisation.
//!
//! A [`Policy`] verifies a token and returns its [`Scope`]. [`Named`] checks that the resources of a request are within
//! this scope. `api::auth` reads tokens and resources from requests.

mod facts;
mod keys;
mod kind;
mod local;
mod policy;
mod reach;
mod token;
mod unavailable;

pub use facts::TokenFacts;
pub use keys::{KeyError, KeyHalf, KeyTexts, LocalKeys};
pub use kind::{AuthKind, Scope};
pub use local::LocalPolicy;
pub use policy::{Policy, PolicyKind};
pub use reach::Named;
