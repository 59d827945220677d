use std::cmp::Ordering;
use std::sync::Arc;

use assisted::ClusterId;
use assisted::host::HostKind;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

use super::HostRole::{Arbiter, AutoAssign, Bootstrap, Master, Worker};
use super::*;
use crate::summary::{DiskSummary, HostSummary, InventorySummary};

const GIB: i64 = 1 << 30;

/// CPU cores, memory in GiB, and the size of each disk in GiB.
type Hardware = (i64, i64, &'static [i64]);

/// The hardware of most hosts in the recordings.
const USUAL: Hardware = (8, 32, &[120]);
const SMALL: Hardware = (2, 8, &[120]);

fn inventory((cpus, memory_gib, disks): Hardware) -> InventorySummary {
    let disk =
        |gib: &i64| DiskSummary { drive_type: "HDD".into(), size_bytes: gib * GIB, ..DiskSummary::default() };
    InventorySummary {
        architecture: "x86_64".into(),
        cpus: Some(cpus),
        physical_bytes: Some(memory_gib * GIB),
        usable_bytes: memory_gib * GIB,
        disks: disks.iter().map(disk).collect(),
        ..InventorySummary::default()
    }
}

fn summary(inventory: Option<InventorySummary>) -> Arc<HostSummary> {
    Arc::new(HostSummary { inventory: inventory.map(Box::new), ..HostSummary::default() })
}

/// Returns hosts with this hardware, with ascending ids and no roles.
fn hosts(hardware: &[Hardware]) -> Vec<HostView> {
    let host = |(number, hardware): (u128, &Hardware)| HostView {
        summary: summary(Some(inventory(*hardware))),
        ..HostView::new(Uuid::from_u128(number).into(), Uuid::nil().into())
    };
    (1..).zip(hardware).map(host).collect()
}

fn with_roles(hosts: Vec<HostView>, roles: &[(HostRole, HostRole)]) -> Vec<HostView> {
    let roles = roles.iter().copied();
    hosts
        .into_iter()
        .zip(roles)
        .map(|(host, (role, suggested_role))| HostView { role, suggested_role, ..host })
        .collect()
}

fn view(control_plane_count: i64, hosts: Vec<HostView>) -> ClusterView {
    let cluster =
        ClusterSettings { control_plane_count, ..ClusterSettings::new(ClusterId::from(Uuid::nil())) };
    ClusterView { cluster: Arc::new(cluster), hosts: hosts.into_iter().map(Arc::new).collect() }
}

fn suggestions(view: &ClusterView) -> Vec<(HostId, HostRole)> {
    new_suggestions(view, &HardwareRequirements::default())
}

/// Returns the cluster after the new suggestions are stored.
fn applied(view: &ClusterView) -> ClusterView {
    let mut view = view.clone();
    for (id, suggested_role) in suggestions(&view) {
        let host = view.hosts.iter_mut().find(|host| host.id == id).unwrap();
        *host = Arc::new(HostView { suggested_role, ..HostView::clone(host) });
    }
    view
}

fn effective_roles(view: &ClusterView) -> Vec<HostRole> {
    view.hosts.iter().map(|host| host.effective_role()).collect()
}

#[test]
fn roles_of_new_hosts_match_the_recordings() {
    let large: Hardware = (32, 128, &[120, 466, 466]);
    for (name, hardware, expected) in [
        ("compact", vec![USUAL; 3], vec![Master; 3]),
        ("wide", vec![USUAL; 5], vec![Master, Master, Master, Worker, Worker]),
        ("large", vec![large; 5], vec![Master, Master, Master, Worker, Worker]),
        (
            "faults",
            vec![(8, 6, &[120]), USUAL, USUAL, (8, 32, &[10]), USUAL],
            vec![Worker, Master, Master, Master, Worker],
        ),
        ("masters-few", vec![USUAL, (8, 2, &[120]), USUAL], vec![Master, Worker, Master]),
        ("disks-umn-none", vec![(8, 32, &[120, 120, 120, 9]), USUAL, USUAL], vec![Master; 3]),
        ("roles", vec![USUAL, USUAL, USUAL, SMALL, SMALL], vec![Master, Master, Master, Worker, Worker]),
    ] {
        assert_eq!(effective_roles(&applied(&view(3, hosts(&hardware)))), expected, "{name}");
    }
}

#[test]
fn role_changes_match_the_recordings() {
    let hardware = [USUAL, USUAL, USUAL, SMALL, SMALL];
    let roles_after = |roles: &[(HostRole, HostRole)]| {
        effective_roles(&applied(&view(3, with_roles(hosts(&hardware), roles))))
    };
    let master = (AutoAssign, Master);
    let worker = (AutoAssign, Worker);
    // The user makes a fourth host a master: one of the other masters becomes a worker.
    assert_eq!(
        roles_after(&[master, master, master, (Master, Master), worker]),
        [Worker, Master, Master, Master, Worker]
    );
    // The user reverts the choice. The only other sufficient host already has a role chosen by the user.
    assert_eq!(
        roles_after(&[(Worker, Worker), master, master, (AutoAssign, AutoAssign), worker]),
        [Worker, Master, Master, Worker, Worker]
    );
    // A host of a compact cluster is unbound and bound again.
    assert_eq!(roles_after(&[(AutoAssign, AutoAssign), master, master]), [Master, Master, Master]);
}

#[test]
fn suggestions_stay_when_hardware_improves() {
    let hardware = [USUAL, USUAL, USUAL, (8, 6, &[120_i64] as &[i64])];
    let mut cluster = applied(&view(3, hosts(&hardware)));
    assert_eq!(effective_roles(&cluster), [Master, Master, Master, Worker]);
    let repaired =
        HostView { summary: summary(Some(inventory(SMALL))), ..HostView::clone(&cluster.hosts[3]) };
    cluster.hosts[3] = Arc::new(repaired);
    assert_eq!(suggestions(&cluster), []);
}

#[test]
fn new_host_resets_all_suggestions() {
    let mut cluster = view(1, hosts(&[(16, 64, &[120]), USUAL]));
    let new = cluster.hosts.pop().unwrap();
    cluster = applied(&cluster);
    assert_eq!(effective_roles(&cluster), [Master]);
    // The new host is weaker than the first host, so it becomes the control plane node.
    cluster.hosts.push(new);
    assert_eq!(effective_roles(&applied(&cluster)), [Worker, Master]);
    // A new but disconnected host gets a role without changing the other roles.
    let host = HostView { status: HostStatus::Disconnected, ..HostView::clone(&cluster.hosts[1]) };
    cluster.hosts[1] = Arc::new(host);
    assert_eq!(effective_roles(&applied(&cluster)), [Master, Worker]);
}

/// Returns the order of two hosts with this hardware and the same id.
fn compare(one: InventorySummary, other: InventorySummary) -> Ordering {
    let cluster = view(3, Vec::new()).cluster;
    let key = |report| {
        let host = HostView { summary: summary(Some(report)), ..hosts(&[USUAL]).remove(0) };
        order::sort_key(&host, &cluster, &HardwareRequirements::default())
    };
    key(one).cmp(&key(other))
}

#[test]
fn strength_depends_on_cores_memory_and_eligible_disks() {
    let table: [(Hardware, Hardware, Ordering); 7] = [
        ((5, 16, &[120]), (4, 27, &[120]), Ordering::Less),
        ((5, 16, &[120]), (4, 26, &[120]), Ordering::Equal),
        ((4, 16, &[120]), (4, 16, &[121]), Ordering::Less),
        ((4, 16, &[120, 120]), (4, 16, &[120, 121]), Ordering::Less),
        ((4, 16, &[120, 90]), (4, 16, &[120]), Ordering::Equal),
        ((4, 16, &[120, 250]), (5, 16, &[120]), Ordering::Equal),
        ((4, 17, &[]), (4, 16, &[]), Ordering::Greater),
    ];
    for (one, other, expected) in table {
        assert_eq!(compare(inventory(one), inventory(other)), expected, "{one:?} {other:?}");
    }
    // For each disk, only whole GiB count.
    let mut parts = inventory((4, 16, &[120, 120]));
    parts.usable_bytes += GIB - 1;
    for disk in &mut parts.disks {
        disk.size_bytes += GIB - 1;
    }
    assert_eq!(compare(parts, inventory((4, 16, &[120, 120]))), Ordering::Equal);
}

#[test]
fn hosts_with_graphics_cards_become_masters_last() {
    let with_gpu = InventorySummary { gpus: vec!["10de:20b5".into()], ..inventory(USUAL) };
    let mut hosts = hosts(&[USUAL, (64, 256, &[1000])]);
    hosts[0].summary = summary(Some(with_gpu));
    assert_eq!(effective_roles(&applied(&view(1, hosts))), [Worker, Master]);
}

#[test]
fn no_role_is_suggested_while_an_inventory_is_missing() {
    let mut hosts = hosts(&[USUAL; 3]);
    hosts[2].summary = summary(None);
    assert_eq!(suggestions(&view(3, hosts)), []);
    assert_eq!(suggestions(&view(3, Vec::new())), []);
}

#[test]
fn status_decides_whether_a_host_gets_a_suggestion() {
    for status in HostStatus::ALL {
        let host = HostView { status: *status, ..hosts(&[USUAL]).remove(0) };
        let expected = if SUGGESTED_IN.contains(status) { Master } else { AutoAssign };
        assert_eq!(effective_roles(&applied(&view(3, vec![host]))), [expected], "{status}");
    }
}

#[test]
fn host_that_joins_a_cluster_becomes_a_worker() {
    let host = HostView { kind: HostKind::Joining, ..hosts(&[USUAL]).remove(0) };
    assert_eq!(effective_roles(&applied(&view(3, vec![host]))), [Worker]);
}

#[test]
fn control_plane_with_two_nodes_gets_one_arbiter() {
    let arbiter: Hardware = (2, 8, &[60]);
    let roles = |hardware: &[Hardware]| effective_roles(&applied(&view(2, hosts(hardware))));
    assert_eq!(roles(&[USUAL, arbiter, USUAL]), [Master, Arbiter, Master]);
    assert_eq!(roles(&[USUAL; 4]), [Master, Master, Arbiter, Worker]);
    assert_eq!(roles(&[USUAL, USUAL, (1, 8, &[120])]), [Master, Master, Worker]);
    let hosts_with_roles = with_roles(
        hosts(&[USUAL; 4]),
        &[(Arbiter, Arbiter), (AutoAssign, Arbiter), (AutoAssign, Worker), (AutoAssign, Master)],
    );
    assert_eq!(effective_roles(&applied(&view(2, hosts_with_roles))), [Arbiter, Master, Worker, Master]);
}

#[test]
fn insufficient_host_loses_its_role_to_another_host() {
    let roles = [(AutoAssign, Worker), (AutoAssign, Master)];
    let changed = with_roles(hosts(&[USUAL, (16, 8, &[120])]), &roles);
    assert_eq!(effective_roles(&applied(&view(1, changed))), [Master, Worker]);
}

#[test]
fn resources_at_the_limit_suffice_for_a_role() {
    let hardware = HardwareRequirements::default();
    let meets = |count: i64, role, cpus: Option<i64>, mib: Option<i64>| {
        let report = InventorySummary {
            cpus,
            physical_bytes: mib.map(|mib| mib << 20),
            // Memory read from `meminfo` gets no additional tolerance here.
            memory_is_meminfo: true,
            ..InventorySummary::default()
        };
        let mut host = hosts(&[USUAL]).remove(0);
        host.summary = summary(Some(report));
        meets_role(&host, role, &view(count, Vec::new()).cluster, &hardware)
    };
    for (count, role, cpus, mib) in
        [(3, Master, 4, 16284), (1, Master, 8, 16284), (2, Arbiter, 2, 8092), (3, Worker, 2, 8092)]
    {
        assert!(meets(count, role, Some(cpus), Some(mib)), "{role}");
        assert!(!meets(count, role, Some(cpus - 1), Some(mib)), "{role}");
        assert!(!meets(count, role, Some(cpus), Some(mib - 1)), "{role}");
        assert!(!meets(count, role, None, Some(mib)) && !meets(count, role, Some(cpus), None), "{role}");
    }
    let silent = HostView { summary: summary(None), ..hosts(&[USUAL]).remove(0) };
    assert!(!meets_role(&silent, Worker, &view(3, Vec::new()).cluster, &hardware));
}

#[test]
fn role_does_not_require_ignored_resources() {
    for (list, expected) in [
        ("", false),
        ("x", false),
        ("[]", false),
        (r#"["has-min-memory"]"#, false),
        (r#"["has-memory-for-role"]"#, true),
        (r#"["all"]"#, true),
    ] {
        let cluster = view(3, Vec::new()).cluster;
        let cluster = ClusterSettings { ignored_host_validations: list.into(), ..(*cluster).clone() };
        let host = hosts(&[(4, 8, &[120])]).remove(0);
        let meets = meets_role(&host, Master, &cluster, &HardwareRequirements::default());
        assert_eq!(meets, expected, "{list:?}");
    }
}

#[test]
fn masters_are_schedulable_if_there_are_too_few_workers() {
    for (count, roles, expected) in [
        (3, vec![], true),
        (3, vec![(Master, Master); 3], true),
        (3, vec![(AutoAssign, Master), (AutoAssign, Worker)], true),
        (3, vec![(AutoAssign, Worker), (Worker, Worker)], false),
        (3, vec![(AutoAssign, AutoAssign); 3], true),
        (1, vec![(Bootstrap, Bootstrap), (Worker, Worker), (Worker, Worker)], true),
    ] {
        let view = view(count, with_roles(hosts(&vec![USUAL; roles.len()]), &roles));
        assert_eq!(forces_schedulable_masters(&view), expected, "{roles:?}");
    }
}

fn any_host() -> impl Strategy<Value = HostView> {
    let role = || select(vec![AutoAssign, AutoAssign, AutoAssign, Master, Arbiter, Worker]);
    let status = select(HostStatus::ALL.to_vec());
    let status = prop_oneof![3 => Just(HostStatus::Known), 1 => status];
    let hardware =
        (0..10_i64, 6..20_i64, prop_oneof![Just(&[120_i64] as &[i64]), Just(&[10_i64, 200] as &[i64])]);
    (hardware, (role(), role()), status, any::<(bool, bool)>()).prop_map(
        |(hardware, (role, suggested_role), status, (has_gpu, joins))| {
            let gpus = if has_gpu { vec!["10de:20b5".into()] } else { Vec::new() };
            HostView {
                role,
                // A role chosen by the user replaces the suggestion.
                suggested_role: if role == AutoAssign { suggested_role } else { role },
                status,
                kind: if joins { HostKind::Joining } else { HostKind::Host },
                summary: summary(Some(InventorySummary { gpus, ..inventory(hardware) })),
                ..hosts(&[USUAL]).remove(0)
            }
        },
    )
}

proptest! {
    #[test]
    fn suggestions_settle_within_the_size_of_the_control_plane(
        mut hosts in vec(any_host(), 0..9),
        count in 0..6_i64,
        rotation in 0..9_usize,
    ) {
        for (number, host) in (1..).zip(&mut hosts) {
            host.id = Uuid::from_u128(number).into();
        }
        let cluster = view(count, hosts.clone());
        let renewed = applied(&cluster);
        prop_assert_eq!(suggestions(&renewed), []);

        let can_change = |host: &HostView| host.role == AutoAssign && SUGGESTED_IN.contains(&host.status);
        let masters = renewed.hosts.iter().filter(|host| host.effective_role() == Master);
        let (suggested, fixed): (Vec<_>, Vec<_>) = masters.partition(|host| can_change(host));
        let (suggested, fixed) =
            (i64::try_from(suggested.len()).unwrap(), i64::try_from(fixed.len()).unwrap());
        prop_assert!(suggested == 0 || fixed + suggested <= count);
        for (before, after) in cluster.hosts.iter().zip(&renewed.hosts) {
            prop_assert_eq!(before.role, after.role);
        }

        let middle = rotation.min(hosts.len());
        hosts.rotate_left(middle);
        hosts.reverse();
        let mut changes = suggestions(&view(count, hosts));
        let mut expected = suggestions(&cluster);
        changes.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(changes, expected);
    }
}
