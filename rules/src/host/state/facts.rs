//! The facts that the status rules of hosts read, by event.

use assisted::host::HostStage;

use crate::validation::host::HostGroup;
use crate::validation::{HostResults, HostValidationId, IgnoredValidations};
use crate::view::HostView;

/// The facts that decide the effect of a registration.
#[derive(Clone, Copy, Debug)]
pub struct RegistrationFacts<'a> {
    /// The current stage of the installation. `None` if the installer has not reported one.
    pub stage: Option<HostStage>,
    /// `true` if the host joins an existing cluster.
    pub joins: bool,
    /// `true` if the infra-env of the host is bound to a cluster.
    pub has_bound_infra_env: bool,
    /// The selected installation disk, in the form that the host's console shows. `None` if the inventory report does
    /// not contain the disk.
    pub installation_disk: Option<&'a str>,
}

/// The facts that decide the effect of lost boot media.
#[derive(Clone, Copy, Debug)]
pub struct MediaLoss<'a> {
    /// The current status text. May be empty.
    pub status_info: &'a str,
}

/// An installation stage, as reported by the installer.
#[derive(Clone, Copy, Debug)]
pub struct StageReport<'a> {
    /// The stage that the host has entered.
    pub stage: HostStage,
    /// The message of the installer. May be empty.
    pub message: &'a str,
    /// `true` if the host joins an existing cluster.
    pub joins: bool,
}

/// The facts that decide the status of a host in a cluster, before its installation.
#[derive(Clone, Copy, Debug)]
pub struct HostConclusions<'a> {
    /// The agent has checked in recently.
    pub(super) is_connected: bool,
    /// The boot media are readable, according to the latest report of the agent.
    pub(super) has_media: bool,
    /// A usable inventory report is stored.
    pub(super) has_valid_inventory: bool,
    /// The host has the CPU cores, memory and disks that every role needs.
    pub(super) has_minimum_hardware: bool,
    /// The user has provided the settings on which the host's validations depend.
    pub(super) has_required_input: bool,
    /// No other validation blocks the installation.
    pub(super) is_sufficient: bool,
    /// Results of the validations. The status text quotes the messages of the failing ones.
    pub(super) results: &'a HostResults,
}

impl<'a> HostConclusions<'a> {
    /// Derives the facts from the validation results of a host.
    #[must_use]
    pub fn new(
        host: &HostView,
        results: &'a HostResults,
        ignored: &IgnoredValidations<HostValidationId>,
    ) -> Self {
        let satisfies = |group| results.satisfies(group, ignored);
        Self {
            is_connected: host.is_connected,
            has_media: host.has_media,
            has_valid_inventory: satisfies(HostGroup::ValidInventory),
            has_minimum_hardware: satisfies(HostGroup::MinimumHardware),
            has_required_input: satisfies(HostGroup::RequiredInput),
            is_sufficient: satisfies(HostGroup::SufficientForInstall),
            results,
        }
    }
}

/// The facts that decide the status of a host without a cluster.
#[derive(Clone, Copy, Debug)]
pub struct PoolConclusions<'a> {
    /// The agent has checked in recently.
    pub(super) is_connected: bool,
    /// The boot media are readable, according to the latest report of the agent.
    pub(super) has_media: bool,
    /// A usable inventory report is stored.
    pub(super) has_valid_inventory: bool,
    /// The host can be bound to a cluster.
    pub(super) is_bindable: bool,
    /// Results of the validations. The status text quotes the messages of the failing ones.
    pub(super) results: &'a HostResults,
}

impl<'a> PoolConclusions<'a> {
    /// Derives the facts from the validation results of a host.
    #[must_use]
    pub fn new(
        host: &HostView,
        results: &'a HostResults,
        ignored: &IgnoredValidations<HostValidationId>,
    ) -> Self {
        Self {
            is_connected: host.is_connected,
            has_media: host.has_media,
            has_valid_inventory: results.satisfies(HostGroup::ValidInventory, ignored),
            is_bindable: results.satisfies(HostGroup::Unbound, ignored),
            results,
        }
    }
}
