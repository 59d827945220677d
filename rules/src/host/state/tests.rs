//! Exhaustive checks of the host rules: each event, for all statuses and all combinations of its facts.

use std::collections::BTreeSet;

use assisted::host::HostStage;
use assisted::host::HostStatus::{
    self, Binding, Disconnected, DisconnectedUnbound, Discovering, DiscoveringUnbound, InstallingInProgress,
    Insufficient, InsufficientUnbound, Known, KnownUnbound, PendingForInput, PreparingFailed, Unbinding,
};
use chrono::{DateTime, Utc};

use super::tables::{DISCOVERED, POOL};
use super::*;
use crate::host::status::{MEDIA_DISCONNECTED, is_unbound};
use crate::transitions::find_rule;
use crate::validation::HostResults;

const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// The statuses that a host can get in this version. Installations will add the remaining statuses.
pub(super) const REACHABLE: [HostStatus; 11] = [
    Discovering,
    PendingForInput,
    Known,
    Disconnected,
    Insufficient,
    Binding,
    Unbinding,
    KnownUnbound,
    DisconnectedUnbound,
    InsufficientUnbound,
    DiscoveringUnbound,
];

/// An event whose facts can be enumerated.
pub(super) trait ExploredTable: TransitionTable<Machine = HostMachine> {
    const NAME: &'static str;
    /// Calls `visit` with every combination of the event's facts.
    fn for_each(visit: impl FnMut(&Self::Facts<'_>));

    /// Returns the other statuses to which this event can take a host with this status.
    fn targets(status: HostStatus) -> BTreeSet<HostStatus> {
        let mut targets = BTreeSet::new();
        Self::for_each(|facts| {
            let transition = apply::<Self>(status, facts, NOW).ok();
            targets.extend(transition.and_then(|transition| transition.status()));
        });
        targets.remove(&status);
        targets
    }
}

const BOTH: [bool; 2] = [false, true];

/// Calls `visit` with all combinations of `N` truth values.
fn for_each_combination<const N: usize>(mut visit: impl FnMut([bool; N])) {
    for bits in 0..1_u32 << N {
        let mut bit = 0;
        visit([(); N].map(|()| {
            bit += 1;
            bits & 1 << (bit - 1) != 0
        }));
    }
}

impl ExploredTable for tables::Register {
    const NAME: &'static str = "Register";

    fn for_each(mut visit: impl FnMut(&RegistrationFacts<'_>)) {
        for stage in [None, Some(HostStage::Installing), Some(HostStage::Rebooting), Some(HostStage::Done)] {
            for installation_disk in [None, Some("disk")] {
                for_each_combination(|[joins, has_bound_infra_env]| {
                    visit(&RegistrationFacts { stage, joins, has_bound_infra_env, installation_disk });
                });
            }
        }
    }
}

impl ExploredTable for tables::Refresh {
    const NAME: &'static str = "Refresh";

    fn for_each(mut visit: impl FnMut(&HostConclusions<'_>)) {
        let results = &HostResults::default();
        for_each_combination(
            |[
                is_connected,
                has_media,
                has_valid_inventory,
                has_minimum_hardware,
                has_required_input,
                is_sufficient,
            ]| {
                visit(&HostConclusions {
                    is_connected,
                    has_media,
                    has_valid_inventory,
                    has_minimum_hardware,
                    has_required_input,
                    is_sufficient,
                    results,
                });
            },
        );
    }
}

impl ExploredTable for tables::RefreshUnbound {
    const NAME: &'static str = "RefreshUnbound";

    fn for_each(mut visit: impl FnMut(&PoolConclusions<'_>)) {
        let results = &HostResults::default();
        for_each_combination(|[is_connected, has_media, has_valid_inventory, is_bindable]| {
            visit(&PoolConclusions { is_connected, has_media, has_valid_inventory, is_bindable, results });
        });
    }
}

impl ExploredTable for tables::LoseMedia {
    const NAME: &'static str = "LoseMedia";

    fn for_each(mut visit: impl FnMut(&MediaLoss<'_>)) {
        visit(&MediaLoss { status_info: "" });
    }
}

impl ExploredTable for tables::EnterStage {
    const NAME: &'static str = "EnterStage";

    fn for_each(mut visit: impl FnMut(&StageReport<'_>)) {
        for stage in [HostStage::Installing, HostStage::Done, HostStage::Failed] {
            for joins in BOTH {
                visit(&StageReport { stage, message: "", joins });
            }
        }
    }
}

/// Implements `ExploredTable` for events without facts.
macro_rules! explore_without_facts {
    ($($event:ident),*) => {$(
        impl ExploredTable for tables::$event {
            const NAME: &'static str = stringify!($event);

            fn for_each(mut visit: impl FnMut(&())) {
                visit(&());
            }
        }
    )*};
}

explore_without_facts!(LoseConnection, Bind, Unbind, DeleteCluster);

/// Evaluates an expression for each table, in the order of the events.
macro_rules! for_each_table {
    ($table:ident => $body:expr) => {{
        {
            type $table = tables::Register;
            $body
        }
        {
            type $table = tables::Refresh;
            $body
        }
        {
            type $table = tables::RefreshUnbound;
            $body
        }
        {
            type $table = tables::LoseMedia;
            $body
        }
        {
            type $table = tables::LoseConnection;
            $body
        }
        {
            type $table = tables::EnterStage;
            $body
        }
        {
            type $table = tables::Bind;
            $body
        }
        {
            type $table = tables::Unbind;
            $body
        }
        {
            type $table = tables::DeleteCluster;
            $body
        }
    }};
}
pub(super) use for_each_table;

fn require_matching_rules<T: ExploredTable>() {
    for (number, rule) in T::RULES.iter().enumerate() {
        for status in rule.from {
            let mut matches = false;
            T::for_each(|facts| {
                matches |= T::RULES.iter().position(|rule| rule.matches(*status, facts)) == Some(number);
            });
            assert!(matches, "rule {number} of {} never matches {status}", T::NAME);
        }
    }
}

#[test]
fn every_rule_can_match_each_of_its_sources() {
    for_each_table!(Event => require_matching_rules::<Event>());
}

#[test]
fn hosts_get_exactly_the_expected_statuses() {
    let mut reached = BTreeSet::from(BOTH.map(|is_bound| Transition::first(is_bound, NOW).status().unwrap()));
    loop {
        let mut more = reached.clone();
        for status in &reached {
            for_each_table!(Event => more.extend(Event::targets(*status)));
        }
        if more == reached {
            break;
        }
        reached = more;
    }
    assert_eq!(reached, BTreeSet::from(REACHABLE));
}

#[test]
fn every_reachable_status_can_change() {
    for status in REACHABLE {
        let mut exits = BTreeSet::new();
        for_each_table!(Event => {
            // Deleting the cluster changes the status of every bound host, so this event does not count as an exit.
            if Event::NAME != tables::DeleteCluster::NAME {
                exits.extend(Event::targets(status));
            }
        });
        assert!(!exits.is_empty(), "{status} has no way out");
    }
}

fn require_one_status<T: ExploredTable>(group: &[HostStatus]) {
    T::for_each(|facts| {
        let decide = |status| apply::<T>(status, facts, NOW).unwrap();
        let settled = decide(group[0]);
        for status in group.iter().copied().chain(settled.status()) {
            assert_eq!(decide(status), settled, "{} from {status}", T::NAME);
        }
    });
}

#[test]
fn facts_alone_decide_the_status_of_a_discovered_host() {
    require_one_status::<tables::Refresh>(DISCOVERED);
    require_one_status::<tables::RefreshUnbound>(POOL);
}

#[test]
fn earlier_rules_take_precedence() {
    let results = &HostResults::default();
    let all = HostConclusions {
        is_connected: true,
        has_media: true,
        has_valid_inventory: true,
        has_minimum_hardware: true,
        has_required_input: true,
        is_sufficient: true,
        results,
    };
    let cannot_be_installed = HostConclusions { is_sufficient: false, ..all };
    let needs_input = HostConclusions { has_required_input: false, ..cannot_be_installed };
    let too_small = HostConclusions { has_minimum_hardware: false, ..needs_input };
    let unknown = HostConclusions { has_valid_inventory: false, ..too_small };
    let silent = HostConclusions { is_connected: false, ..unknown };
    let without_media = HostConclusions { has_media: false, ..silent };
    for (conclusions, status, info) in [
        (all, Known, Some("Host is ready to be installed")),
        (
            cannot_be_installed,
            Insufficient,
            Some("Host cannot be installed due to following failing validation(s): "),
        ),
        (needs_input, PendingForInput, Some("Waiting for user input: ")),
        (too_small, Insufficient, Some("Host does not meet the minimum hardware requirements: ")),
        (unknown, Discovering, Some("Waiting for host to send hardware details")),
        (silent, Disconnected, Some("Host has stopped communicating with the installation service")),
        (without_media, Disconnected, None),
    ] {
        let transition = decide(Discovering, &HostEvent::Refresh(conclusions), NOW).unwrap();
        assert_eq!((transition.status(), transition.info()), (Some(status), info));
    }
}

fn require_disconnection<T: ExploredTable>(
    status: HostStatus,
    is_connected: for<'a> fn(&T::Facts<'a>) -> bool,
) {
    let silent = apply::<tables::LoseConnection>(status, &(), NOW).unwrap().status();
    T::for_each(|facts| {
        if !is_connected(facts) {
            assert_eq!(apply::<T>(status, facts, NOW).unwrap().status(), silent, "{status}");
        }
    });
}

#[test]
fn silent_hosts_become_disconnected_before_their_installation() {
    let expected = [
        Discovering,
        Known,
        Insufficient,
        PendingForInput,
        PreparingFailed,
        KnownUnbound,
        InsufficientUnbound,
        DiscoveringUnbound,
        Unbinding,
    ];
    let statuses: BTreeSet<_> = statuses_before_disconnection().collect();
    assert_eq!(statuses, BTreeSet::from(expected));
    // The task that looks for silent hosts must change their status, because it would otherwise find the same hosts in
    // each run.
    for status in statuses {
        if is_unbound(status) {
            require_disconnection::<tables::RefreshUnbound>(status, |facts| facts.is_connected);
        } else {
            require_disconnection::<tables::Refresh>(status, |facts| facts.is_connected);
        }
    }
}

#[test]
fn only_one_refresh_event_applies_to_a_host() {
    for status in HostStatus::ALL {
        let results = &HostResults::default();
        let mut has_rule = [false; 2];
        tables::Refresh::for_each(|facts| {
            has_rule[0] |= find_rule::<tables::Refresh>(*status, facts).is_some();
        });
        tables::RefreshUnbound::for_each(|facts| {
            let facts = &PoolConclusions { results, ..*facts };
            has_rule[1] |= find_rule::<tables::RefreshUnbound>(*status, facts).is_some();
        });
        assert!(!has_rule[usize::from(!is_unbound(*status))], "{status}");
    }
}

#[test]
fn status_text_of_lost_media_contains_the_previous_text() {
    let info = |status, status_info| {
        let event = HostEvent::LoseMedia(MediaLoss { status_info });
        decide(status, &event, NOW).unwrap().info().unwrap().to_owned()
    };
    assert_eq!(info(Known, "before"), MEDIA_DISCONNECTED);
    assert_eq!(info(InstallingInProgress, "before"), format!("Failed - {MEDIA_DISCONNECTED}. before"));
    assert_eq!(info(InstallingInProgress, ""), format!("Failed - {MEDIA_DISCONNECTED}"));
}

#[test]
fn status_text_of_a_stage_contains_the_message_of_a_failure() {
    let info = |stage, message| {
        let event = HostEvent::EnterStage(StageReport { stage, message, joins: false });
        decide(InstallingInProgress, &event, NOW).unwrap().info().unwrap().to_owned()
    };
    assert_eq!(info(HostStage::Failed, "disk is full"), "Failed - disk is full");
    assert_eq!(info(HostStage::Failed, ""), "Failed");
    assert_eq!(info(HostStage::WritingImage, "10%"), "Writing image to disk");
}

#[test]
fn registration_from_the_installation_image_names_the_disk() {
    let register = |status, installation_disk| {
        let stage = Some(HostStage::Rebooting);
        let facts = RegistrationFacts { stage, joins: false, has_bound_infra_env: true, installation_disk };
        decide(status, &HostEvent::Register(facts), NOW)
    };
    let transition = register(InstallingInProgress, Some("QEMU (sda, /dev/sda)")).unwrap();
    assert_eq!(
        transition.info(),
        Some(
            "Expected the host to boot from disk, but it booted the installation image - please reboot and fix boot order \
             to boot from disk QEMU (sda, /dev/sda)"
        )
    );
    assert_eq!(register(InstallingInProgress, None), Err(HostRefusal::NoInstallationDisk));
    let waiting = HostStatus::InstallingPendingUserAction;
    assert_eq!(register(waiting, None), Err(HostRefusal::MustBootFromDisk));
    assert_eq!(register(HostStatus::Installed, None), Err(HostRefusal::AlreadyInstalled));
    assert_eq!(register(HostStatus::Cancelled, None), Err(HostRefusal::NoRule));
}

fn require_unreachable_sources<T: ExploredTable>() {
    for rule in T::RULES.iter().filter(|rule| rule.legacy.is_some()) {
        assert!(rule.from.iter().all(|status| !REACHABLE.contains(status)), "{}: {:?}", T::NAME, rule.from);
    }
}

#[test]
fn legacy_rules_have_unreachable_sources() {
    for_each_table!(Event => require_unreachable_sources::<Event>());
}

#[test]
fn restored_host_keeps_a_matching_status() {
    for status in HostStatus::ALL.iter().copied() {
        for is_bound in [false, true] {
            let restored = Transition::restored(Some(status), is_bound, NOW).status().unwrap();
            let default = Transition::restored(None, is_bound, NOW).status().unwrap();
            assert_ne!(is_unbound(restored), is_bound, "{status}");
            assert_eq!(restored, if is_unbound(status) == is_bound { default } else { status });
        }
    }
}
