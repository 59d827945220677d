//! The status rules of hosts, in one table for each event. The status texts come from the Assisted Installer.

use assisted::host::HostStage;
use assisted::host::HostStatus::{
    self, AddedToExistingCluster, Binding, Cancelled, Disabled, Disconnected, DisconnectedUnbound,
    Discovering, DiscoveringUnbound, Error, Installed, Installing, InstallingInProgress,
    InstallingPendingUserAction, Insufficient, InsufficientUnbound, Known, KnownUnbound, PendingForInput,
    PreparingFailed, PreparingForInstallation, PreparingSuccessful, ReclaimingRebooting, Resetting,
    ResettingPendingUserAction, Unbinding, UnbindingPendingUserAction,
};

use super::facts::{HostConclusions, MediaLoss, PoolConclusions, RegistrationFacts, StageReport};
use super::machine::{HostMachine, HostRefusal, HostReset};
use crate::host::status::MEDIA_DISCONNECTED;
use crate::transitions::StatusInfo::{self, Text, Unchanged, WithDetails};
use crate::transitions::{Details, TransitionRule, TransitionTable};
use crate::validation::HostResults;

pub(super) const WAITING_FOR_INVENTORY: &str = "Waiting for host to send hardware details";
const STOPPED_COMMUNICATING: &str = "Host has stopped communicating with the installation service";
const READY_TO_INSTALL: &str = "Host is ready to be installed";
const TOO_LITTLE_HARDWARE: &str = "Host does not meet the minimum hardware requirements: ";
const WAITING_FOR_UNBIND: &str = "Host is waiting to be unbound from the cluster";

const BOOTS_FROM_DISK: &str = "the stage is `Rebooting`, or `Done` of a host that joins an existing cluster";
const NO_MEDIA: &str = "the boot media cannot be read";
const SILENT: &str = "the host has not checked in recently";
const NO_INVENTORY: &str = "no usable inventory report is stored";

/// Statuses of hosts without a cluster.
pub(super) const POOL: &[HostStatus] =
    &[DiscoveringUnbound, InsufficientUnbound, KnownUnbound, DisconnectedUnbound];
/// Statuses of hosts in a cluster, before their installation.
pub(super) const DISCOVERED: &[HostStatus] =
    &[Discovering, Insufficient, Known, PendingForInput, Disconnected];
/// Statuses in which an installer can report a stage.
const INSTALLING: &[HostStatus] = &[Installing, InstallingInProgress, InstallingPendingUserAction];

/// The rules of [`HostEvent::Register`](super::HostEvent::Register).
pub(super) enum Register {}

impl TransitionTable for Register {
    type Machine = HostMachine;
    type Facts<'a> = RegistrationFacts<'a>;
    const RULES: &'static [TransitionRule<Self>] = &[
        TransitionRule::<Self>::to(&[PreparingForInstallation, PreparingSuccessful], Known, Text(READY_TO_INSTALL)),
        TransitionRule::<Self>::stay(&[Resetting])
            .when("the stage is `Rebooting`", |facts| matches!(facts.stage, Some(HostStage::Rebooting)))
            .legacy("earlier agents reset hosts themselves"),
        TransitionRule::<Self>::to(
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
        .resetting(HostReset::Boot),
        TransitionRule::<Self>::refuse(&[InstallingPendingUserAction], HostRefusal::MustBootFromDisk)
            .when(BOOTS_FROM_DISK, boots_from_disk),
        TransitionRule::<Self>::refuse(
            &[InstallingInProgress, AddedToExistingCluster],
            HostRefusal::NoInstallationDisk,
        )
        .when(
            "the stage is `Rebooting`, or `Done` of a host that joins an existing cluster; and the inventory report does \
             not have the installation disk",
            |facts| boots_from_disk(facts) && facts.installation_disk.is_none(),
        ),
        TransitionRule::<Self>::to(
            &[InstallingInProgress, AddedToExistingCluster],
            InstallingPendingUserAction,
            WithDetails(
                "Expected the host to boot from disk, but it booted the installation image - please reboot and fix boot \
                 order to boot from disk ",
                Details {
                    words: "model, serial, name and id of the disk",
                    text: |facts| facts.installation_disk.unwrap_or("").to_owned(),
                },
            ),
        )
        .when(BOOTS_FROM_DISK, boots_from_disk),
        TransitionRule::<Self>::to(
            &[Installing, InstallingInProgress],
            Error,
            Text("The host unexpectedly restarted during the installation"),
        ),
        TransitionRule::<Self>::stay(&[Error]),
        TransitionRule::<Self>::refuse(&[Installed], HostRefusal::AlreadyInstalled),
        TransitionRule::<Self>::to(
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
        .resetting(HostReset::Boot),
    ];
}

fn boots_from_disk(facts: &RegistrationFacts<'_>) -> bool {
    match facts.stage {
        Some(HostStage::Rebooting) => true,
        Some(HostStage::Done) => facts.joins,
        _ => false,
    }
}

/// The rules of [`HostEvent::Refresh`](super::HostEvent::Refresh).
pub(super) enum Refresh {}

impl TransitionTable for Refresh {
    type Machine = HostMachine;
    type Facts<'a> = HostConclusions<'a>;
    const RULES: &'static [TransitionRule<Self>] = &[
        // Keep the text, which was set when the boot media became unreadable.
        TransitionRule::<Self>::to(DISCOVERED, Disconnected, Unchanged)
            .when(NO_MEDIA, |facts| !facts.has_media),
        TransitionRule::<Self>::to(
            &[Discovering, Insufficient, Known, PendingForInput, Disconnected, PreparingFailed],
            Disconnected,
            Text(STOPPED_COMMUNICATING),
        )
        .when(SILENT, |facts| !facts.is_connected),
        TransitionRule::<Self>::to(DISCOVERED, Discovering, Text(WAITING_FOR_INVENTORY))
            .when(NO_INVENTORY, |facts| !facts.has_valid_inventory),
        TransitionRule::<Self>::to(
            DISCOVERED,
            Insufficient,
            WithDetails(TOO_LITTLE_HARDWARE, Self::FAILING_VALIDATIONS),
        )
        .when("the hardware is not enough for any role", |facts| !facts.has_minimum_hardware),
        TransitionRule::<Self>::to(
            DISCOVERED,
            PendingForInput,
            WithDetails("Waiting for user input: ", Self::FAILING_VALIDATIONS),
        )
        .when("a setting of the cluster that the host depends on is missing", |facts| {
            !facts.has_required_input
        }),
        TransitionRule::<Self>::to(
            DISCOVERED,
            Insufficient,
            WithDetails(
                "Host cannot be installed due to following failing validation(s): ",
                Self::FAILING_VALIDATIONS,
            ),
        )
        .when("another validation blocks the installation", |facts| !facts.is_sufficient),
        TransitionRule::<Self>::to(DISCOVERED, Known, Text(READY_TO_INSTALL)),
        // The host keeps this status until its agent registers again.
        TransitionRule::<Self>::stay(&[Binding]),
    ];
}

impl Refresh {
    const FAILING_VALIDATIONS: Details<Self> =
        Details { words: "failing validations", text: |facts| failing_validations(facts.results) };
}

/// The rules of [`HostEvent::RefreshUnbound`](super::HostEvent::RefreshUnbound).
pub(super) enum RefreshUnbound {}

impl TransitionTable for RefreshUnbound {
    type Machine = HostMachine;
    type Facts<'a> = PoolConclusions<'a>;
    const RULES: &'static [TransitionRule<Self>] = &[
        // Keep the text, which was set when the boot media became unreadable.
        TransitionRule::<Self>::to(POOL, DisconnectedUnbound, Unchanged)
            .when(NO_MEDIA, |facts| !facts.has_media),
        TransitionRule::<Self>::to(
            &[DiscoveringUnbound, InsufficientUnbound, KnownUnbound, DisconnectedUnbound, Unbinding],
            DisconnectedUnbound,
            Text(STOPPED_COMMUNICATING),
        )
        .when(SILENT, |facts| !facts.is_connected),
        TransitionRule::<Self>::to(POOL, DiscoveringUnbound, Text(WAITING_FOR_INVENTORY))
            .when(NO_INVENTORY, |facts| !facts.has_valid_inventory),
        TransitionRule::<Self>::to(
            POOL,
            InsufficientUnbound,
            WithDetails(
                TOO_LITTLE_HARDWARE,
                Details { words: "failing validations", text: |facts| failing_validations(facts.results) },
            ),
        )
        .when("the hardware is not enough for any role, or the name is invalid", |facts| !facts.is_bindable),
        // The host keeps this status until its agent registers again.
        TransitionRule::<Self>::stay(&[Unbinding]),
        TransitionRule::<Self>::to(POOL, KnownUnbound, Text("Host is ready to be bound to a cluster")),
    ];
}

fn failing_validations(results: &HostResults) -> String {
    results.failing_messages().join(" ; ")
}

/// The rules of [`HostEvent::LoseMedia`](super::HostEvent::LoseMedia).
pub(super) enum LoseMedia {}

impl TransitionTable for LoseMedia {
    type Machine = HostMachine;
    type Facts<'a> = MediaLoss<'a>;
    const RULES: &'static [TransitionRule<Self>] = &[
        TransitionRule::<Self>::to(POOL, DisconnectedUnbound, Text(MEDIA_DISCONNECTED)),
        TransitionRule::<Self>::to(
            &[Discovering, Insufficient, Known, PendingForInput, Disconnected, Binding],
            Disconnected,
            Text(MEDIA_DISCONNECTED),
        ),
        TransitionRule::<Self>::to(
            &[
                PreparingForInstallation,
                PreparingFailed,
                PreparingSuccessful,
                Installing,
                InstallingInProgress,
            ],
            Error,
            WithDetails(
                "Failed - ",
                Details {
                    words: "lost media*. *previous text",
                    text: |facts| match facts.status_info {
                        "" => MEDIA_DISCONNECTED.to_owned(),
                        before => format!("{MEDIA_DISCONNECTED}. {before}"),
                    },
                },
            ),
        ),
    ];
}

/// The rules of [`HostEvent::LoseConnection`](super::HostEvent::LoseConnection).
pub(super) enum LoseConnection {}

impl TransitionTable for LoseConnection {
    type Machine = HostMachine;
    type Facts<'a> = ();
    const RULES: &'static [TransitionRule<Self>] = &[
        TransitionRule::<Self>::to(
            &[Discovering, Insufficient, Known, PendingForInput, PreparingFailed],
            Disconnected,
            Text(STOPPED_COMMUNICATING),
        ),
        TransitionRule::<Self>::to(
            &[DiscoveringUnbound, InsufficientUnbound, KnownUnbound, Unbinding],
            DisconnectedUnbound,
            Text(STOPPED_COMMUNICATING),
        ),
    ];
}

/// The rules of [`HostEvent::EnterStage`](super::HostEvent::EnterStage).
pub(super) enum EnterStage {}

impl TransitionTable for EnterStage {
    type Machine = HostMachine;
    type Facts<'a> = StageReport<'a>;
    const RULES: &'static [TransitionRule<Self>] = &[
        TransitionRule::<Self>::to(INSTALLING, Error, Self::STAGE)
            .when("the stage is `Failed`", |facts| matches!(facts.stage, HostStage::Failed)),
        TransitionRule::<Self>::to(
            INSTALLING,
            AddedToExistingCluster,
            Text(
                "Host has rebooted and no further updates will be posted. Please check console for progress and to \
                 possibly approve pending CSRs",
            ),
        )
        .when("the stage is `Done`, and the host joins an existing cluster", |facts| {
            matches!(facts.stage, HostStage::Done) && facts.joins
        }),
        TransitionRule::<Self>::to(INSTALLING, Installed, Self::STAGE)
            .when("the stage is `Done`", |facts| matches!(facts.stage, HostStage::Done)),
        TransitionRule::<Self>::to(INSTALLING, InstallingInProgress, Self::STAGE),
    ];
}

impl EnterStage {
    const STAGE: StatusInfo<Self> = WithDetails(
        "",
        Details {
            words: "stage; a failure with its message",
            text: |facts| match (facts.stage, facts.message) {
                (HostStage::Failed, message) if !message.is_empty() => format!("{} - {message}", facts.stage),
                (stage, _) => stage.to_string(),
            },
        },
    );
}

/// The rules of [`HostEvent::Bind`](super::HostEvent::Bind).
pub(super) enum Bind {}

impl TransitionTable for Bind {
    type Machine = HostMachine;
    type Facts<'a> = ();
    const RULES: &'static [TransitionRule<Self>] = &[TransitionRule::<Self>::to(
        &[KnownUnbound],
        Binding,
        Text("Host is waiting to be bound to the cluster"),
    )];
}

/// The rules of [`HostEvent::Unbind`](super::HostEvent::Unbind).
pub(super) enum Unbind {}

impl TransitionTable for Unbind {
    type Machine = HostMachine;
    type Facts<'a> = ();
    const RULES: &'static [TransitionRule<Self>] = &[
        TransitionRule::<Self>::to(DISCOVERED, Unbinding, Text(WAITING_FOR_UNBIND)),
        TransitionRule::<Self>::to(
            &[Installed, AddedToExistingCluster, Error, Cancelled],
            UnbindingPendingUserAction,
            Text(WAITING_FOR_UNBIND),
        ),
    ];
}

/// The rules of [`HostEvent::DeleteCluster`](super::HostEvent::DeleteCluster).
pub(super) enum DeleteCluster {}

impl TransitionTable for DeleteCluster {
    type Machine = HostMachine;
    type Facts<'a> = ();
    const RULES: &'static [TransitionRule<Self>] = &[
        // The agents of these hosts still poll for steps, so no user action is needed.
        TransitionRule::<Self>::to(
            &[Discovering, Insufficient, Known, PendingForInput, Disconnected, Binding],
            Unbinding,
            Text(WAITING_FOR_UNBIND),
        ),
        TransitionRule::<Self>::to(
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
            Text(WAITING_FOR_UNBIND),
        ),
    ];
}
