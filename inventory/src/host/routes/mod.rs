//! HTTP operations on hosts.

mod actions;
mod agent;
mod listing;
mod user;

use crate::auth::Operation;

pub(crate) fn routes() -> Vec<Operation> {
    [agent::routes(), listing::routes(), user::routes(), actions::routes()].into_iter().flatten().collect()
}
