//! The API of the inventory over a real socket, on SQLite and on PostgreSQL.
//!
//! `KINDLING_TEST_POSTGRES` is the URL of a PostgreSQL server, on which every test creates its own database. Without
//! it, tests print a notice and run only on SQLite, or fail with `KINDLING_REQUIRE_TOOLS=1`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod agent;
mod assessments;
mod auth;
mod bounds;
mod buckets;
mod changes;
mod check_ins;
mod cluster_assessments;
mod cluster_networks;
mod cluster_rules;
mod cluster_sequences;
mod clusters;
mod concurrent_assessments;
mod connectivity_reports;
mod damage;
mod database;
mod disks;
mod events;
mod exchanges;
mod files;
mod fleet;
mod gated_store;
mod host_sequences;
mod hosts;
mod infra_envs;
mod jobs;
mod lists;
mod logs;
mod monitor;
mod newer_release;
mod openapi;
mod operators;
mod outage;
mod races;
mod ready_cluster;
mod replay;
mod retention;
mod router;
#[path = "../support/schemathesis.rs"]
mod schemathesis;
mod sequences;
mod service;
#[path = "../support/skip.rs"]
mod skip;
mod step_replies;
mod store;
mod summaries;
mod versions;
mod virtual_addresses;
