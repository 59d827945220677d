//! What resources show of records: pure functions from a record to a status.

pub(crate) mod agent;
mod agent_conditions;
mod agent_inventory;
pub(crate) mod infra_env;

pub(crate) use agent_conditions::SpecSync;
