//! Table-driven tests of the host validations, with the hosts that they use.

use std::sync::Arc;

use assisted::host::HostStage;

use super::*;
use crate::summary::{DiskSummary, HostSummary, InventorySummary, RouteSummary, Truncation};
use crate::validation::definition::ValidationId;
use crate::validation::ignored::IgnoredValidations;
use crate::validation::outcome::{OutcomeStatus, ValidationOutcome as _};
use crate::validation::settings::{DisabledValidations, ValidationSettings};
use crate::view::HostView;

/// Returns a complete inventory report.
pub(in crate::validation) fn inventory() -> InventorySummary {
    InventorySummary {
        hostname: "node-1".into(),
        cpus: Some(4),
        physical_bytes: Some(16 << 30),
        routes: vec![default_route()],
        disks: vec![DiskSummary::default()],
        ..InventorySummary::default()
    }
}

pub(super) fn default_route() -> RouteSummary {
    let [destination, gateway] = ["0.0.0.0", "192.168.1.1"].map(|address| address.parse().ok());
    RouteSummary { destination, gateway, ..RouteSummary::default() }
}

pub(in crate::validation) fn host(inventory: Option<InventorySummary>) -> HostView {
    let (id, infra_env_id) = ("5ac2fc82-9fa9-4ea2-83ad-b3d3d0f1c6a1", "0c7d9d4f-96e8-4d2c-8a5d-0b0a7a3b7f01");
    let summary = HostSummary { inventory: inventory.map(Box::new), ..HostSummary::default() };
    let host = HostView::new(id.parse().unwrap(), infra_env_id.parse().unwrap());
    HostView { summary: Arc::new(summary), ..host }
}

/// Evaluates the validations of a host with one eligible disk.
pub(in crate::validation) fn evaluate(host: &HostView) -> HostResults {
    evaluate_with(host, &ValidationSettings::default())
}

pub(in crate::validation) fn evaluate_with(host: &HostView, settings: &ValidationSettings) -> HostResults {
    let minimum = MinimumHardware { cpu_cores: 2, ram_mib: 8192 };
    HostResults::evaluate(&HostInput { host, cluster: None, eligible_disks: 1, minimum, settings })
}

/// Returns settings that disable the validations with these comma-separated ids.
pub(in crate::validation) fn without(ids: &str) -> ValidationSettings {
    let disabled_host = DisabledValidations::parse::<HostValidationId>(ids).unwrap();
    ValidationSettings { disabled_host, ..ValidationSettings::default() }
}

pub(super) fn described(results: &HostResults, id: HostValidationId) -> (OutcomeStatus, String) {
    let description = results.outcome(id).unwrap().describe();
    (description.status, description.message.into_owned())
}

/// The outcome of a validation that does not apply, because the host has no cluster.
const HIDDEN: [(OutcomeStatus, &str); 2] = [(OutcomeStatus::Suppressed, ""); 2];

/// Statuses and messages recorded from the Assisted Installer: for a host without a cluster, before and after its
/// inventory report.
const RECORDED: &[(HostValidationId, [(OutcomeStatus, &str); 2])] = {
    use HostValidationId::*;
    use OutcomeStatus::{Failure, Pending, Success};
    &[
        (Connected, [(Success, "Host is connected"), (Success, "Host is connected")]),
        (MediaConnected, [(Success, "Media device is connected"), (Success, "Media device is connected")]),
        (
            HasInventory,
            [
                (Failure, "Inventory has not been received for the host"),
                (Success, "Valid inventory exists for the host"),
            ],
        ),
        (
            InventoryNotPartiallyTruncated,
            [(Pending, "Missing inventory"), (Success, "Inventory is not truncated")],
        ),
        (
            InventoryNotFullyTruncated,
            [(Pending, "Missing inventory"), (Success, "Inventory is not truncated")],
        ),
        (HasMinCpuCores, [(Pending, "Missing inventory"), (Success, "Sufficient CPU cores")]),
        (HasMinMemory, [(Pending, "Missing inventory"), (Success, "Sufficient minimum RAM")]),
        (HasMinValidDisks, [(Pending, "Missing inventory"), (Success, "Sufficient disk capacity")]),
        (MachineCidrDefined, HIDDEN),
        (HostnameUnique, HIDDEN),
        (BelongsToMachineCidr, HIDDEN),
        (HostnameValid, [(Failure, "Missing inventory"), (Success, "Hostname node-1 is allowed")]),
        (BelongsToMajorityGroup, HIDDEN),
        (
            HasDefaultRoute,
            [
                (Pending, "Missing default routing information."),
                (Success, "Host has been configured with at least one default route."),
            ],
        ),
    ]
};

#[test]
fn outcomes_match_the_recordings() {
    let results = [evaluate(&host(None)), evaluate(&host(Some(inventory())))];
    assert_eq!(RECORDED.iter().map(|(id, _)| *id).collect::<Vec<_>>(), HostValidationId::ALL);
    for (id, expected) in RECORDED {
        for (results, (status, message)) in results.iter().zip(expected) {
            assert_eq!(described(results, *id), (*status, (*message).to_owned()), "{id}");
        }
    }
}

/// Checks one outcome of a host with a modified inventory report.
fn assert_outcome(
    change: impl FnOnce(&mut InventorySummary),
    id: HostValidationId,
    expected: (OutcomeStatus, &str),
) {
    let mut inventory = inventory();
    change(&mut inventory);
    let results = evaluate(&host(Some(inventory)));
    assert_eq!(described(&results, id), (expected.0, expected.1.to_owned()), "{id}");
}

#[test]
fn hardware_below_the_minimum_fails() {
    use HostValidationId::{HasMinCpuCores, HasMinMemory, HasMinValidDisks};
    use OutcomeStatus::{Error, Failure, Success};
    let cores = "The host is not eligible to participate in Openshift Cluster because the minimum required CPU cores \
        for any role is 2, found only ";
    assert_outcome(|it| it.cpus = Some(2), HasMinCpuCores, (Success, "Sufficient CPU cores"));
    assert_outcome(|it| it.cpus = Some(1), HasMinCpuCores, (Failure, &format!("{cores}1")));
    assert_outcome(|it| it.cpus = None, HasMinCpuCores, (Failure, &format!("{cores}0")));

    let memory = "The host is not eligible to participate in Openshift Cluster because the minimum required RAM for \
        any role is 8.00 GiB, found only ";
    let too_little = format!("{memory}6.00 GiB");
    assert_outcome(
        |it| it.physical_bytes = Some(8092 << 20),
        HasMinMemory,
        (Success, "Sufficient minimum RAM"),
    );
    assert_outcome(|it| it.physical_bytes = Some(6 << 30), HasMinMemory, (Failure, &too_little));
    assert_outcome(|it| it.physical_bytes = None, HasMinMemory, (Failure, &format!("{memory}0 bytes")));
    let meminfo = |it: &mut InventorySummary| {
        (it.physical_bytes, it.memory_is_meminfo) = (Some(7931 << 20), true);
    };
    assert_outcome(meminfo, HasMinMemory, (Success, "Sufficient minimum RAM"));

    assert_outcome(|it| it.disks.clear(), HasMinValidDisks, (Error, "Failed to detected disks"));
}

#[test]
fn ineligible_disks_fail() {
    let (host, settings) = (host(Some(inventory())), ValidationSettings::default());
    let minimum = MinimumHardware { cpu_cores: 2, ram_mib: 8192 };
    let input = HostInput { host: &host, cluster: None, eligible_disks: 0, minimum, settings: &settings };
    let message =
        "No eligible disks were found, please check specific disks to see why they are not eligible";
    let outcome = described(&HostResults::evaluate(&input), HostValidationId::HasMinValidDisks);
    assert_eq!(outcome, (OutcomeStatus::Failure, message.to_owned()));
}

#[test]
fn truncated_report_fails_with_the_reasons_of_the_agent() {
    use HostValidationId::{InventoryNotFullyTruncated, InventoryNotPartiallyTruncated};
    use OutcomeStatus::{Error, Failure, Success};
    let unknown = (Error, "Unexpected inventory truncation type");
    let complete = (Success, "Inventory is not truncated");
    for (extent, partially, fully) in [
        ("", complete, complete),
        (
            "partial",
            (Failure, "Inventory is truncated (partial): one; two"),
            (Success, "Inventory is partially truncated"),
        ),
        (
            "full",
            (Success, "Inventory is not partially truncated"),
            (Failure, "Inventory is truncated (full): one; two"),
        ),
        ("other", unknown, unknown),
    ] {
        let truncate = |it: &mut InventorySummary| {
            it.truncation = Some(Truncation { extent: extent.into(), reasons: "one; two".into() });
        };
        assert_outcome(truncate, InventoryNotPartiallyTruncated, partially);
        assert_outcome(truncate, InventoryNotFullyTruncated, fully);
    }
}

#[test]
fn effective_host_name_is_checked() {
    use OutcomeStatus::{Failure, Success};
    let pattern =
        "is forbidden, hostname should match pattern ^[a-z0-9][a-z0-9-]{0,62}(?:[.][a-z0-9-]{1,63})*$";
    for (name, status, message) in [
        ("", Failure, format!("Hostname  {pattern}")),
        ("Upper", Failure, format!("Hostname Upper {pattern}")),
        ("localhost.localdomain", Failure, "The host name localhost.localdomain is forbidden".to_owned()),
        ("node-2", Success, "Hostname node-2 is allowed".to_owned()),
    ] {
        assert_outcome(|it| it.hostname = name.into(), HostValidationId::HostnameValid, (status, &message));
    }
    let renamed = HostView { requested_hostname: "other".into(), ..host(Some(inventory())) };
    let outcome = described(&evaluate(&renamed), HostValidationId::HostnameValid);
    assert_eq!(outcome, (Success, "Hostname other is allowed".to_owned()));
    let unknown = HostView { requested_hostname: "other".into(), ..host(None) };
    let outcome = described(&evaluate(&unknown), HostValidationId::HostnameValid);
    assert_eq!(outcome, (Failure, "Missing inventory".to_owned()));
}

#[test]
fn host_without_check_ins_is_connected_only_after_its_reboot() {
    let outcome = |stage: Option<HostStage>, is_connected: bool| {
        let host = HostView { stage, is_connected, ..host(Some(inventory())) };
        described(&evaluate(&host), HostValidationId::Connected).1
    };
    for stage in [None, Some(HostStage::Starting), Some(HostStage::WaitingForController)] {
        assert_eq!(outcome(stage, false), "Host is disconnected", "{stage:?}");
        assert_eq!(outcome(stage, true), "Host is connected", "{stage:?}");
    }
    for stage in [HostStage::Rebooting, HostStage::WaitingForIgnition, HostStage::Joined, HostStage::Failed] {
        assert_eq!(outcome(Some(stage), false), "Host is connected", "{stage}");
    }
}

#[test]
fn lost_media_use_the_status_text() {
    let host = HostView { has_media: false, ..host(Some(inventory())) };
    let expected = (OutcomeStatus::Failure, crate::host::status::MEDIA_DISCONNECTED.to_owned());
    assert_eq!(described(&evaluate(&host), HostValidationId::MediaConnected), expected);
}

#[test]
fn outcomes_with_different_minimums_differ() {
    let cores = |minimum, count| {
        HostOutcome::from(has_min_cpu_cores::MinCpuCoresOutcome::TooFew { minimum, found: count })
    };
    let memory = |minimum_mib, found_bytes| {
        HostOutcome::from(has_min_memory::MinMemoryOutcome::TooLittle { minimum_mib, found_bytes })
    };
    assert!(cores(2, 1).has_same_items(&cores(2, 0)) && !cores(2, 1).has_same_items(&cores(4, 1)));
    assert!(
        memory(8192, 1).has_same_items(&memory(8192, 2)) && !memory(8192, 1).has_same_items(&memory(8193, 1))
    );
}

#[test]
fn every_unsuccessful_outcome_has_a_remedy() {
    for id in HostValidationId::ALL {
        let samples = HostOutcome::samples(*id);
        assert!(samples.iter().any(|it| it.describe().status == OutcomeStatus::Success), "{id}");
        assert!(samples.iter().any(|it| it.describe().remedy.is_some()), "{id}");
        for sample in samples {
            let description = sample.describe();
            assert_eq!(sample.id(), *id);
            let is_success = matches!(description.status, OutcomeStatus::Success | OutcomeStatus::Suppressed);
            assert_eq!(description.remedy.is_some(), !is_success, "{sample:?}");
        }
    }
}

#[test]
fn groups_require_their_validations() {
    let none = IgnoredValidations::none();
    let satisfied = |results: &HostResults| {
        use HostGroup::*;
        [Connection, ValidInventory, MinimumHardware, RequiredInput, SufficientForInstall, Unbound]
            .map(|group| results.satisfies(group, &none))
    };
    assert_eq!(satisfied(&evaluate(&host(Some(inventory())))), [true; 6]);
    assert_eq!(satisfied(&evaluate(&host(None))), [true, false, false, true, false, false]);
    let small = InventorySummary { cpus: Some(1), ..inventory() };
    assert_eq!(satisfied(&evaluate(&host(Some(small)))), [true, true, false, true, true, false]);
    let unnamed = InventorySummary { hostname: "localhost".into(), ..inventory() };
    assert_eq!(satisfied(&evaluate(&host(Some(unnamed)))), [true, true, true, true, false, false]);
    let silent = HostView { is_connected: false, ..host(Some(inventory())) };
    assert_eq!(satisfied(&evaluate(&silent)), [false, true, true, true, true, true]);
}
