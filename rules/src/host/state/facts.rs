//! The facts that the rules of each event read.

use assisted::host::HostStage;

use crate::validation::host::HostGroup;
use crate::validation::{HostResults, HostValidationId, IgnoredValidations};
use crate::view::HostView;

/// What a registration means depends on these facts.
#[derive(Clone, Copy, Debug)]
pub struct RegistrationFacts<'a> {
    /// The current stage of the installation.
    pub stage: Option<HostStage>,
    /// The host joins an existing cluster.
    pub joins: bool,
    /// The infra-env is bound to a cluster.
    pub has_bound_infra_env: bool,
    /// The chosen installation disk as the console of the host shows it, if the inventory report has it.
    pub installation_disk: Option<&'a str>,
}

/// What the loss of the boot media means depends on these facts.
#[derive(Clone, Copy, Debug)]
pub struct MediaLoss<'a> {
    /// The status text so far. May be empty.
    pub status_info: &'a str,
}

/// A stage that the installer reports.
#[derive(Clone, Copy, Debug)]
pub struct StageReport<'a> {
    /// The stage.
    pub stage: HostStage,
    /// The message of the installer. May be empty.
    pub message: &'a str,
    /// The host joins an existing cluster.
    pub joins: bool,
}

/// The conclusions that decide the status of a host with a cluster, before its installation.
#[derive(Clone, Copy, Debug)]
pub struct HostConclusions<'a> {
    /// It has checked in recently.
    pub(super) is_connected: bool,
    /// It can read its boot media, as far as its agent has reported.
    pub(super) has_media: bool,
    /// A usable inventory report is stored.
    pub(super) has_valid_inventory: bool,
    /// It has the processors, memory and disks that every role needs.
    pub(super) has_minimum_hardware: bool,
    /// The user has made the settings that it depends on.
    pub(super) has_required_input: bool,
    /// No other validation blocks its installation.
    pub(super) is_sufficient: bool,
    /// For the messages of failing validations.
    pub(super) results: &'a HostResults,
}

impl<'a> HostConclusions<'a> {
    /// Returns the conclusions from the results of a host.
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

/// The conclusions that decide the status of a host without a cluster.
#[derive(Clone, Copy, Debug)]
pub struct PoolConclusions<'a> {
    /// It has checked in recently.
    pub(super) is_connected: bool,
    /// It can read its boot media, as far as its agent has reported.
    pub(super) has_media: bool,
    /// A usable inventory report is stored.
    pub(super) has_valid_inventory: bool,
    /// It can be bound to a cluster.
    pub(super) is_bindable: bool,
    /// For the messages of failing validations.
    pub(super) results: &'a HostResults,
}

impl<'a> PoolConclusions<'a> {
    /// Returns the conclusions from the results of a host.
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
