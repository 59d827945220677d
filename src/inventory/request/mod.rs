//! What comes with a request: ids in its path, parameters of its query, and its body, each read and checked before an
//! operation sees it.

mod body;
mod id;
mod large;
mod query;
mod schema;

pub(crate) use body::{Body, RequestBody, request_bodies};
pub(crate) use id::RequestId;
pub(crate) use large::{LargeBodies, Room};
pub(crate) use query::Query;
pub(crate) use schema::Schemas;
