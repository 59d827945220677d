//! Checks with random clusters that the outcome of an assessment depends only on the facts and the stored decisions,
//! not on the history.

use std::sync::Arc;

use assisted::cluster::ClusterStatus;
use assisted::host::HostStatus;
use proptest::prelude::*;
use rules::view::{ClusterSettings, ClusterView, HostView};

use crate::assess::{Assessment, assess, rows, status_of};
use crate::facts::{ClusterShape, HOSTS, HostFact, any_host_fact, any_shape, cluster, host, set};
use crate::model::{cluster_status, host_status};

/// A change of one fact. If `is_assessed` is `true`, the cluster is assessed after the change.
#[derive(Clone, Debug)]
struct Step {
    change: Change,
    is_assessed: bool,
}

#[derive(Clone, Debug)]
enum Change {
    /// Another fact about the host with this number, if the host exists.
    Host(u128, HostFact),
    /// The host registers for the first time, or again after a boot.
    Register(u128),
    Remove(u128),
    Vips {
        api: bool,
        ingress: bool,
    },
    BaseDomain(bool),
}

fn any_change() -> impl Strategy<Value = Change> {
    let number = || 1..=HOSTS;
    prop_oneof![
        12 => (number(), any_host_fact()).prop_map(|(number, fact)| Change::Host(number, fact)),
        4 => number().prop_map(Change::Register),
        1 => number().prop_map(Change::Remove),
        1 => any::<(bool, bool)>().prop_map(|(api, ingress)| Change::Vips { api, ingress }),
        1 => prop::bool::weighted(0.8).prop_map(Change::BaseDomain),
    ]
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let steps = |weight| {
        let step = (any_change(), prop::bool::weighted(weight));
        prop::collection::vec(step.prop_map(|(change, is_assessed)| Step { change, is_assessed }), 0..40)
    };
    prop_oneof![steps(0.0), steps(0.3), steps(1.0)]
}

/// Returns steps that discover several equal hosts, so that many of the clusters become ready.
fn discovery(host_count: u128) -> Vec<Step> {
    let numbers = || 1..=host_count;
    let all = HostFact::all_healthy();
    let facts =
        numbers().flat_map(|number| all.clone().into_iter().map(move |fact| Change::Host(number, fact)));
    let changes = numbers().map(Change::Register).chain(facts);
    changes.map(|change| Step { change, is_assessed: false }).collect()
}

fn apply(view: &mut ClusterView, shape: ClusterShape, change: &Change) {
    let position = |number: u128| view.hosts.iter().position(|host| host.id.0.as_u128() == number);
    match change {
        Change::Host(number, fact) => {
            if let Some(position) = position(*number) {
                set(Arc::make_mut(&mut view.hosts[position]), fact);
            }
        }
        Change::Register(number) => match position(*number) {
            Some(position) => {
                let host = Arc::make_mut(&mut view.hosts[position]);
                Arc::make_mut(&mut host.summary).clear_boot_facts();
                host.status = HostStatus::Discovering;
                (host.is_connected, host.has_media) = (true, true);
            }
            None => {
                view.hosts.push(Arc::new(host(*number)));
                view.hosts.sort_by_key(|host| host.id);
            }
        },
        Change::Remove(number) => view.hosts.retain(|host| host.id.0.as_u128() != *number),
        Change::Vips { api, ingress } => {
            let (api_vips, ingress_vips) = shape.vips(*api, *ingress);
            let cluster = Arc::make_mut(&mut view.cluster);
            (cluster.api_vips, cluster.ingress_vips) = (api_vips, ingress_vips);
        }
        Change::BaseDomain(is_set) => {
            Arc::make_mut(&mut view.cluster).base_dns_domain =
                if *is_set { "example.com" } else { "" }.into();
        }
    }
}

/// Returns the cluster with initial statuses, but with the same facts, roles and networks.
fn fresh(view: &ClusterView) -> ClusterView {
    let hosts = view.hosts.iter();
    let hosts = hosts
        .map(|host| Arc::new(HostView { status: HostStatus::Discovering, ..HostView::clone(host) }))
        .collect();
    let cluster =
        ClusterSettings { status: ClusterStatus::Insufficient, ..ClusterSettings::clone(&view.cluster) };
    ClusterView { cluster: Arc::new(cluster), hosts }
}

fn assert_same(one: &Assessment, other: &Assessment) {
    assert_eq!(one.cluster.results, other.cluster.results);
    assert_eq!(one.cluster.transition, other.cluster.transition);
    assert_eq!(one.view.cluster.machine_networks, other.view.cluster.machine_networks);
    assert_eq!(one.view.cluster.status, other.view.cluster.status);
    assert_eq!(one.hosts.len(), other.hosts.len());
    for (one, other) in one.hosts.iter().zip(&other.hosts) {
        assert_eq!(one.evaluation, other.evaluation);
        assert_eq!(one.suggested_role, other.suggested_role);
        assert_eq!(one.transition, other.transition);
    }
    for (one, other) in one.view.hosts.iter().zip(&other.view.hosts) {
        assert_eq!((one.id, one.status, one.suggested_role), (other.id, other.status, other.suggested_role));
    }
}

fn assert_follows_model(assessment: &Assessment) {
    for host in &assessment.hosts {
        let (status, info) = host_status(&rows(&host.evaluation.results));
        assert_eq!(status_of(host), (status, info.as_deref()));
    }
    let cluster = &assessment.cluster;
    let dhcp = assessment.view.cluster.vip_dhcp_allocation;
    let (status, info) = cluster_status(&rows(&cluster.results.outcomes), dhcp);
    let transition = cluster.transition.as_ref().unwrap();
    assert_eq!((transition.status(), transition.info()), (Some(status), Some(info)));
}

/// Applies the steps and returns the last assessment. Checks each assessment against the model.
fn play(shape: ClusterShape, steps: &[Step]) -> Assessment {
    let mut view = ClusterView { cluster: Arc::new(cluster(shape)), hosts: Vec::new() };
    for step in steps {
        apply(&mut view, shape, &step.change);
        if step.is_assessed {
            let assessment = assess(&view);
            assert_follows_model(&assessment);
            view = assessment.view;
        }
    }
    let last = assess(&view);
    assert_follows_model(&last);
    last
}

#[test]
fn discovered_clusters_become_ready() {
    for (shape, host_count) in ClusterShape::ALL.into_iter().zip([1, 3, 5, 3, 3, 3, 3, 3]) {
        let last = play(shape, &discovery(host_count));
        let expected = match shape {
            // The hosts are in several networks, so the service cannot choose the network for the leases.
            ClusterShape::Dhcp => ClusterStatus::PendingForInput,
            _ => ClusterStatus::Ready,
        };
        assert_eq!(
            last.view.cluster.status,
            expected,
            "{shape:?} {:?}",
            rows(&last.cluster.results.outcomes)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn outcome_depends_only_on_facts_and_stored_decisions(
        shape in any_shape(),
        host_count in 0..=HOSTS,
        steps in any_steps(),
    ) {
        let steps = [discovery(host_count), steps].concat();
        let last = play(shape, &steps);
        assert_same(&last, &assess(&fresh(&last.view)));
    }

    #[test]
    fn second_assessment_changes_nothing(shape in any_shape(), host_count in 0..=HOSTS, steps in any_steps()) {
        let last = play(shape, &[discovery(host_count), steps].concat());
        let again = assess(&last.view);
        prop_assert_eq!(&again.machine_networks, &None);
        assert_same(&last, &again);
    }

    /// Checks that the order of changes does not matter, and that a change repeated or reverted before the assessment
    /// has no effect.
    #[test]
    fn order_and_repetition_of_changes_do_not_matter(
        shape in any_shape(),
        host_count in 1..=HOSTS,
        (number, facts) in (1..=HOSTS, prop::collection::vec(any_host_fact(), 0..6)),
    ) {
        let steps = |facts: &mut dyn Iterator<Item = &HostFact>| -> Vec<Step> {
            let changes = facts.map(|fact| Change::Host(number, fact.clone()));
            let changes = changes.map(|change| Step { change, is_assessed: false });
            discovery(host_count).into_iter().chain(changes).collect()
        };
        // If several facts have the same kind, the last one applies in both orders.
        let mut distinct: Vec<_> = facts.iter().rev().collect();
        let mut kinds = Vec::new();
        distinct.retain(|fact| {
            let kind = std::mem::discriminant(*fact);
            let is_first = !kinds.contains(&kind);
            kinds.push(kind);
            is_first
        });
        let one = play(shape, &steps(&mut facts.iter()));
        let other = play(shape, &steps(&mut distinct.into_iter()));
        assert_same(&one, &other);
    }
}
