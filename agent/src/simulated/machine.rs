//! A simulated machine, which runs the steps that the service requests.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use assisted::HostId;
use assisted::host::LogsState;
use assisted::reply::{ExitCode, ReplyPayload, UpgradeReport};
use assisted::request::StepRequest;

use super::fault::Fault;
use super::profile::DescribedInterface;
use super::site::{HostSlot, SimulatedSite};
use super::step_fault::MEDIA_LOST;
use crate::machine::{Machine, StepFailure, StepOutcome};
use crate::session::HostSession;

/// A machine of a [`SimulatedSite`].
#[derive(Clone, Debug)]
pub struct SimulatedMachine {
    pub(super) site: Arc<SimulatedSite>,
    /// Number of the host in its site, starting at 0.
    pub(super) number: u32,
    pub(super) slot: HostSlot,
    /// Number of connectivity checks so far. Copies of the machine share the counter.
    pub(super) checks: Arc<AtomicU64>,
}

/// Number of seconds by which a wrong clock is behind.
const CLOCK_ERROR: i64 = 30 * 60;

impl SimulatedMachine {
    /// Returns the id of the host. It depends only on the seed of the site and the number of the host.
    #[must_use]
    pub fn id(&self) -> HostId {
        self.site.host_id(self.number)
    }

    /// Returns the number of the host in its site. The first host has number 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn has_fault(&self, fault: Fault) -> bool {
        self.slot.has_fault(fault)
    }

    /// Returns the address of the host. `None`: no interface has a link.
    pub(super) fn address(&self) -> Option<Ipv4Addr> {
        self.site.address(self.number)
    }

    /// Returns the interface with the host's address.
    pub(super) fn connected_interface(&self) -> Option<&DescribedInterface> {
        self.slot.group.interfaces.get(self.slot.connected_interface()?)
    }

    fn reply(&self, request: StepRequest) -> Result<ReplyPayload<'static>, StepFailure> {
        Ok(match request {
            StepRequest::Inventory(_) if self.has_fault(Fault::InvalidReport) => {
                ReplyPayload::Text("lscpu: command not found".into())
            }
            StepRequest::Inventory(request) => {
                ReplyPayload::Inventory(Box::new(self.limited_report(&request)))
            }
            StepRequest::ConnectivityCheck(hosts) => ReplyPayload::Connectivity(self.connectivity(&hosts)),
            StepRequest::FreeAddresses(networks) => {
                ReplyPayload::FreeAddresses(self.free_addresses(&networks)?)
            }
            StepRequest::DhcpLeases(request) => ReplyPayload::DhcpLeases(self.dhcp_leases(&request)?),
            StepRequest::Ntp(request) => ReplyPayload::Ntp(self.time_servers(&request)?),
            StepRequest::Domains(request) => ReplyPayload::Domains(self.domains(&request)),
            StepRequest::ApiVip(request) => ReplyPayload::ApiVip(self.ignition_endpoint(&request)),
            StepRequest::Tang(request) => ReplyPayload::Tang(self.tang_servers(&request)?),
            StepRequest::Vips(vips) => ReplyPayload::Vips(self.verified_vips(&vips)),
            StepRequest::DiskSpeed(request) => ReplyPayload::DiskSpeed(self.disk_speed(&request)?),
            StepRequest::Images(request) => ReplyPayload::Images(self.images(&request)?),
            StepRequest::Upgrade(request) => {
                let agent_image = request.agent_image.into();
                ReplyPayload::Upgrade(UpgradeReport { agent_image, result: "success".into() })
            }
            StepRequest::BootArtifacts(_) => {
                ReplyPayload::Text("Successfully downloaded boot artifacts".into())
            }
            other => {
                let message = format!("simulated hosts do not support the step {}", other.step_type());
                return Err(StepFailure::new(ExitCode::FAILED, message));
            }
        })
    }
}

impl Machine for SimulatedMachine {
    async fn host_id(&self) -> HostId {
        self.id()
    }

    fn unix_time(&self) -> i64 {
        let now = chrono::Utc::now().timestamp();
        if self.has_fault(Fault::WrongClock) { now - CLOCK_ERROR } else { now }
    }

    async fn media_error(&self) -> Option<String> {
        self.has_fault(Fault::MediaLost).then(|| MEDIA_LOST.to_owned())
    }

    async fn run_step(
        &self,
        request: StepRequest,
        session: &HostSession,
    ) -> Result<StepOutcome, StepFailure> {
        if let Some(result) = self.slot.faults.step_result(request.step_type()) {
            return result;
        }
        match request {
            StepRequest::StopInstallation => Ok(StepOutcome::Done),
            StepRequest::RebootForReclaim(_) => Ok(StepOutcome::Rebooting),
            StepRequest::LogsGather(_) => {
                // A simulated host has no logs to upload, so it reports a complete collection.
                for state in [LogsState::Requested, LogsState::Completed] {
                    session.report_logs(state).await.map_err(|error| {
                        StepFailure::new(ExitCode::FAILED, format!("cannot report logs: {error}"))
                    })?;
                }
                Ok(StepOutcome::Done)
            }
            other => self.reply(other).map(StepOutcome::Output),
        }
    }
}
