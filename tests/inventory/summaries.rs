//! The facts about a host in its stored summary, next to its reports.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use chrono::TimeDelta;
use kindling::inventory::host::HostRecord;
use kindling::inventory::store::{Change, ReportKind, Step};
use kindling::inventory::{Clock as _, ManualClock};
use serde_json::{Value, json};

use crate::agent::{FakeAgent, inventory_report};
use crate::fleet::{
    Fleet, HostIdentity, commit_step, commits, host_key, on_each_url, poll, poll_at, reply_to_all, report_of,
    start, stored_host, stored_report, types, with_vips,
};
use crate::service::{
    TestService, on_each_database, on_each_database_with, on_each_database_with_clock, only_own_validations,
};

/// Returns everything that the summary of a host decides: its steps with their arguments, its status and its
/// validations.
async fn decided(agent: &FakeAgent<'_>) -> Value {
    let steps = poll(agent).await;
    let steps: Vec<_> =
        types(&steps).into_iter().zip(steps.instructions.iter().map(|step| &step.args)).collect();
    let host = agent.assessed_host().await;
    let keys = ["status", "status_info", "validations_info", "inventory", "installation_disk_id"];
    json!([steps, keys.map(|key| &host[key])])
}

/// Returns the version of the stored summary of a host.
async fn stored_version(agent: &FakeAgent<'_>) -> Option<u64> {
    let summary = stored_report(agent, ReportKind::Summary).await?;
    serde_json::from_str::<Value>(&summary).unwrap()["version"].as_u64()
}

/// Removes the summary from the record of a host, like a release without summaries. `orphan` is a summary that such a
/// release leaves in the database.
async fn forget_summary(agent: &FakeAgent<'_>, orphan: Option<&str>) {
    let (records, key) = (agent.service.inventory.records(), host_key(agent));
    let change = records.change(|_| async {
        let mut change = Change::new();
        let mut stored = records.find::<HostRecord>(key.parent, key.id).await?.unwrap();
        assert!(stored.record.findings.reports.remove("summary").is_some());
        change.replace(&stored.record, stored.generation)?;
        match orphan {
            Some(text) => change.put_report(&stored.record, ReportKind::Summary, text.to_owned()),
            None => change.remove_report(&stored.record, ReportKind::Summary),
        }
        Ok((change, ()))
    });
    change.await.unwrap();
}

/// The way in which a stored summary is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Removed,
    NeverStored,
    Orphaned(&'static str),
    Replaced(&'static str),
}

impl Loss {
    async fn apply(self, agent: &FakeAgent<'_>) {
        let (key, kind) = (host_key(agent), ReportKind::Summary);
        match self {
            Self::Removed => commit_step(agent.service, Step::RemoveReport(key, kind)).await,
            Self::NeverStored => forget_summary(agent, None).await,
            Self::Orphaned(text) => forget_summary(agent, Some(text)).await,
            Self::Replaced(text) => {
                commit_step(agent.service, Step::PutReport(key, kind, text.to_owned())).await;
            }
        }
    }
}

/// A summary of an older release.
const OLDER: &str = r#"{"version":0,"facts":"few"}"#;
const EMPTY: &str = r#"{"version":1,"summary":{}}"#;
const NEWER: &str = r#"{"version":99,"facts":"many"}"#;

/// Creates a cluster of hosts that have replied to all steps.
async fn replied(service: &TestService) -> Fleet<'_> {
    let fleet = Fleet::with_reports(service, 2, &with_vips()).await;
    for (number, agent) in fleet.agents.iter().enumerate() {
        let steps = poll(agent).await;
        reply_to_all(agent, &steps, number).await;
    }
    fleet
}

#[test]
fn summary_is_stored_with_each_report() {
    on_each_database(async |service| {
        let fleet = Fleet::register(service, 1, &with_vips()).await;
        let agent = &fleet.agents[0];
        assert_eq!(stored_version(agent).await, None);
        let mut before = Value::Null;
        agent.reply_to_step("inventory", &report_of(0)).await.json_with_status(204);
        let steps = poll(agent).await;
        for step in steps.instructions {
            let (kind, output) = (crate::fleet::type_of(&step), crate::fleet::output_of(&step, 0));
            agent.reply_to_step(kind, &output).await.json_with_status(204);
            let summary = stored_report(agent, ReportKind::Summary).await.unwrap();
            let summary: Value = serde_json::from_str(&summary).unwrap();
            assert_eq!(summary["version"], 1);
            assert!(kind == "inventory" || summary != before, "{kind} is part of the summary");
            before = summary;
        }
        // A new boot discards the summary with the reports.
        agent.register().await.json_with_status(201);
        assert_eq!(stored_version(agent).await, None);
        assert_eq!(types(&poll(agent).await), ["inventory"]);
    });
}

#[test]
fn missing_older_and_newer_summaries_are_rebuilt() {
    on_each_url(async |url| {
        let mut service = start(url, |_| {}).await;
        let fleet = replied(&service).await;
        let hosts: Vec<_> = fleet.agents.iter().map(HostIdentity::of).collect();
        let cluster = fleet.cluster.clone();
        drop(fleet);
        for loss in [
            Loss::Removed,
            Loss::NeverStored,
            Loss::Orphaned(EMPTY),
            Loss::Orphaned(NEWER),
            Loss::Replaced(OLDER),
            Loss::Replaced(NEWER),
        ] {
            let agents = [hosts[0].agent(&service), hosts[1].agent(&service)];
            service.inventory.assess_clusters().await.unwrap();
            let expected = [decided(&agents[0]).await, decided(&agents[1]).await];
            loss.apply(&agents[0]).await;
            // Restart the service, so that it has no facts in memory.
            drop(agents);
            service.stop().await;
            service = start(url, |_| {}).await;
            let agents = [hosts[0].agent(&service), hosts[1].agent(&service)];
            for (agent, expected) in agents.iter().zip(&expected) {
                assert_eq!(decided(agent).await, *expected, "{loss:?}");
            }
            service.get(&format!("/v2/clusters/{cluster}")).await.json_with_status(200);
            assert_eq!(service.inventory.assess_clusters().await.unwrap(), 0, "{loss:?}");

            let name = format!("{loss:?}");
            let sources =
                |state: &str| json!({"ntp_sources": [{"source_name": name, "source_state": state}]});
            agents[0].reply_to_step("ntp-synchronizer", &sources("synced")).await.json_with_status(204);
            let is_newer = loss == Loss::Replaced(NEWER);
            assert_eq!(stored_version(&agents[0]).await, (!is_newer).then_some(1), "{loss:?}");
            for (agent, expected) in agents.iter().zip(&expected) {
                assert_eq!(decided(agent).await, *expected, "{loss:?}");
            }
            agents[0].reply_to_step("ntp-synchronizer", &sources("error")).await.json_with_status(204);
            assert_eq!(stored_version(&agents[0]).await, Some(1), "{loss:?}");
        }
        service.stop().await;
    });
}

/// The warnings and errors of all tests of this program.
static LOG: LazyLock<Arc<Mutex<Vec<u8>>>> = LazyLock::new(|| {
    let log = Arc::new(Mutex::new(Vec::new()));
    let writer = CapturedLog(Arc::clone(&log));
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::ERROR)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    log
});

#[derive(Clone)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn damaged_summary_affects_one_host_and_is_logged() {
    let log = Arc::clone(&LOG);
    on_each_url(async |url| {
        let service = start(url, |_| {}).await;
        let fleet = replied(&service).await;
        let [host, other] = [0, 1].map(|index| HostIdentity::of(&fleet.agents[index]));
        commit_step(
            &service,
            Step::PutReport(host_key(&fleet.agents[0]), ReportKind::Summary, r#"{"version":1}"#.to_owned()),
        )
        .await;
        drop(fleet);
        service.stop().await;
        let service = start(url, |_| {}).await;
        let agent = host.agent(&service);
        poll_at(&agent, 0).await.json_with_status(200);
        let sources = json!({"ntp_sources": [{"source_name": "a", "source_state": "synced"}]});
        agent.reply_to_step("ntp-synchronizer", &sources).await.refusal_reason(500);
        let line = format!("the stored summary of host {} is damaged", agent.id);
        assert!(String::from_utf8_lossy(&log.lock().unwrap()).contains(&line), "{line}");
        // The service returns the host, and the other hosts of its cluster receive all steps.
        agent.assessed_host().await;
        let other = other.agent(&service);
        service.inventory.assess_clusters().await.unwrap();
        let steps = other.step_types().await;
        assert!(steps.iter().any(|step| step == "free-network-addresses"), "{steps:?}");
        drop((agent, other));
        service.stop().await;
    });
}

#[test]
fn disks_beyond_the_limit_are_shown_with_a_reason() {
    const DISKS: usize = 1000;
    on_each_database_with(only_own_validations, async |service| {
        let fleet = Fleet::register(service, 2, &with_vips()).await;
        let [agent, other] = fleet.agents.as_slice() else { panic!("two hosts") };
        let mut report = report_of(0);
        let disks = (0..DISKS).map(|number| {
            let mut disk = report["disks"][0].clone();
            disk["id"] = json!(format!("/dev/disk/by-id/wwn-{number}"));
            disk["name"] = json!(format!("sd{number}"));
            disk
        });
        report["disks"] = disks.collect();
        agent.reply_to_step("inventory", &report).await.json_with_status(204);
        other.reply_to_step("inventory", &report_of(1)).await.json_with_status(204);
        let host = agent.assessed_host().await;
        assert_eq!(host["status"], "known");
        let info = host["status_info"].as_str().unwrap();
        let used_disks =
            info.strip_prefix("Host is ready to be installed; inventory: 1000 disks reported, the first ");
        let used_disks: usize = used_disks
            .unwrap_or_else(|| panic!("{info}"))
            .strip_suffix(" are used")
            .unwrap()
            .parse()
            .unwrap();
        assert!((64..=256).contains(&used_disks), "{used_disks}");
        let disks: Value = serde_json::from_str(host["inventory"].as_str().unwrap()).unwrap();
        let disks = disks["disks"].as_array().unwrap();
        assert_eq!(disks.len(), DISKS);
        for (number, disk) in disks.iter().enumerate() {
            assert_eq!(disk["id"], format!("/dev/disk/by-id/wwn-{number}"));
            let eligibility = &disk["installation_eligibility"];
            if number < used_disks {
                assert_eq!(eligibility["eligible"], true, "{disk}");
                continue;
            }
            let reason = "Disk is not checked, because the host has too many disks";
            assert_eq!(eligibility["not_eligible_reasons"], json!([reason]));
            assert_ne!(eligibility["eligible"], true);
        }
        let summary = stored_report(agent, ReportKind::Summary).await.unwrap();
        assert!(summary.len() < 256 << 10, "{}", summary.len());

        // Everything else works as for other hosts.
        for path in ["/hosts", ""] {
            let listed = service.get(&format!("/v2/infra-envs/{}{path}", agent.infra_env)).await;
            listed.json_with_status(200);
        }
        assert_eq!(fleet.get_cluster().await["hosts"].as_array().unwrap().len(), 2);
        let steps = poll(agent).await;
        assert!(types(&steps).contains(&"connectivity-check"));
        assert!(types(&poll(other).await).contains(&"connectivity-check"));
        let before = commits(service);
        agent.reply_to_step("inventory", &report).await.json_with_status(204);
        assert_eq!(commits(service), before);
        agent.reply_to_step("inventory", &report_of(0)).await.json_with_status(204);
        assert_eq!(agent.assessed_host().await["status_info"], "Host is ready to be installed");
    });
}

/// Returns the difference of a host's clock in its record.
async fn recorded_skew(agent: &FakeAgent<'_>) -> (i64, Value) {
    let row = stored_host(agent).await;
    let document: Value = serde_json::from_str(&row.document).unwrap();
    (row.generation, document["findings"]["clock_skew"].clone())
}

#[test]
fn clock_skew_is_written_if_it_changes_much_or_crosses_a_limit() {
    on_each_database_with_clock(
        |_| {},
        async |service, clock: &ManualClock| {
            let fleet = Fleet::register(service, 1, &json!({})).await;
            let agent = &fleet.agents[0];
            agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
            assert_eq!(recorded_skew(agent).await.1, Value::Null);
            let mut generation = recorded_skew(agent).await.0;
            for (skew, recorded) in [
                (0, 0),
                (29, 0),
                (-29, 0),
                (30, 30),
                (1, 30),
                (0, 0),
                (3590, 3590),
                (3601, 3601),
                (3625, 3601),
                (-1190, -1190),
                (-1201, -1201),
            ] {
                clock.advance(Duration::from_secs(10));
                let commits_before = commits(service);
                let is_written = recorded_skew(agent).await.1 != json!(recorded);
                let at = clock.now() + TimeDelta::seconds(skew);
                poll_at(agent, at.timestamp()).await.json_with_status(200);
                generation += i64::from(is_written);
                assert_eq!(recorded_skew(agent).await, (generation, json!(recorded)), "{skew}");
                assert_eq!(commits(service) - commits_before, u64::from(is_written), "{skew}");
                assert_eq!(agent.get_host().await["timestamp"], at.timestamp());
            }
        },
    );
}
