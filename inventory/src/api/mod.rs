//! The REST API: the routes of each area, and the parts that all areas share: access checks, request bodies, query
//! parameters, lists, errors, the router and the OpenAPI document.

pub mod auth;
mod body;
pub(crate) mod clusters;
mod error;
mod events;
mod examples;
pub(crate) mod hosts;
mod id;
mod infra_envs;
mod large;
mod list;
mod logs;
mod memory_limit;
mod not_implemented;
mod query;
mod router;
mod schema;
mod security;
mod state;
mod versions;
mod work_room;

pub use assisted::error::OperationError;
pub(crate) use body::request_bodies;
pub use body::{Body, RequestBody, UnparsedBody};
pub use clusters::ShownHosts;
pub(crate) use error::json_body;
pub use error::{ApiError, ApiErrors, Reply, header_value, json, only_reads};
pub(crate) use large::{LargeBodies, ReservedMemory};
pub(crate) use list::{JsonPieces, comma_separated, json_array, json_list, json_piece, json_text};
pub use query::Query;
pub use router::{openapi, operations};
pub use schema::Schemas;
pub use security::add_access;
pub use state::ApiState;
