//! The API for hosts: operations for users and agents, request bodies and responses.

mod actions;
mod agent;
mod bodies;
mod listing;
mod user;
pub(crate) mod view;

use crate::api::auth::Operation;

pub(crate) fn routes() -> Vec<Operation> {
    [agent::routes(), listing::routes(), user::routes(), actions::routes()].into_iter().flatten().collect()
}
