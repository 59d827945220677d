//! Access control of requests: the caller, the resources that a request names, and the tokens that each route accepts.
//!
//! The type of a handler's first argument, for example `Caller<User, ClusterId>`, declares which
//! [kinds](crate::auth::AuthKind) of token the operation accepts and which ids its requests name. The token is checked
//! against these ids before the operation begins. `docs/auth.md` contains the table of all routes.

mod access;
mod caller;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use access::operation;
pub use access::{Guarded, GuardedRouter, Operation, Operations, RouteAccess};
pub use caller::{
    AcceptedTokens, Agent, Caller, Downloader, Files, Initrd, Lister, Logs, Reader, Streamer, User,
    UserOrAgent,
};
pub(crate) use target::{ChangesOf, ClusterLogs, EventsOf, LogsSource, NamedInBody};
pub use target::{IdSource, Ids, Target, WholeService};
