//! The division of writes: requests commit facts about hosts, and assessments commit the resulting statuses of a
//! cluster and its hosts.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use kindling::inventory::{Clock as _, Settings};
use rules::validation::{DisabledValidations, HostValidationId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::FakeAgent;
use crate::fleet::{Fleet, HostIdentity, commits, on_each_url, poll, poll_at, report_of, start, with_vips};
use crate::ready_cluster::{ReadyCluster, poor_report_of, stale_clusters, validation_status, writes};
use crate::service::{on_each_database, on_each_database_with_clock};
use crate::store::{process_task, test_process};

/// The statuses of the hosts of a ready cluster.
const KNOWN: [&str; ReadyCluster::HOSTS] = ["known"; ReadyCluster::HOSTS];

#[test]
fn report_of_a_bound_host_changes_no_status_before_the_assessment() {
    on_each_database(async |service| {
        let cluster = ReadyCluster::assemble(service).await;
        let agent = &cluster.agents()[0];
        let conclusions = async || {
            let (shown_cluster, host) = (cluster.get().await, agent.get_host().await);
            let keys = ["status", "status_info", "validations_info"];
            (
                keys.map(|key| shown_cluster[key].clone()),
                keys.map(|key| host[key].clone()),
                cluster.event_count().await,
            )
        };
        let before = conclusions().await;
        cluster.report_poor(0).await;
        assert_eq!(conclusions().await, before);
        assert!(agent.get_host().await["inventory"].as_str().unwrap().contains(r#""count":1"#));
        assert!(cluster.is_stale().await);

        assert_eq!(cluster.assess().await, 1);
        assert_eq!(
            (cluster.status().await, agent.host_status().await),
            ("insufficient".into(), "insufficient".into())
        );
        assert_eq!(validation_status(&agent.get_host().await, "has-min-cpu-cores"), "failure");
        assert_eq!(validation_status(&cluster.get().await, "all-hosts-are-ready-to-install"), "failure");
        assert!(!cluster.is_stale().await);
    });
}

#[test]
fn registration_lost_media_and_silence_change_only_the_status_of_a_bound_host() {
    on_each_database_with_clock(
        |_| {},
        async |service, clock| {
            let cluster = ReadyCluster::assemble(service).await;
            let [one, two, three] = cluster.agents() else { panic!("three hosts") };
            let validations =
                async |agent: &FakeAgent<'_>| agent.get_host().await["validations_info"].clone();
            let before = [validations(one).await, validations(two).await, validations(three).await];

            one.register().await.json_with_status(201);
            let lost = json!({"step_type": "inventory", "step_id": "a", "exit_code": 256});
            two.send_reply(&lost).await.json_with_status(204);
            assert_eq!(cluster.host_statuses().await, ["discovering", "disconnected", "known"]);
            clock.advance(Settings::MAX_SILENCE + Duration::from_secs(1));
            poll_at(one, clock.now().timestamp()).await.json_with_status(200);
            service.inventory.disconnect_silent_hosts().await.unwrap();
            assert_eq!(cluster.host_statuses().await, ["discovering", "disconnected", "disconnected"]);
            assert_eq!([validations(one).await, validations(two).await, validations(three).await], before);
            assert_eq!(cluster.status().await, "ready");

            cluster.assess().await;
            assert_eq!(cluster.host_statuses().await, ["discovering", "disconnected", "disconnected"]);
            for (agent, id) in [(one, "has-inventory"), (two, "media-connected"), (three, "connected")] {
                assert_eq!(validation_status(&agent.get_host().await, id), "failure", "{id}");
            }
            assert_eq!(cluster.status().await, "insufficient");
        },
    );
}

#[test]
fn report_of_an_unbound_host_is_assessed_in_its_own_change() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        for (report, status, has_cores) in [
            (report_of(0), "known-unbound", "success"),
            (poor_report_of(0), "insufficient-unbound", "failure"),
        ] {
            let before = commits(service);
            agent.reply_to_step("inventory", &report).await.json_with_status(204);
            assert_eq!(commits(service), before + 1);
            let host = agent.get_host().await;
            assert_eq!(
                (&host["status"], validation_status(&host, "has-min-cpu-cores")),
                (&json!(status), json!(has_cores))
            );
        }
    });
}

#[test]
fn response_to_a_change_of_a_user_shows_the_assessed_status() {
    on_each_database(async |service| {
        let cluster = ReadyCluster::assemble(service).await;
        let without_vips = json!({"api_vips": [], "ingress_vips": []});
        let vips = json!({"api_vips": with_vips()["api_vips"], "ingress_vips": with_vips()["ingress_vips"]});
        for (change, status, has_vips) in
            [(without_vips, "pending-for-input", "failure"), (vips, "ready", "success")]
        {
            let changed_cluster = service.patch(&cluster.path(), &change).await.json_with_status(201);
            assert_eq!(changed_cluster["status"], status, "{changed_cluster:#}");
            assert_eq!(validation_status(&changed_cluster, "api-vips-defined"), has_vips);
            assert!(!cluster.is_stale().await);
        }

        let agent = &cluster.agents()[0];
        for (name, status, of_cluster) in
            [("node-1", "insufficient", "insufficient"), ("node-0", "known", "ready")]
        {
            let host = service.patch(&agent.path(), &json!({"host_name": name})).await.json_with_status(201);
            assert_eq!(
                (&host["status"], cluster.status().await),
                (&json!(status), of_cluster.to_owned()),
                "{host:#}"
            );
        }
        service.delete(&agent.path()).await.json_with_status(204);
        assert_eq!(cluster.status().await, "insufficient");
        assert!(!cluster.is_stale().await);
    });
}

#[test]
fn cluster_is_assessed_when_a_host_is_bound_or_unbound() {
    on_each_database(async |service| {
        let cluster = ReadyCluster::assemble(service).await;
        let agent = FakeAgent::register_with_report(service, "worker").await;
        let act = async |action: &str, body: Value| {
            let path = format!("{}/actions/{action}", agent.path());
            service.post(&path, &body).await.json_with_status(200)
        };
        let bound = act("bind", json!({"cluster_id": cluster.id()})).await;
        assert_eq!(
            (&bound["status"], cluster.status().await),
            (&json!("binding"), "insufficient".to_owned())
        );
        assert!(!cluster.is_stale().await);
        agent.register().await.json_with_status(201);
        assert_eq!(agent.host_status().await, "discovering");
        let unbound = act("unbind", json!({})).await;
        assert_eq!((&unbound["status"], cluster.status().await), (&json!("unbinding"), "ready".to_owned()));
        assert!(!cluster.is_stale().await);
    });
}

#[test]
fn second_assessment_of_unchanged_facts_writes_nothing() {
    on_each_url(async |url| {
        let service = start(url, |_| {}).await;
        let cluster = ReadyCluster::assemble(&service).await;
        // The assessment of the poor report writes hosts and the cluster. Further assessments of the same facts must
        // write nothing.
        cluster.report_poor(0).await;
        assert_eq!(cluster.assess().await, 1);
        let before = writes(&service).await;
        for _ in 0..3 {
            assert_eq!(cluster.assess().await, 0);
            // A response with an unchanged cluster causes no assessment.
            service.patch(&cluster.path(), &json!({"name": "demo"})).await.json_with_status(201);
        }
        assert_eq!(writes(&service).await, before);
        drop(cluster);
        service.stop().await;

        let service = start(url, |_| {}).await;
        let before = writes(&service).await;
        assert!(stale_clusters(&service).await.is_empty());
        service.inventory.assess_clusters().await.unwrap();
        assert_eq!(writes(&service).await, before);
        service.stop().await;
    });
}

#[test]
fn restart_with_other_validations_assesses_again() {
    on_each_url(async |url| {
        let service = start(url, |_| {}).await;
        let cluster = ReadyCluster::assemble(&service).await;
        let (id, host) = (cluster.id(), HostIdentity::of(&cluster.agents()[0]));
        drop(cluster);
        service.stop().await;

        let disabled = DisabledValidations::parse::<HostValidationId>("has-min-memory").unwrap();
        let service = start(url, |settings| settings.validations.disabled_host = disabled).await;
        assert_eq!(stale_clusters(&service).await, [id]);
        let agent = host.agent(&service);
        let memory = async || validation_status(&agent.get_host().await, "has-min-memory");
        assert_eq!(memory().await, "success");
        let hosts = u64::try_from(ReadyCluster::HOSTS).unwrap();
        assert_eq!(service.inventory.assess_clusters().await.unwrap(), hosts);
        assert_eq!(memory().await, "disabled");
        let before = writes(&service).await;
        service.inventory.assess_clusters().await.unwrap();
        assert_eq!(writes(&service).await, before);
        drop(agent);
        service.stop().await;
    });
}

/// Makes a cluster ready, sends a report without an assessment, and prints the id of the cluster.
#[test]
#[ignore = "the process that another test kills"]
fn process_that_reports() {
    let url = process_task();
    crate::store::block_on(async {
        let service = start(&url, |_| {}).await;
        let cluster = ReadyCluster::assemble(&service).await;
        cluster.report_poor(0).await;
        println!("reported {}", cluster.id());
        std::future::pending::<()>().await;
    });
}

/// Waits until the process has sent the report, kills the process, and returns the id of the cluster.
fn report_and_kill(url: &str) -> Uuid {
    let mut child = test_process("cluster_assessments::process_that_reports", url).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let id = lines.filter_map(|line| line.split_once("reported ")?.1.parse().ok()).next();
    child.kill().unwrap();
    child.wait().unwrap();
    id.unwrap()
}

#[test]
fn cluster_of_a_process_killed_before_the_assessment_is_found() {
    on_each_url(async |url| {
        let task = url.to_owned();
        let id = tokio::task::spawn_blocking(move || report_and_kill(&task)).await.unwrap();
        let service = start(url, |_| {}).await;
        let path = format!("/v2/clusters/{id}");
        let status = async || service.get(&path).await.json_with_status(200)["status"].clone();
        assert_eq!((stale_clusters(&service).await, status().await), (vec![id], json!("ready")));
        assert_eq!(service.inventory.assess_clusters().await.unwrap(), 1);
        assert_eq!((stale_clusters(&service).await, status().await), (vec![], json!("insufficient")));
        service.stop().await;
    });
}

#[test]
fn clock_that_differs_by_ten_minutes_makes_a_cluster_insufficient() {
    on_each_database_with_clock(
        |_| {},
        async |service, clock| {
            let cluster = ReadyCluster::assemble(service).await;
            let agent = &cluster.agents()[1];
            for (seconds, status, synchronized) in
                [(600, "insufficient", "failure"), (-600, "insufficient", "failure"), (0, "ready", "success")]
            {
                poll_at(agent, clock.now().timestamp() + seconds).await.json_with_status(200);
                cluster.assess().await;
                let response = cluster.get().await;
                assert_eq!(response["status"], status, "{seconds}");
                assert_eq!(validation_status(&response, "ntp-server-configured"), synchronized, "{seconds}");
                assert_eq!(cluster.host_statuses().await, KNOWN);
            }
        },
    );
}

#[test]
fn cluster_is_insufficient_while_its_hosts_are_silent() {
    on_each_database_with_clock(
        |_| {},
        async |service, clock| {
            let cluster = ReadyCluster::assemble(service).await;
            for _ in 0..2 {
                clock.advance(Settings::MAX_SILENCE + Duration::from_secs(1));
                let disconnected = service.inventory.disconnect_silent_hosts().await.unwrap();
                assert_eq!(disconnected, ReadyCluster::HOSTS);
                cluster.assess().await;
                assert_eq!(cluster.host_statuses().await, ["disconnected"; ReadyCluster::HOSTS]);
                assert_eq!(cluster.status().await, "insufficient");
                for agent in cluster.agents() {
                    poll(agent).await;
                }
                cluster.assess().await;
                assert_eq!(
                    (cluster.host_statuses().await, cluster.status().await),
                    (KNOWN.map(str::to_owned).to_vec(), "ready".to_owned())
                );
            }
            let statuses: Vec<_> = cluster
                .events("cluster_status_updated")
                .await
                .into_iter()
                .map(|event| event.message)
                .collect();
            let expected = ["ready", "insufficient", "ready", "insufficient", "ready"];
            assert!(
                statuses
                    .ends_with(&expected.map(|status| format!("Updated status of the cluster to {status}"))),
                "{statuses:?}"
            );
        },
    );
}

/// A cluster without hosts is assessed, too.
#[test]
fn cluster_whose_last_host_leaves_is_assessed() {
    on_each_database(async |service| {
        let fleet = Fleet::with_reports(service, 1, &json!({})).await;
        let cluster = ReadyCluster { fleet };
        cluster.assess().await;
        service.delete(&cluster.agents()[0].path()).await.json_with_status(204);
        assert!(!cluster.is_stale().await);
        assert_eq!(validation_status(&cluster.get().await, "sufficient-masters-count"), "failure");
        assert_eq!(validation_status(&cluster.get().await, "all-hosts-are-ready-to-install"), "success");
        let before = writes(service).await;
        cluster.assess().await;
        assert_eq!(writes(service).await, before);
    });
}
