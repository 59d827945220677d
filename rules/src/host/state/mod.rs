//! The status of a host, and the events that change it.
//!
//! [`decide`] returns the [`Transition`] for an event, or the reason why the event is refused. A caller must change the
//! status of a host record only by applying a transition. Each variant of [`HostEvent`] carries exactly the facts that
//! the rules of the event read. `docs/state-machines.md` shows the rules.

mod facts;
mod machine;
mod tables;

pub use facts::{HostConclusions, MediaLoss, PoolConclusions, RegistrationFacts, StageReport};
pub use machine::{HostRefusal, HostReset};

use assisted::host::HostStatus;
use chrono::{DateTime, Utc};

use self::machine::HostMachine;
use crate::host::status::is_unbound;
use crate::transitions::{RuleOutcome, TransitionTable, find_rule};

/// The status text of a restored host until its next transition.
const RESTORED: &str = "Host was restored; waiting for its agent";

/// An event that can change the status of a host.
#[derive(Clone, Copy, Debug)]
pub enum HostEvent<'a> {
    /// The agent registered the host again, after a boot of the discovery image.
    Register(RegistrationFacts<'a>),
    /// Facts about a host in a cluster may have changed, because of a report, a check-in, a user's choice or the
    /// passage of time.
    Refresh(HostConclusions<'a>),
    /// Facts about a host without a cluster may have changed.
    RefreshUnbound(PoolConclusions<'a>),
    /// The agent can no longer read the boot media.
    LoseMedia(MediaLoss<'a>),
    /// The agent has not checked in for too long.
    LoseConnection,
    /// The installer reports a new stage.
    EnterStage(StageReport<'a>),
    /// A user binds the host to a cluster.
    Bind,
    /// A user unbinds the host from its cluster.
    Unbind,
    /// The cluster of the host is deleted.
    DeleteCluster,
}

/// A change to a host's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    status: Option<HostStatus>,
    info: Option<String>,
    resets: Option<HostReset>,
    at: DateTime<Utc>,
}

impl Transition {
    /// Returns the first transition of a new host.
    #[must_use]
    pub fn first(is_bound: bool, at: DateTime<Utc>) -> Self {
        let status = if is_bound { HostStatus::Discovering } else { HostStatus::DiscoveringUnbound };
        Self { status: Some(status), info: Some(tables::WAITING_FOR_INVENTORY.to_owned()), resets: None, at }
    }

    /// Returns the first transition of a restored host. `status` is the recorded status of the host. If it is missing
    /// or does not match `is_bound`, the host gets the status of a host without problems.
    #[must_use]
    pub fn restored(status: Option<HostStatus>, is_bound: bool, at: DateTime<Utc>) -> Self {
        let default = if is_bound { HostStatus::Known } else { HostStatus::KnownUnbound };
        let status = status.filter(|status| is_unbound(*status) != is_bound).unwrap_or(default);
        Self { status: Some(status), info: Some(RESTORED.to_owned()), resets: None, at }
    }

    /// Returns the new status, which may equal the current one. `None` if the status stays.
    #[must_use]
    pub fn status(&self) -> Option<HostStatus> {
        self.status
    }

    /// Returns the new status text, or `None` if the text stays.
    #[must_use]
    pub fn info(&self) -> Option<&str> {
        self.info.as_deref()
    }

    /// Returns the stored facts to discard, or `None` if all of them stay.
    #[must_use]
    pub fn resets(&self) -> Option<HostReset> {
        self.resets
    }

    /// Returns the time of the event that caused the transition.
    #[must_use]
    pub fn at(&self) -> DateTime<Utc> {
        self.at
    }

    /// Appends `suffix` to the new status text. Does nothing if the transition keeps the current text.
    #[must_use]
    pub fn with_info_suffix(self, suffix: &str) -> Self {
        Self { info: self.info.map(|info| info + suffix), ..self }
    }
}

/// Returns the transition of a host with status `status` for an event at the time `now`.
///
/// # Errors
///
/// Returns an error if no rule of the event matches, or if the matching rule refuses the event.
pub fn decide(
    status: HostStatus,
    event: &HostEvent<'_>,
    now: DateTime<Utc>,
) -> Result<Transition, HostRefusal> {
    match event {
        HostEvent::Register(facts) => apply::<tables::Register>(status, facts, now),
        HostEvent::Refresh(facts) => apply::<tables::Refresh>(status, facts, now),
        HostEvent::RefreshUnbound(facts) => apply::<tables::RefreshUnbound>(status, facts, now),
        HostEvent::LoseMedia(facts) => apply::<tables::LoseMedia>(status, facts, now),
        HostEvent::LoseConnection => apply::<tables::LoseConnection>(status, &(), now),
        HostEvent::EnterStage(facts) => apply::<tables::EnterStage>(status, facts, now),
        HostEvent::Bind => apply::<tables::Bind>(status, &(), now),
        HostEvent::Unbind => apply::<tables::Unbind>(status, &(), now),
        HostEvent::DeleteCluster => apply::<tables::DeleteCluster>(status, &(), now),
    }
}

/// Applies the first matching rule of an event.
fn apply<T: TransitionTable<Machine = HostMachine>>(
    status: HostStatus,
    facts: &T::Facts<'_>,
    at: DateTime<Utc>,
) -> Result<Transition, HostRefusal> {
    let rule = find_rule::<T>(status, facts).ok_or(HostRefusal::NoRule)?;
    let status = match rule.outcome {
        RuleOutcome::To(status) => Some(status),
        RuleOutcome::Stay => None,
        RuleOutcome::Refused(refusal) => return Err(refusal),
    };
    Ok(Transition { status, info: rule.info.write(facts), resets: rule.resets, at })
}

/// Returns the statuses in which a host becomes disconnected if its agent does not check in for too long.
pub fn statuses_before_disconnection() -> impl Iterator<Item = HostStatus> {
    HostStatus::ALL.iter().copied().filter(|status| becomes_disconnected(*status))
}

/// Returns `true` if a host with this status becomes disconnected when its agent does not check in for too long.
#[must_use]
pub fn becomes_disconnected(status: HostStatus) -> bool {
    find_rule::<tables::LoseConnection>(status, &()).is_some()
}

#[cfg(test)]
mod document;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use document::host_section;
