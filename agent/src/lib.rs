//! The agent on a discovered host: its protocol with an Assisted Service, and simulated machines.
//!
//! An [`Agent`] registers a host in an infra-env, polls for steps, runs them and replies, as the agent of the Assisted
//! Installer does. It works with Kindling and with the Go service. The trait [`Machine`] represents the host, so the
//! same protocol code runs on a real machine and on a simulated one.
//!
//! | module | contents |
//! |---|---|
//! | [`machine`] | the trait that represents a host, and the results of its steps |
//! | [`observer`] | events of an agent, for counters and logs |
//! | [`session`] | requests that a step sends itself, such as installation progress |
#![cfg_attr(feature = "simulated", doc = "| [`simulated`] | machines that exist only as a description |")]
//!
//! The crate does not read files of a host, run programs or parse command lines.
//!
//! # The protocol
//!
//! * **Registration.** The agent registers until the service accepts the host. It stops after status 401, 403, 404, 409
//!   or 410, which a retry cannot change.
//! * **Polling.** Each response contains the pause before the next poll. After failed polls, the pause grows from half
//!   a second to a minute. After 15 minutes without a successful poll, the agent registers again. It stops after status
//!   404 or 410, because the host was deleted.
//! * **Steps.** The steps of a poll run concurrently, and may still be running at the next poll. Steps that need a
//!   disk, a network or the download of images exclusively are not started twice.
//! * **Replies.** If the output of a successful step does not change, the agent sends it only once an hour.
//! * **End of a registration.** After an upgrade, or if the service asks the agent to exit, the agent cancels running
//!   steps and registers again.
//!
//! # Examples
//!
//! ```no_run
//! use agent::{Agent, Machine, StepFailure, StepOutcome};
//! use agent::session::HostSession;
//! use assisted::HostId;
//! use assisted::client::ApiClient;
//! use assisted::inventory_report::InventoryReport;
//! use assisted::reply::{ExitCode, ReplyPayload};
//! use assisted::request::StepRequest;
//!
//! struct Laptop(HostId);
//!
//! impl Machine for Laptop {
//!     async fn host_id(&self) -> HostId {
//!         self.0
//!     }
//!
//!     async fn run_step(
//!         &self,
//!         request: StepRequest,
//!         _session: &HostSession,
//!     ) -> Result<StepOutcome, StepFailure> {
//!         match request {
//!             StepRequest::Inventory(_) => {
//!                 let report = InventoryReport { hostname: "laptop".into(), ..InventoryReport::default() };
//!                 Ok(StepOutcome::Output(ReplyPayload::Inventory(Box::new(report))))
//!             }
//!             other => Err(StepFailure::new(ExitCode::FAILED, format!("no {} on a laptop", other.step_type()))),
//!         }
//!     }
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = ApiClient::new("http://127.0.0.1:8090")?;
//! let infra_env = "4f630ba3-0297-4d99-a7c7-f62e7bca1332".parse()?;
//! let agent = Agent::new(client, infra_env, "quay.io/example/agent:1", Laptop(HostId::fresh()))?;
//! agent.run().await?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

#[cfg(all(doctest, feature = "simulated"))]
#[doc = include_str!("../README.md")]
struct Readme;

mod agent;
mod error;
mod jitter;
pub mod machine;
pub mod observer;
mod registration;
mod requests;
mod runner;
mod sent_replies;
pub mod session;
#[cfg(feature = "simulated")]
pub mod simulated;
mod steps;

pub use agent::{Agent, AgentEnd};
pub use error::AgentError;
pub use machine::{Machine, StepFailure, StepOutcome};
