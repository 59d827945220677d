//! Tests the results of hosts, and the results of a sample registry whose validations have properties that host
//! validations lack.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::*;
use crate::summary::InventorySummary;
use crate::validation::definition::{ValidationDefinition, ValidationId};
use crate::validation::host::tests::{evaluate, evaluate_with, host, inventory, without};
use crate::validation::host::{HostGroup, HostResults, HostValidationId};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome, ValidationInput, registry};
use crate::validation::settings::DisabledValidations;
use crate::view::HostView;

/// The outcome of sample validation `N`. The validation is in the network category if `N` is a multiple of 3, and
/// otherwise in the operators category.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum SampleOutcome<const N: u8> {
    Passed,
    Suppressed,
    Failed,
    Pending,
}

/// The outcome that all sample validations share.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleInput<'a>(&'a SampleOutcome<0>);

impl<Id> ValidationInput<Id> for SampleInput<'_> {
    fn is_disabled(&self, _: Id) -> bool {
        false
    }

    fn is_hidden(&self, _: Id) -> bool {
        false
    }
}

impl<const N: u8> TypedOutcome for SampleOutcome<N> {
    type Group = ();
    type Input<'a> = SampleInput<'a>;

    const DEFINITION: ValidationDefinition<()> = ValidationDefinition {
        category: if N.is_multiple_of(3) {
            ValidationCategory::Network
        } else {
            ValidationCategory::Operators
        },
        groups: &[],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "",
        passes_if: "",
    };

    fn evaluate(input: &SampleInput<'_>) -> Self {
        match input.0 {
            SampleOutcome::Passed => Self::Passed,
            SampleOutcome::Suppressed => Self::Suppressed,
            SampleOutcome::Failed => Self::Failed,
            SampleOutcome::Pending => Self::Pending,
        }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Passed => OutcomeDescription::success("passed"),
            Self::Suppressed => {
                OutcomeDescription { status: OutcomeStatus::Suppressed, ..OutcomeDescription::success("") }
            }
            Self::Failed => OutcomeDescription::failure(format!("failed {}", 9 - N), "repair it"),
            Self::Pending => OutcomeDescription::pending("pending", "wait"),
        }
    }

    fn samples() -> Vec<Self> {
        vec![]
    }
}

registry! {
    pub(super) ids: SampleId,
    outcomes: AnySampleOutcome,
    group: (),
    input: SampleInput,
    order: ListOrder::Computing,
    unimplemented: &[],
    validations: {
        Second = "second", SampleOutcome<0>, "A sample in the network category.";
        ZOperator = "z-requirements-satisfied", SampleOutcome<1>, "A sample in the operators category.";
        AOperator = "a-requirements-satisfied", SampleOutcome<2>, "Another sample in the operators category.";
    }
}

registry! {
    pub(super) ids: SortedId,
    outcomes: SortedOutcome,
    group: (),
    input: SampleInput,
    order: ListOrder::ById,
    unimplemented: &[],
    validations: {
        Second = "second", SampleOutcome<0>, "A sample in the network category.";
        First = "first", SampleOutcome<3>, "Another sample in the network category.";
    }
}

fn samples(outcome: SampleOutcome<0>) -> ValidationResults<AnySampleOutcome> {
    ValidationResults::evaluate(&SampleInput(&outcome))
}

fn ignored<Id: ValidationId>(text: &str) -> IgnoredValidations<Id> {
    IgnoredValidations::parse(text).unwrap()
}

fn shown_ids<O: ValidationOutcome>(results: &ValidationResults<O>) -> Vec<(&'static str, Vec<String>)> {
    let ids = |list: Vec<Validation>| list.into_iter().map(|it| it.id).collect();
    results.shown().into_iter().map(|(category, list)| (category, ids(list))).collect()
}

#[test]
fn validations_of_a_category_are_in_computing_order() {
    let json = serde_json::to_string(&evaluate(&host(None)).shown()).unwrap();
    // The JSON recorded from the Assisted Installer for these validations of a host without an inventory report.
    let expected = concat!(
        r#"{"hardware":["#,
        r#"{"id":"has-inventory","status":"failure","message":"Inventory has not been received for the host"},"#,
        r#"{"id":"inventory-not-partially-truncated","status":"pending","message":"Missing inventory"},"#,
        r#"{"id":"inventory-not-fully-truncated","status":"pending","message":"Missing inventory"},"#,
        r#"{"id":"has-min-cpu-cores","status":"pending","message":"Missing inventory"},"#,
        r#"{"id":"has-min-memory","status":"pending","message":"Missing inventory"},"#,
        r#"{"id":"has-min-valid-disks","status":"pending","message":"Missing inventory"},"#,
        r#"{"id":"hostname-valid","status":"failure","message":"Missing inventory"}],"#,
        r#""network":["#,
        r#"{"id":"connected","status":"success","message":"Host is connected"},"#,
        r#"{"id":"media-connected","status":"success","message":"Media device is connected"},"#,
        r#"{"id":"has-default-route","status":"pending","message":"Missing default routing information."}]}"#,
    );
    assert_eq!(json, expected);
}

#[test]
fn operators_are_sorted_by_id() {
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let operators = ids(&["a-requirements-satisfied", "z-requirements-satisfied"]);
    let expected = vec![("network", ids(&["second"])), ("operators", operators)];
    assert_eq!(shown_ids(&samples(SampleOutcome::Pending)), expected);
}

#[test]
fn registry_with_order_by_id_is_sorted() {
    let results = ValidationResults::<SortedOutcome>::evaluate(&SampleInput(&SampleOutcome::Passed));
    assert_eq!(shown_ids(&results), [("network", vec!["first".to_owned(), "second".to_owned()])]);
}

#[test]
fn suppressed_validations_are_satisfied_and_hidden() {
    let results = samples(SampleOutcome::Suppressed);
    assert!(results.shown().is_empty());
    assert!(results.is_satisfied(SampleId::Second, &IgnoredValidations::none()));
}

#[test]
fn operators_are_satisfied_only_by_a_success() {
    for (outcome, expected) in [(SampleOutcome::Passed, true), (SampleOutcome::Suppressed, false)] {
        let results = samples(outcome);
        assert_eq!(results.is_satisfied(SampleId::AOperator, &IgnoredValidations::none()), expected);
        // Clients do not see a suppressed validation, so users cannot ignore it.
        assert_eq!(results.is_satisfied(SampleId::AOperator, &ignored(r#"["all"]"#)), expected);
    }
}

#[test]
fn connection_validations_are_hidden_after_the_reboot() {
    for stage in assisted::host::HostStage::ALL {
        let results = evaluate(&HostView { stage: Some(*stage), ..host(Some(inventory())) });
        let is_hidden =
            ["Rebooting", "Waiting for ignition", "Configuring", "Joined", "Done"].contains(&stage.as_str());
        let visible = shown_ids(&results);
        for id in ["connected", "media-connected"] {
            let is_shown = visible.iter().any(|(_, ids)| ids.iter().any(|visible| visible == id));
            assert_eq!(is_shown, !is_hidden, "{stage} {id}");
        }
        assert!(results.satisfies(HostGroup::Connection, &IgnoredValidations::none()), "{stage}");
    }
}

#[test]
fn ignored_validations_are_satisfied_but_keep_their_status() {
    let results = evaluate(&host(Some(InventorySummary { cpus: Some(1), ..inventory() })));
    let id = HostValidationId::HasMinCpuCores;
    for (list, expected) in [
        ("", false),
        ("[]", false),
        (r#"["has-min-memory"]"#, false),
        (r#"["has-min-cpu-cores"]"#, true),
        (r#"["all"]"#, true),
    ] {
        assert_eq!(results.is_satisfied(id, &ignored(list)), expected, "{list}");
        assert_eq!(results.satisfies(HostGroup::MinimumHardware, &ignored(list)), expected, "{list}");
    }
    assert_eq!(results.outcome(id).unwrap().describe().status, OutcomeStatus::Failure);
    let missing = evaluate(&host(None));
    assert!(!missing.is_satisfied(HostValidationId::HasInventory, &ignored(r#"["all","has-inventory"]"#)));
}

#[test]
fn hidden_validations_cannot_be_ignored() {
    let id = HostValidationId::MediaConnected;
    let lost = HostView { has_media: false, ..host(None) };
    let rebooting = HostView { stage: Some(assisted::host::HostStage::Rebooting), ..lost.clone() };
    assert!(evaluate(&lost).is_satisfied(id, &ignored(r#"["all"]"#)));
    assert!(!evaluate(&rebooting).is_satisfied(id, &ignored(r#"["all"]"#)));
    assert_eq!(evaluate(&lost).failing_messages().len(), evaluate(&rebooting).failing_messages().len() + 1);
}

#[test]
fn disabled_validations_are_satisfied_and_shown() {
    let settings = without("has-inventory,connected");
    let results = evaluate_with(&host(None), &settings);
    let id = HostValidationId::HasInventory;
    assert!(results.is_satisfied(id, &IgnoredValidations::none()));
    let first = results.shown()["hardware"].first().unwrap().clone();
    assert_eq!(
        (first.id.as_str(), first.message.as_str()),
        (id.as_str(), "Validation disabled by configuration")
    );
    assert_eq!(serde_json::to_value(first.status).unwrap(), "disabled");
    assert_eq!(results.failing_messages(), ["Missing inventory"]);
}

#[test]
fn operator_requirements_cannot_be_disabled() {
    let disabled = DisabledValidations::parse::<SampleId>("second,a-requirements-satisfied").unwrap();
    assert!(disabled.contains(SampleId::Second) && !disabled.contains(SampleId::AOperator));
}

#[test]
fn failing_messages_are_sorted_and_exclude_pending() {
    let missing = evaluate(&host(None)).failing_messages();
    assert_eq!(missing, ["Inventory has not been received for the host", "Missing inventory"]);
    let failing = samples(SampleOutcome::Failed).failing_messages();
    assert_eq!(failing, ["failed 7", "failed 8", "failed 9"]);
    // Status `error` does not count as a failure.
    let without_disks = InventorySummary { disks: vec![], ..inventory() };
    assert!(evaluate(&host(Some(without_disks))).failing_messages().is_empty());
}

#[test]
fn different_numbers_are_the_same_outcomes() {
    let with = |change: fn(&mut InventorySummary)| -> HostResults {
        let mut inventory = InventorySummary { cpus: Some(1), physical_bytes: Some(6 << 30), ..inventory() };
        change(&mut inventory);
        evaluate(&host(Some(inventory)))
    };
    let before = with(|_| ());
    let other_numbers = with(|it| (it.cpus, it.physical_bytes) = (Some(0), Some(5 << 30)));
    assert!(before != other_numbers && before.has_same_outcomes(&other_numbers));
    assert!(before.has_same_outcomes(&with(|it| it.disks.push(crate::summary::DiskSummary::default()))));
    for change in [
        |it: &mut InventorySummary| it.cpus = Some(2),
        |it: &mut InventorySummary| it.hostname = "node-2".into(),
        |it: &mut InventorySummary| it.disks.clear(),
    ] {
        assert!(!before.has_same_outcomes(&with(change)));
    }
}

#[test]
fn hidden_and_missing_validations_change_outcomes() {
    let before = evaluate(&host(None));
    let rebooting = HostView { stage: Some(assisted::host::HostStage::Rebooting), ..host(None) };
    assert!(!before.has_same_outcomes(&evaluate(&rebooting)));
    assert!(!before.has_same_outcomes(&HostResults::default()));
    assert!(!HostResults::default().is_satisfied(HostValidationId::Connected, &ignored(r#"["all"]"#)));
}

#[test]
fn ignored_list_of_the_cluster_overrides_disabled_validations() {
    let settings = without("has-inventory");
    let host = host(None);
    for (list, is_disabled) in [("", true), ("[]", false)] {
        let cluster = crate::view::ClusterView { cluster: Arc::new(cluster_settings(list)), hosts: vec![] };
        let minimum = crate::validation::host::MinimumHardware { cpu_cores: 2, ram_mib: 8192 };
        let results = HostResults::evaluate(&crate::validation::HostInput {
            host: &host,
            cluster: Some(crate::validation::host::HostCluster {
                view: &cluster,
                peers: &crate::cluster::peer_facts::PeerFacts::new(&cluster),
            }),
            eligible_disks: 0,
            minimum,
            settings: &settings,
        });
        let status = results.outcome(HostValidationId::HasInventory).unwrap().describe().status;
        assert_eq!(status == OutcomeStatus::Disabled, is_disabled, "{list:?}");
    }
}

fn cluster_settings(ignored_host_validations: &str) -> crate::view::ClusterSettings {
    crate::view::ClusterSettings {
        ignored_host_validations: ignored_host_validations.into(),
        ..crate::view::ClusterSettings::new("5ac2fc82-9fa9-4ea2-83ad-b3d3d0f1c6a2".parse().unwrap())
    }
}
