//! Kinds, statuses and boot media states of hosts.

use crate::string_enum::string_enum;

string_enum! {
    /// Kind of the host.
    #[derive(Default)]
    HostKind as host_kind {
        /// A host of a cluster to be installed, or of no cluster.
        #[default]
        Host = "Host",
        /// A host that joins an existing cluster.
        Joining = "AddToExistingClusterHost",
    }

    /// Status of a host. A host whose status ends in `-unbound` belongs to no cluster.
    HostStatus as host_status {
        /// The agent runs, and has not sent an inventory report yet.
        Discovering = "discovering",
        /// Ready to be installed.
        Known = "known",
        /// The host lost its connection, or cannot read its boot media.
        Disconnected = "disconnected",
        /// The host fails a validation that its installation requires.
        Insufficient = "insufficient",
        /// Not used. Kept for clients that parse the value.
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
        /// Like `disconnected`, for a host without a cluster.
        DisconnectedUnbound = "disconnected-unbound",
        /// Like `insufficient`, for a host without a cluster.
        InsufficientUnbound = "insufficient-unbound",
        /// Like `disabled`, for a host without a cluster.
        DisabledUnbound = "disabled-unbound",
        /// Like `discovering`, for a host without a cluster.
        DiscoveringUnbound = "discovering-unbound",
        /// The installed system downloads the files that it needs to boot the discovery image again.
        Reclaiming = "reclaiming",
        /// The host boots the discovery image again.
        ReclaimingRebooting = "reclaiming-rebooting",
    }

    /// Whether the host can read its boot media.
    MediaStatus as media_status {
        /// The boot media are readable.
        Connected = "connected",
        /// The boot media are not readable.
        Disconnected = "disconnected",
    }
}
