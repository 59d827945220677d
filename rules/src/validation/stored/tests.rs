use assisted::host::HostStage;

use super::*;
use crate::validation::cluster::ClusterResults;
use crate::validation::definition::ValidationId;
use crate::validation::host::has_min_cpu_cores::MinCpuCoresOutcome;
use crate::validation::host::tests::{evaluate_with, host, inventory, without};
use crate::validation::host::{HostOutcome, HostResults, HostValidationId};
use crate::view::HostView;

#[test]
fn results_survive_storing() {
    let settings = without("has-min-memory");
    let rebooting = HostView { stage: Some(HostStage::Rebooting), ..host(Some(inventory())) };
    for host in [host(None), host(Some(inventory())), rebooting] {
        let results = evaluate_with(&host, &settings);
        assert_eq!(HostResults::from_stored(&results.to_stored().unwrap()).unwrap(), results);
    }
}

#[test]
fn every_outcome_survives_storing() {
    for sample in HostValidationId::ALL.iter().flat_map(|id| HostOutcome::samples(*id)) {
        let results = HostResults::from_parts([sample], vec![]);
        assert_eq!(HostResults::from_stored(&results.to_stored().unwrap()).unwrap(), results);
    }
}

#[test]
fn stored_form_is_stable() {
    let outcomes = [
        HostOutcome::Disabled(HostValidationId::Connected),
        MinCpuCoresOutcome::TooFew { minimum: 2, found: 1 }.into(),
    ];
    let results = HostResults::from_parts(outcomes, vec![HostValidationId::MediaConnected]);
    let text = concat!(
        r#"{"version":1,"outcomes":{"has-min-cpu-cores":{"too-few":{"minimum":2,"found":1}}},"#,
        r#""disabled":["connected"],"hidden":["media-connected"]}"#,
    );
    assert_eq!(results.to_stored().unwrap(), text);
}

#[test]
fn outcomes_of_newer_versions_are_omitted() {
    let text = r#"{"version":1,"other":1,"outcomes":{"zzz":{"a":[]},"connected":"connected","has-inventory":"zzz",
        "has-min-cpu-cores":{"too-few":{"minimum":"2"}}},"disabled":["yyy"],"hidden":["xxx"]}"#;
    let results = HostResults::from_stored(text).unwrap();
    let ids: Vec<_> = results.outcomes().iter().map(|it| it.id().as_str()).collect();
    assert_eq!(ids, ["connected"]);
    assert!(results.hidden().is_empty());
}

#[test]
fn order_of_the_stored_text_does_not_matter() {
    let text =
        r#"{"version":1,"outcomes":{"hostname-valid":"missing-inventory","connected":"disconnected"}}"#;
    let ids: Vec<_> =
        HostResults::from_stored(text).unwrap().outcomes().iter().map(ValidationOutcome::id).collect();
    assert_eq!(ids, [HostValidationId::Connected, HostValidationId::HostnameValid]);
}

#[test]
fn rejects_other_versions_and_malformed_text() {
    let version = HostResults::from_stored(r#"{"version":2,"x":[]}"#).unwrap_err();
    assert_eq!(version.to_string(), "stored validation results have version 2, version 1 is expected");
    for text in ["", "{}", "[]", r#"{"version":-1}"#, r#"{"version":1}"#, r#"{"version":1,"outcomes":[]}"#] {
        assert!(matches!(HostResults::from_stored(text), Err(StoredResultsError::Json(_))), "{text}");
    }
}

#[test]
fn results_of_clusters_have_the_same_form() {
    let text = concat!(
        r#"{"version":1,"outcomes":{},"#,
        r#""vips":[{"address":"192.0.2.5","vip_type":"api","verification":"succeeded"}]}"#,
    );
    let results = ClusterResults::from_stored(text).unwrap();
    assert_eq!(results.vips.len(), 1);
    assert_eq!(results.to_stored().unwrap(), text);
    assert!(!results.has_same_outcomes(&ClusterResults::default()));
    assert_eq!(ClusterResults::default().to_stored().unwrap(), r#"{"version":1,"outcomes":{}}"#);
}
