use assisted::host::HostStage;

use super::*;
use crate::validation::host::HostResults;
use crate::validation::host::tests::{evaluate, evaluate_with, host, inventory, without};

fn messages(before: &HostView, after: &HostView) -> Vec<String> {
    let changes = changes(Some(&evaluate(before)), &evaluate(after));
    changes.iter().map(|change| change.event(after).message).collect()
}

#[test]
fn events_match_the_recordings() {
    let connected = host(Some(inventory()));
    let disconnected = HostView { is_connected: false, ..connected.clone() };
    let failed = changes(Some(&evaluate(&connected)), &evaluate(&disconnected));
    let event =
        |message: &str, name, severity| ValidationEvent { name, severity, message: message.to_owned() };
    assert_eq!(
        failed.iter().map(|it| it.event(&disconnected)).collect::<Vec<_>>(),
        [event(
            "Host node-1: validation 'connected' that used to succeed is now failing",
            "host_validation_failed",
            Severity::Warning
        )]
    );
    let fixed = changes(Some(&evaluate(&disconnected)), &evaluate(&connected));
    assert_eq!(
        fixed.iter().map(|it| it.event(&connected)).collect::<Vec<_>>(),
        [event("Host node-1: validation 'connected' is now fixed", "host_validation_fixed", Severity::Info)]
    );
}

#[test]
fn pending_validations_have_no_event_until_they_fail() {
    let unknown = host(None);
    let reported = host(Some(inventory()));
    assert_eq!(
        messages(&unknown, &reported),
        [
            "Host node-1: validation 'has-inventory' is now fixed",
            "Host node-1: validation 'hostname-valid' is now fixed",
        ]
    );
    let small = host(Some(crate::summary::InventorySummary { cpus: Some(1), ..inventory() }));
    let failed = messages(&unknown, &small);
    assert!(failed.contains(&"Host node-1: validation 'has-min-cpu-cores' failed".to_owned()), "{failed:?}");
    assert!(messages(&reported, &reported).is_empty());
    assert!(messages(&unknown, &unknown).is_empty());
}

#[test]
fn message_uses_the_id_of_a_host_without_a_name() {
    let unknown = host(None);
    let expected =
        format!("Host {}: validation 'has-inventory' that used to succeed is now failing", unknown.id);
    assert_eq!(messages(&host(Some(inventory())), &unknown).first(), Some(&expected));
}

#[test]
fn first_results_have_no_events() {
    let results = evaluate(&host(None));
    assert!(changes(None, &results).is_empty());
    assert!(changes(Some(&HostResults::default()), &results).is_empty());
}

#[test]
fn hidden_validations_have_no_events() {
    let lost = HostView { has_media: false, ..host(Some(inventory())) };
    let rebooting = HostView { stage: Some(HostStage::Rebooting), ..host(Some(inventory())) };
    assert!(messages(&lost, &rebooting).is_empty());
    assert!(messages(&rebooting, &lost).is_empty());
}

#[test]
fn failing_validation_disabled_by_the_operator_is_not_fixed() {
    let host = host(None);
    let off = evaluate_with(&host, &without("has-inventory"));
    let on = evaluate(&host);
    assert!(changes(Some(&on), &off).is_empty());
    let failed = changes(Some(&off), &on);
    let kind = ValidationChangeKind::Failed { used_to_succeed: false };
    assert_eq!(failed, [ValidationChange { id: HostValidationId::HasInventory, kind }]);
}
