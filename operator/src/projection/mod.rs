//! Pure functions that compute the status of a resource from inventory records.

pub(crate) mod agent;
mod agent_conditions;
mod agent_inventory;
pub(crate) mod infra_env;

pub(crate) use agent_conditions::{CONDITION_TYPES, SpecSync};
