//! Authentication and authorisation.
//!
//! A [`Policy`] verifies tokens. The type of a handler's first argument, for example `Caller<User, ClusterId>`,
//! declares which [kinds](AuthKind) of token the operation accepts and which ids a request names. The token is checked
//! against these ids before the operation begins. `docs/auth.md` has the table of all routes.

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
