//! What state a host is in.

use super::string_enum::string_enum;
use crate::inventory::event::Severity;

string_enum! {
    /// What kind of host it is.
    #[derive(Default)]
    #[schema(as = host_kind)]
    HostKind {
        /// One of a cluster to be, or of none.
        #[default]
        Host = "Host",
        /// One that joins a cluster that is there already.
        Joining = "AddToExistingClusterHost",
    }

    /// The state of a host. Those in `-unbound` belong to no cluster.
    #[schema(as = host_status)]
    HostStatus {
        /// It runs the agent, and has not said yet what it is made of.
        Discovering = "discovering",
        /// It can be installed.
        Known = "known",
        /// It is silent, or cannot read what it booted from.
        Disconnected = "disconnected",
        /// Something that it needs is missing.
        Insufficient = "insufficient",
        /// Not used; kept for clients that know the word.
        Disabled = "disabled",
        /// Its disk and its images are being tried.
        PreparingForInstallation = "preparing-for-installation",
        /// They are no good.
        PreparingFailed = "preparing-failed",
        /// They are good.
        PreparingSuccessful = "preparing-successful",
        /// The cluster lacks something that only a person can say.
        PendingForInput = "pending-for-input",
        /// It was told to install.
        Installing = "installing",
        /// It installs.
        InstallingInProgress = "installing-in-progress",
        /// It should have booted its disk and did not.
        InstallingPendingUserAction = "installing-pending-user-action",
        /// It has to boot the image once more.
        ResettingPendingUserAction = "resetting-pending-user-action",
        /// It is done.
        Installed = "installed",
        /// It failed.
        Error = "error",
        /// It is on its way back.
        Resetting = "resetting",
        /// It is done, and part of a cluster that was there before.
        AddedToExistingCluster = "added-to-existing-cluster",
        /// Somebody stopped its installation.
        Cancelled = "cancelled",
        /// It becomes part of a cluster as soon as its agent registers again.
        Binding = "binding",
        /// It leaves its cluster as soon as its agent registers again.
        Unbinding = "unbinding",
        /// It left its cluster, and has to boot the image once more.
        UnbindingPendingUserAction = "unbinding-pending-user-action",
        /// It can become part of a cluster.
        KnownUnbound = "known-unbound",
        /// As `disconnected`.
        DisconnectedUnbound = "disconnected-unbound",
        /// As `insufficient`.
        InsufficientUnbound = "insufficient-unbound",
        /// As `disabled`.
        DisabledUnbound = "disabled-unbound",
        /// As `discovering`.
        DiscoveringUnbound = "discovering-unbound",
        /// An installed system fetches what it needs to boot the image again.
        Reclaiming = "reclaiming",
        /// It boots the image again.
        ReclaimingRebooting = "reclaiming-rebooting",
    }

    /// Whether the agent can read what it booted from.
    #[schema(as = media_status)]
    MediaStatus {
        /// It can.
        Connected = "connected",
        /// It cannot.
        Disconnected = "disconnected",
    }
}

impl HostStatus {
    /// How bad it is that a host comes into this state.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::Disconnected | Self::InstallingPendingUserAction | Self::Insufficient => Severity::Warning,
            Self::Error => Severity::Error,
            _ => Severity::Info,
        }
    }

    /// Whether its agent is looked at from outside: it belongs to no cluster, and nothing is done with it.
    #[must_use]
    pub fn is_in_pool(self) -> bool {
        matches!(
            self,
            Self::DiscoveringUnbound
                | Self::InsufficientUnbound
                | Self::KnownUnbound
                | Self::DisconnectedUnbound
        )
    }

    /// Whether it belongs to a cluster that does not install it yet.
    #[must_use]
    pub fn is_before_installation(self) -> bool {
        matches!(
            self,
            Self::Discovering | Self::Insufficient | Self::Known | Self::PendingForInput | Self::Disconnected
        )
    }

    /// Whether users may still choose its role, its name and its disks.
    #[must_use]
    pub fn lets_choose(self) -> bool {
        self.is_in_pool() || self.is_before_installation() || self == Self::Binding
    }

    /// Whether it is being installed: it may not leave its cluster.
    #[must_use]
    pub fn is_installing(self) -> bool {
        matches!(
            self,
            Self::PreparingForInstallation
                | Self::PreparingFailed
                | Self::PreparingSuccessful
                | Self::Installing
                | Self::InstallingInProgress
                | Self::InstallingPendingUserAction
        )
    }
}
