//! The status of a host.

use crate::event::Severity;
use crate::string_enum::string_enum;

string_enum! {
    /// Kind of the host.
    #[derive(Default)]
    #[schema(as = host_kind)]
    pub HostKind {
        /// A host of a cluster to be installed, or of no cluster.
        #[default]
        Host = "Host",
        /// A host that is added to an existing cluster.
        Joining = "AddToExistingClusterHost",
    }

    /// Status of a host. A host whose status ends in `-unbound` belongs to no cluster.
    #[schema(as = host_status)]
    pub HostStatus {
        /// The agent runs, and has not sent an inventory report yet.
        Discovering = "discovering",
        /// Ready to be installed.
        Known = "known",
        /// The host lost its connection, or cannot read its boot media.
        Disconnected = "disconnected",
        /// The host does not meet the requirements.
        Insufficient = "insufficient",
        /// Not used; kept for clients that know the value.
        Disabled = "disabled",
        /// Disk and container images are being checked.
        PreparingForInstallation = "preparing-for-installation",
        /// The checks failed.
        PreparingFailed = "preparing-failed",
        /// The checks succeeded.
        PreparingSuccessful = "preparing-successful",
        /// The cluster waits for input of a user.
        PendingForInput = "pending-for-input",
        /// The installation was started.
        Installing = "installing",
        /// The installation is in progress.
        InstallingInProgress = "installing-in-progress",
        /// The host did not boot from its disk; a user must act.
        InstallingPendingUserAction = "installing-pending-user-action",
        /// The host must boot the discovery image again; a user must act.
        ResettingPendingUserAction = "resetting-pending-user-action",
        /// The host is installed.
        Installed = "installed",
        /// The installation failed.
        Error = "error",
        /// The installation is being reset.
        Resetting = "resetting",
        /// The host is installed and part of an existing cluster.
        AddedToExistingCluster = "added-to-existing-cluster",
        /// The installation was cancelled.
        Cancelled = "cancelled",
        /// The host is bound to a cluster when its agent registers again.
        Binding = "binding",
        /// The host is unbound from its cluster when its agent registers again.
        Unbinding = "unbinding",
        /// The host is unbound and must boot the discovery image again; a user must act.
        UnbindingPendingUserAction = "unbinding-pending-user-action",
        /// The host can be bound to a cluster.
        KnownUnbound = "known-unbound",
        /// As `disconnected`.
        DisconnectedUnbound = "disconnected-unbound",
        /// As `insufficient`.
        InsufficientUnbound = "insufficient-unbound",
        /// As `disabled`.
        DisabledUnbound = "disabled-unbound",
        /// As `discovering`.
        DiscoveringUnbound = "discovering-unbound",
        /// The installed system downloads the files to boot the discovery image again.
        Reclaiming = "reclaiming",
        /// The host boots the discovery image again.
        ReclaimingRebooting = "reclaiming-rebooting",
    }

    /// Whether the host can read its boot media.
    #[schema(as = media_status)]
    pub MediaStatus {
        /// The boot media are readable.
        Connected = "connected",
        /// The boot media are not readable.
        Disconnected = "disconnected",
    }
}

/// The status text of a host that cannot read its discovery media.
pub(crate) const MEDIA_DISCONNECTED: &str = "Unable to read from the discovery media. It was either disconnected or poor network \
                                             conditions prevented it from being read. Try using the minimal ISO option and be \
                                             sure to keep the media connected until the installation is completed";

impl HostStatus {
    /// Returns the severity of the event for a change to this status.
    #[must_use]
    pub(crate) fn severity(self) -> Severity {
        match self {
            Self::Disconnected | Self::InstallingPendingUserAction | Self::Insufficient => Severity::Warning,
            Self::Error => Severity::Error,
            _ => Severity::Info,
        }
    }

    /// Returns `true` if the host is not bound to a cluster, and its status follows from check-ins and reports.
    #[must_use]
    pub(crate) fn is_in_pool(self) -> bool {
        matches!(
            self,
            Self::DiscoveringUnbound
                | Self::InsufficientUnbound
                | Self::KnownUnbound
                | Self::DisconnectedUnbound
        )
    }

    /// Returns `true` if the host is bound to a cluster, and its installation has not started.
    #[must_use]
    pub(crate) fn is_before_installation(self) -> bool {
        matches!(
            self,
            Self::Discovering | Self::Insufficient | Self::Known | Self::PendingForInput | Self::Disconnected
        )
    }

    /// Returns `true` if users can change the role, name and disks of the host.
    #[must_use]
    pub(crate) fn allows_changes(self) -> bool {
        self.is_in_pool() || self.is_before_installation() || self == Self::Binding
    }
}
