//! The transition table of a host's status.
//!
//! [`find_rule`] returns the first row whose event, source and condition match. Only a row, or the first registration
//! of a host, makes a [`Transition`], and a record must change its status only by a transition. An event without a row
//! does not change the host. `docs/state-machines.md` shows the table.

use assisted::host::HostStatus::{
    AddedToExistingCluster, Binding, Cancelled, Disabled, Disconnected, DisconnectedUnbound, Discovering,
    DiscoveringUnbound, Error, Installed, Installing, InstallingInProgress, InstallingPendingUserAction,
    Insufficient, InsufficientUnbound, Known, KnownUnbound, PendingForInput, PreparingFailed,
    PreparingForInstallation, PreparingSuccessful, ReclaimingRebooting, Resetting,
    ResettingPendingUserAction, Unbinding, UnbindingPendingUserAction,
};
use assisted::host::{HostStage, HostStatus};

use super::status::MEDIA_DISCONNECTED;

/// An event that can change the status of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// The agent registered the host again, after a boot of the discovery image.
    Register,
    /// Facts of the host may have changed: a report, a check-in, a choice of a user, or the passing of time.
    Refresh,
    /// The agent cannot read the boot media any more.
    LoseMedia,
    /// The installer reports another stage.
    EnterStage,
    /// A user binds the host to a cluster.
    Bind,
    /// A user unbinds the host from its cluster.
    Unbind,
    /// The cluster of the host is deleted.
    DeleteCluster,
}

/// Facts about a host that conditions depend on. An event needs only some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// It has checked in recently.
    pub is_connected: bool,
    /// It can read its boot media, as far as its agent has reported.
    pub has_media: bool,
    /// An inventory report is stored.
    pub has_inventory: bool,
    /// It has the processors, memory and disks that every role needs.
    pub has_minimum_hardware: bool,
    /// No validation blocks its installation.
    pub is_sufficient: bool,
    /// It joins an existing cluster.
    pub joins: bool,
    /// Its infra-env is bound to a cluster.
    pub has_bound_infra_env: bool,
    /// The current stage of its installation; of [`HostEvent::EnterStage`], the reported one.
    pub stage: Option<HostStage>,
}

/// A condition of a row.
#[derive(Clone, Copy, Debug)]
struct Condition {
    /// The condition in words.
    #[cfg_attr(not(test), expect(dead_code, reason = "for docs/state-machines.md"))]
    text: &'static str,
    holds: fn(&HostFacts) -> bool,
}

/// The outcome of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOutcome {
    /// The host gets this status, which it may have already.
    To(HostStatus),
    /// Nothing changes.
    Stay,
    /// The event is refused.
    Refused(RefusalReason),
}

/// The reason why a registration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The host must boot from its installation disk.
    MustBootFromDisk,
    /// The host is installed.
    AlreadyInstalled,
}

/// The status text of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusInfo {
    /// The text stays.
    Unchanged,
    Text(&'static str),
    /// This text, and after it the details that the caller gives.
    WithDetails(&'static str, Details),
}

/// What follows a status text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Details {
    /// The messages of all failing validations.
    FailingValidations,
    /// The installation disk.
    InstallationDisk,
    /// The stage, and the installer's message if the installation failed.
    Stage,
    /// The text about lost media, and the status text so far.
    LostMedia,
}

/// A row of the table.
#[derive(Debug)]
pub struct TransitionRule {
    event: HostEvent,
    from: &'static [HostStatus],
    condition: Option<Condition>,
    outcome: RuleOutcome,
    info: StatusInfo,
    resets_boot: bool,
    /// Why the row exists although no host gets one of its sources.
    #[cfg_attr(not(test), expect(dead_code, reason = "for docs/state-machines.md"))]
    legacy: Option<&'static str>,
}

impl TransitionRule {
    const fn new(event: HostEvent, from: &'static [HostStatus], outcome: RuleOutcome) -> Self {
        let info = StatusInfo::Unchanged;
        Self { event, from, condition: None, outcome, info, resets_boot: false, legacy: None }
    }

    const fn to(event: HostEvent, from: &'static [HostStatus], to: HostStatus, info: StatusInfo) -> Self {
        Self { info, ..Self::new(event, from, RuleOutcome::To(to)) }
    }

    const fn when(self, text: &'static str, holds: fn(&HostFacts) -> bool) -> Self {
        Self { condition: Some(Condition { text, holds }), ..self }
    }

    const fn resetting_boot(self) -> Self {
        Self { resets_boot: true, ..self }
    }

    const fn legacy(self, reason: &'static str) -> Self {
        Self { legacy: Some(reason), ..self }
    }

    fn matches(&self, status: HostStatus, event: HostEvent, facts: &HostFacts) -> bool {
        self.event == event
            && self.from.contains(&status)
            && self.condition.is_none_or(|condition| (condition.holds)(facts))
    }

    /// Returns the outcome.
    pub fn outcome(&self) -> RuleOutcome {
        self.outcome
    }

    /// Returns the details that its status text needs.
    pub fn details(&self) -> Option<Details> {
        match self.info {
            StatusInfo::WithDetails(_, details) => Some(details),
            StatusInfo::Unchanged | StatusInfo::Text(_) => None,
        }
    }

    /// Returns the transition. `details` is empty unless the row needs [details](Self::details).
    pub fn transition(&self, details: &str) -> Transition {
        let info = match self.info {
            StatusInfo::Unchanged => None,
            StatusInfo::Text(text) => Some(text.to_owned()),
            StatusInfo::WithDetails(text, _) => Some(format!("{text}{details}")),
        };
        let status = match self.outcome {
            RuleOutcome::To(status) => Some(status),
            RuleOutcome::Stay | RuleOutcome::Refused(_) => None,
        };
        Transition { status, info, resets_boot: self.resets_boot }
    }
}

/// A change of a host's status.
#[derive(Debug)]
pub struct Transition {
    status: Option<HostStatus>,
    info: Option<String>,
    resets_boot: bool,
}

impl Transition {
    /// Returns the transition of a host that registers for the first time.
    pub fn first(is_bound: bool) -> Self {
        let status = if is_bound { Discovering } else { DiscoveringUnbound };
        Self { status: Some(status), info: Some(WAITING_FOR_INVENTORY.to_owned()), resets_boot: false }
    }

    /// Returns the new status; `None` if it stays.
    pub fn status(&self) -> Option<HostStatus> {
        self.status
    }

    /// Returns the new status text; `None` if it stays.
    pub fn info(&self) -> Option<&str> {
        self.info.as_deref()
    }

    /// Appends `suffix` to the new status text. A transition that keeps the text is unchanged.
    pub fn with_info_suffix(self, suffix: &str) -> Self {
        Self { info: self.info.map(|info| info + suffix), ..self }
    }

    /// Returns `true` if everything that the agent has reported since the last boot is discarded.
    pub fn resets_boot(&self) -> bool {
        self.resets_boot
    }
}

/// Returns the first row that matches.
pub fn find_rule(status: HostStatus, event: HostEvent, facts: &HostFacts) -> Option<&'static TransitionRule> {
    RULES.iter().find(|rule| rule.matches(status, event, facts))
}

/// Returns the statuses of hosts that become disconnected when they are silent for too long.
pub fn statuses_before_disconnection() -> impl Iterator<Item = HostStatus> {
    HostStatus::ALL.iter().copied().filter(|status| becomes_disconnected(*status))
}

/// Returns `true` if a host with this status becomes disconnected when it is silent for too long.
pub fn becomes_disconnected(status: HostStatus) -> bool {
    let silent = HostFacts { has_media: true, ..HostFacts::default() };
    let rule = find_rule(status, HostEvent::Refresh, &silent);
    rule.is_some_and(|rule| matches!(rule.outcome, RuleOutcome::To(to) if to != status))
}

const WAITING_FOR_INVENTORY: &str = "Waiting for host to send hardware details";
const STOPPED_COMMUNICATING: &str = "Host has stopped communicating with the installation service";
const READY_TO_INSTALL: &str = "Host is ready to be installed";
const TOO_LITTLE_HARDWARE: StatusInfo = StatusInfo::WithDetails(
    "Host does not meet the minimum hardware requirements: ",
    Details::FailingValidations,
);
const WAITING_FOR_UNBIND: StatusInfo = StatusInfo::Text("Host is waiting to be unbound from the cluster");
const STAGE: StatusInfo = StatusInfo::WithDetails("", Details::Stage);

/// Statuses of hosts without a cluster.
const POOL: &[HostStatus] = &[DiscoveringUnbound, InsufficientUnbound, KnownUnbound, DisconnectedUnbound];
/// Statuses of hosts of a cluster that does not install them yet.
const DISCOVERED: &[HostStatus] = &[Discovering, Insufficient, Known, PendingForInput, Disconnected];

/// The table. For each event, the first row that matches counts.
static RULES: &[TransitionRule] = {
    use HostEvent::{Bind, DeleteCluster, EnterStage, LoseMedia, Refresh, Register, Unbind};
    use StatusInfo::{Text, Unchanged, WithDetails};
    &[
        TransitionRule::to(Register, &[PreparingForInstallation, PreparingSuccessful], Known, Text(READY_TO_INSTALL)),
        TransitionRule::new(Register, &[Resetting], RuleOutcome::Stay)
            .when("the stage is `Rebooting`", |facts| matches!(facts.stage, Some(HostStage::Rebooting)))
            .legacy("earlier agents reset hosts themselves"),
        TransitionRule::to(
            Register,
            &[
                Discovering,
                Known,
                Disconnected,
                Insufficient,
                PendingForInput,
                Binding,
                ResettingPendingUserAction,
                Resetting,
            ],
            Discovering,
            Text(WAITING_FOR_INVENTORY),
        )
        .resetting_boot(),
        TransitionRule::new(
            Register,
            &[InstallingPendingUserAction],
            RuleOutcome::Refused(RefusalReason::MustBootFromDisk),
        )
        .when(BOOTS_FROM_DISK, boots_from_disk),
        TransitionRule::to(
            Register,
            &[InstallingInProgress, AddedToExistingCluster],
            InstallingPendingUserAction,
            WithDetails(
                "Expected the host to boot from disk, but it booted the installation image - please reboot and fix boot \
                 order to boot from disk ",
                Details::InstallationDisk,
            ),
        )
        .when(BOOTS_FROM_DISK, boots_from_disk),
        TransitionRule::to(
            Register,
            &[Installing, InstallingInProgress],
            Error,
            Text("The host unexpectedly restarted during the installation"),
        ),
        TransitionRule::new(Register, &[Error], RuleOutcome::Stay),
        TransitionRule::new(Register, &[Installed], RuleOutcome::Refused(RefusalReason::AlreadyInstalled)),
        TransitionRule::to(
            Register,
            &[
                DiscoveringUnbound,
                InsufficientUnbound,
                KnownUnbound,
                DisconnectedUnbound,
                Unbinding,
                UnbindingPendingUserAction,
                ReclaimingRebooting,
            ],
            DiscoveringUnbound,
            Text(WAITING_FOR_INVENTORY),
        )
        .when("the infra-env is not bound to a cluster", |facts| !facts.has_bound_infra_env)
        .resetting_boot(),
        // The text was set when the media were lost.
        TransitionRule::to(Refresh, POOL, DisconnectedUnbound, Unchanged).when(NO_MEDIA, |facts| !facts.has_media),
        TransitionRule::to(Refresh, DISCOVERED, Disconnected, Unchanged).when(NO_MEDIA, |facts| !facts.has_media),
        TransitionRule::to(Refresh, POOL, DisconnectedUnbound, Text(STOPPED_COMMUNICATING))
            .when(SILENT, |facts| !facts.is_connected),
        TransitionRule::to(Refresh, DISCOVERED, Disconnected, Text(STOPPED_COMMUNICATING))
            .when(SILENT, |facts| !facts.is_connected),
        TransitionRule::to(Refresh, POOL, DiscoveringUnbound, Text(WAITING_FOR_INVENTORY))
            .when(NO_INVENTORY, |facts| !facts.has_inventory),
        TransitionRule::to(Refresh, DISCOVERED, Discovering, Text(WAITING_FOR_INVENTORY))
            .when(NO_INVENTORY, |facts| !facts.has_inventory),
        TransitionRule::to(Refresh, POOL, KnownUnbound, Text("Host is ready to be bound to a cluster"))
            .when(SUFFICIENT, |facts| facts.is_sufficient),
        TransitionRule::to(Refresh, DISCOVERED, Known, Text(READY_TO_INSTALL))
            .when(SUFFICIENT, |facts| facts.is_sufficient),
        TransitionRule::to(Refresh, POOL, InsufficientUnbound, TOO_LITTLE_HARDWARE),
        TransitionRule::to(Refresh, DISCOVERED, Insufficient, TOO_LITTLE_HARDWARE)
            .when("the hardware is not enough for any role", |facts| !facts.has_minimum_hardware),
        TransitionRule::to(
            Refresh,
            DISCOVERED,
            Insufficient,
            WithDetails(
                "Host cannot be installed due to following failing validation(s): ",
                Details::FailingValidations,
            ),
        ),
        TransitionRule::to(LoseMedia, POOL, DisconnectedUnbound, Text(MEDIA_DISCONNECTED)),
        TransitionRule::to(
            LoseMedia,
            &[Discovering, Insufficient, Known, PendingForInput, Disconnected, Binding],
            Disconnected,
            Text(MEDIA_DISCONNECTED),
        ),
        TransitionRule::to(
            LoseMedia,
            &[PreparingForInstallation, PreparingFailed, PreparingSuccessful, Installing, InstallingInProgress],
            Error,
            WithDetails("Failed - ", Details::LostMedia),
        ),
        TransitionRule::to(
            EnterStage,
            &[Installing, InstallingInProgress, InstallingPendingUserAction],
            Error,
            STAGE,
        )
        .when("the stage is `Failed`", |facts| matches!(facts.stage, Some(HostStage::Failed))),
        TransitionRule::to(
            EnterStage,
            &[Installing, InstallingInProgress, InstallingPendingUserAction],
            AddedToExistingCluster,
            Text(
                "Host has rebooted and no further updates will be posted. Please check console for progress and to \
                 possibly approve pending CSRs",
            ),
        )
        .when("the stage is `Done`, and the host joins an existing cluster", |facts| {
            matches!(facts.stage, Some(HostStage::Done)) && facts.joins
        }),
        TransitionRule::to(
            EnterStage,
            &[Installing, InstallingInProgress, InstallingPendingUserAction],
            Installed,
            STAGE,
        )
        .when("the stage is `Done`", |facts| matches!(facts.stage, Some(HostStage::Done))),
        TransitionRule::to(
            EnterStage,
            &[Installing, InstallingInProgress, InstallingPendingUserAction],
            InstallingInProgress,
            STAGE,
        ),
        TransitionRule::to(Bind, &[KnownUnbound], Binding, Text("Host is waiting to be bound to the cluster")),
        TransitionRule::to(Unbind, DISCOVERED, Unbinding, WAITING_FOR_UNBIND),
        TransitionRule::to(
            Unbind,
            &[Installed, AddedToExistingCluster, Error, Cancelled],
            UnbindingPendingUserAction,
            WAITING_FOR_UNBIND,
        ),
        // The agent still polls for steps.
        TransitionRule::to(
            DeleteCluster,
            &[Discovering, Insufficient, Known, PendingForInput, Disconnected, Binding],
            Unbinding,
            WAITING_FOR_UNBIND,
        ),
        TransitionRule::to(
            DeleteCluster,
            &[
                PreparingForInstallation,
                PreparingFailed,
                PreparingSuccessful,
                Installing,
                InstallingInProgress,
                InstallingPendingUserAction,
                ResettingPendingUserAction,
                Resetting,
                Installed,
                AddedToExistingCluster,
                Error,
                Cancelled,
                Disabled,
            ],
            UnbindingPendingUserAction,
            WAITING_FOR_UNBIND,
        ),
    ]
};

const BOOTS_FROM_DISK: &str = "the stage is `Rebooting`, or `Done` of a host that joins an existing cluster";
const NO_MEDIA: &str = "the boot media cannot be read";
const SILENT: &str = "the host has not checked in recently";
const NO_INVENTORY: &str = "there is no inventory report";
const SUFFICIENT: &str = "no validation blocks the installation";

fn boots_from_disk(facts: &HostFacts) -> bool {
    match facts.stage {
        Some(HostStage::Rebooting) => true,
        Some(HostStage::Done) => facts.joins,
        _ => false,
    }
}

#[cfg(test)]
pub(crate) mod tests;
