//! The API of the inventory over a real socket, on SQLite and on PostgreSQL.
//!
//! PostgreSQL is the server whose URL `KINDLING_TEST_POSTGRES` holds; every test gets a database of its own there. Without
//! it, tests say so and run on SQLite alone, and fail with `KINDLING_REQUIRE_TOOLS=1`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod agent;
mod auth;
mod bounds;
mod cluster_networks;
mod cluster_rules;
mod cluster_sequences;
mod clusters;
mod database;
mod events;
mod files;
mod hosts;
mod infra_envs;
mod lists;
mod logs;
mod openapi;
mod outage;
mod races;
mod remains;
mod replay;
mod router;
mod sequences;
mod service;
mod store;
mod versions;
