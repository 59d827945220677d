//! Tests the controller of Agents: creation, status, edits, approval and deletion.

use std::time::Duration;

use assisted::host::HostUpdateParams;
use inventory::ErrorKind;
use inventory::id::{HostId, InfraEnvId};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use operator::crds::{Agent, AgentApproval, InfraEnv};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::machine::Machine;
use crate::site::{Site, hub};

const LIMIT: Duration = Duration::from_secs(60);

/// Returns a site whose InfraEnv has an image.
async fn open_pool(edit: impl FnOnce(&mut operator::crds::InfraEnvSpec)) -> Option<(Site, InfraEnvId)> {
    let site = Site::open(hub().await?).await;
    site.create_pull_secret("pull-secret").await;
    site.create_infra_env("pool", edit).await;
    let object = site.wait_for_image("pool").await;
    let id = object.annotations()["infraenv.agent-install.openshift.io/infra-env-id"].parse().unwrap();
    Some((site, id))
}

async fn wait_for_agent(site: &Site, host: HostId, is_met: impl Fn(&Agent) -> bool) -> Agent {
    let begin = Instant::now();
    loop {
        let agent = site.api::<Agent>().get_opt(&host.to_string()).await.unwrap();
        if let Some(agent) = agent.as_ref().filter(|agent| is_met(agent)) {
            return agent.clone();
        }
        assert!(begin.elapsed() < LIMIT, "{agent:#?}");
        sleep(Duration::from_millis(50)).await;
    }
}

fn condition(agent: &Agent, type_: &str) -> Option<(String, String, String)> {
    let condition = agent.status.as_ref()?.conditions.iter().find(|it| it.type_ == type_)?;
    Some((condition.status.clone(), condition.reason.clone(), condition.message.clone()))
}

fn reason(agent: &Agent, type_: &str) -> String {
    condition(agent, type_).map(|(_, reason, _)| reason).unwrap_or_default()
}

fn state(agent: &Agent) -> String {
    agent.status.as_ref().map(|status| status.debug_info.state.clone()).unwrap_or_default()
}

async fn patch(site: &Site, host: HostId, spec: Value) {
    let patch = Patch::Merge(json!({"spec": spec}));
    site.api::<Agent>().patch(&host.to_string(), &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn agent_status_shows_the_host_with_few_requests() {
    let labels = [("site".to_owned(), "a".to_owned())];
    let Some((site, id)) = open_pool(|spec| spec.agent_labels = labels.into()).await else { return };
    let mark = site.hub.audit_mark().await;
    let host = HostId::fresh();
    let machine = Machine::boot(&site.inventory, id, host).await;
    let agent = wait_for_agent(&site, host, |agent| agent.status.is_some()).await;
    let expected = [
        ("infraenvs.agent-install.openshift.io".to_owned(), "pool".to_owned()),
        ("site".to_owned(), "a".to_owned()),
    ];
    assert_eq!(*agent.labels(), expected.into());
    assert_eq!(agent.finalizers(), ["agent.agent-install.openshift.io/ai-deprovision"]);
    let [owner] = agent.owner_references() else { panic!("{agent:#?}") };
    let infra_env = site.api::<InfraEnv>().get("pool").await.unwrap();
    assert_eq!((owner.kind.as_str(), &owner.uid), ("InfraEnv", infra_env.metadata.uid.as_ref().unwrap()));
    assert_eq!((owner.controller, owner.block_owner_deletion), (None, None));
    assert!(!agent.spec.approved);
    assert_eq!(state(&agent), "discovering-unbound");
    assert_eq!(reason(&agent, "RequirementsMet"), "AgentNotReady");
    assert_eq!(reason(&agent, "Bound"), "Unbound");
    assert_eq!(site.requests_since(mark).await, ["create agents", "patch agents/status"]);

    let mark = site.hub.audit_mark().await;
    machine.report(33_000_000_000).await;
    machine.synchronize_clock().await;
    let agent =
        wait_for_agent(&site, host, |agent| reason(agent, "RequirementsMet") == "AgentIsNotApproved").await;
    let status = agent.status.clone().unwrap();
    assert_eq!(status.inventory.cpu.clock_megahertz, 2400);
    assert_eq!(status.inventory.disks[0].id, "disk-a");
    assert_eq!(status.ntp_sources[0].source_state, "synced");
    assert_eq!(status.role, "auto-assign");
    assert_eq!(condition(&agent, "Validated").unwrap().1, "ValidationsPassing");
    let labels = [
        ("storage-hasnonrotationaldisk", "true"),
        ("cpu-architecture", "x86_64"),
        ("cpu-virtenabled", "true"),
        ("host-manufacturer", "RedHat"),
        ("host-productname", "KVM"),
        ("host-isvirtual", "true"),
    ];
    for (name, value) in labels {
        assert_eq!(agent.labels()[&format!("inventory.agent-install.openshift.io/{name}")], value);
    }
    assert_eq!(agent.labels()["agent-install.openshift.io/clusterdeployment-namespace"], "");
    let requests = site.requests_since(mark).await;
    let metadata = requests.iter().filter(|request| *request == "patch agents").count();
    assert!(requests.len() <= 6 && metadata <= 3, "{requests:?}");
}

#[tokio::test]
async fn edits_of_an_agent_are_applied_to_the_host() {
    let Some((site, id)) = open_pool(|_| ()).await else { return };
    let host = HostId::fresh();
    let machine = Machine::boot(&site.inventory, id, host).await;
    machine.report(33_000_000_000).await;
    machine.synchronize_clock().await;
    wait_for_agent(&site, host, |agent| state(agent) == "known-unbound").await;
    patch(&site, host, json!({"approved": true})).await;
    wait_for_agent(&site, host, |agent| reason(agent, "RequirementsMet") == "AgentIsReady").await;
    let spec = json!({"hostname": "first", "role": "worker", "installation_disk_path": "/dev/sdb",
        "installerArgs": r#"["--append-karg", "a"]"#, "nodeLabels": {"zone": "a"}});
    patch(&site, host, spec).await;
    let has_role = |agent: &Agent| agent.status.as_ref().is_some_and(|status| status.role == "worker");
    let agent = wait_for_agent(&site, host, has_role).await;
    assert_eq!(agent.status.unwrap().installation_disk_id, "disk-b");
    let record = site.inventory.host(machine.key).await.unwrap();
    assert_eq!(record.choices.hostname, "first");
    assert!(record.choices.approved);
    let rename = HostUpdateParams { host_name: Some("second".to_owned()), ..HostUpdateParams::default() };
    let error = site.inventory.update_host(machine.key, rename, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let suffix = format!("is defined by Agent {}/{host}; change that object instead", site.namespace);
    assert!(error.reason().ends_with(&suffix), "{error}");
    let rows = [
        (
            json!({"hostname": "not valid!"}),
            json!({"hostname": "first"}),
            "InputError",
            "Hostname does not pass",
        ),
        (
            json!({"role": "king"}),
            json!({"role": "worker"}),
            "InputError",
            "Requested role (king) is invalid",
        ),
        (json!({"installerArgs": "x"}), json!({"installerArgs": null}), "InputError", "Fail to unmarshal"),
        (
            json!({"ignitionConfigOverrides": "{"}),
            json!({"ignitionConfigOverrides": null}),
            "InputError",
            "error parsing ignition",
        ),
        (
            json!({"installation_disk_path": "/dev/none"}),
            json!({"installation_disk_path": null}),
            "InputError",
            "Requested installation disk is not part of the host's valid disks",
        ),
        (
            json!({"clusterDeploymentName": {"name": "nowhere", "namespace": "ns"}}),
            json!({"clusterDeploymentName": null}),
            "InputError",
            "failed to get clusterDeployment with name nowhere in namespace ns",
        ),
    ];
    for (fault, repair, expected, text) in rows {
        patch(&site, host, fault.clone()).await;
        let agent = wait_for_agent(&site, host, |agent| reason(agent, "SpecSynced") == expected).await;
        let message = condition(&agent, "SpecSynced").unwrap().2;
        assert!(message.contains(text), "{fault}: {message}");
        patch(&site, host, repair).await;
        wait_for_agent(&site, host, |agent| reason(agent, "SpecSynced") == "SyncOK").await;
    }
    // A user can withdraw the approval even if another value is invalid.
    patch(&site, host, json!({"role": "king", "approved": false})).await;
    wait_for_agent(&site, host, |agent| reason(agent, "RequirementsMet") == "AgentIsNotApproved").await;
    assert!(!site.inventory.host(machine.key).await.unwrap().choices.approved);
}

#[tokio::test]
async fn agents_are_approved_once_by_their_infra_env() {
    let approval = AgentApproval { auto_approve: true };
    let Some((site, id)) = open_pool(|spec| spec.agent_approval = Some(approval)).await else { return };
    let host = HostId::fresh();
    let machine = Machine::boot(&site.inventory, id, host).await;
    wait_for_agent(&site, host, |agent| agent.spec.approved && agent.status.is_some()).await;
    patch(&site, host, json!({"approved": false})).await;
    machine.report(33_000_000_000).await;
    machine.synchronize_clock().await;
    wait_for_agent(&site, host, |agent| reason(agent, "RequirementsMet") == "AgentIsNotApproved").await;
    assert!(!site.inventory.host(machine.key).await.unwrap().choices.approved);
}

#[tokio::test]
async fn deleted_agent_deletes_its_host_until_the_machine_registers_again() {
    let Some((site, id)) = open_pool(|_| ()).await else { return };
    let host = HostId::fresh();
    let machine = Machine::boot(&site.inventory, id, host).await;
    let first = wait_for_agent(&site, host, |agent| agent.status.is_some()).await;
    site.delete::<Agent>(&host.to_string()).await;
    site.wait_until_gone::<Agent>(&host.to_string()).await;
    let error = site.inventory.host(machine.key).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    Machine::boot(&site.inventory, id, host).await;
    let second = wait_for_agent(&site, host, |agent| agent.status.is_some()).await;
    assert_ne!(first.uid(), second.uid());
}

#[tokio::test]
async fn deletion_of_an_infra_env_deletes_its_agents_and_hosts() {
    let Some((site, id)) = open_pool(|_| ()).await else { return };
    let host = HostId::fresh();
    let machine = Machine::boot(&site.inventory, id, host).await;
    wait_for_agent(&site, host, |agent| agent.status.is_some()).await;
    site.delete::<InfraEnv>("pool").await;
    site.wait_until_gone::<InfraEnv>("pool").await;
    site.wait_until_gone::<Agent>(&host.to_string()).await;
    assert_eq!(site.inventory.host(machine.key).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn booting_the_image_of_another_infra_env_resets_the_agent() {
    let Some((site, id)) = open_pool(|_| ()).await else { return };
    site.create_infra_env("other", |_| ()).await;
    let object = site.wait_for_image("other").await;
    let other = object.annotations()["infraenv.agent-install.openshift.io/infra-env-id"].parse().unwrap();
    let host = HostId::fresh();
    let machine = Machine::boot(&site.inventory, id, host).await;
    wait_for_agent(&site, host, |agent| agent.status.is_some()).await;
    patch(&site, host, json!({"approved": true, "hostname": "first"})).await;
    sleep(Duration::from_secs(1)).await;
    Machine::boot(&site.inventory, other, host).await;
    let label = "infraenvs.agent-install.openshift.io";
    let agent = wait_for_agent(&site, host, |agent| agent.labels()[label] == "other").await;
    assert_eq!((agent.spec.approved, &agent.spec.hostname), (false, &None));
    let begin = Instant::now();
    while site.inventory.host(machine.key).await.is_ok() {
        assert!(begin.elapsed() < LIMIT);
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn reports_without_visible_changes_cause_no_writes() {
    let Some((site, id)) = open_pool(|_| ()).await else { return };
    let host = HostId::fresh();
    let machine = Machine::boot(&site.inventory, id, host).await;
    machine.report(33_000_000_000).await;
    machine.synchronize_clock().await;
    wait_for_agent(&site, host, |agent| state(agent) == "known-unbound").await;
    sleep(Duration::from_secs(3)).await;
    let mark = site.hub.audit_mark().await;
    for _ in 0..10 {
        machine.poll().await;
        machine.report(33_000_000_000).await;
        machine.synchronize_clock().await;
        sleep(Duration::from_millis(300)).await;
    }
    sleep(Duration::from_secs(2)).await;
    assert_eq!(site.requests_since(mark).await, [""; 0]);
}

#[tokio::test]
async fn running_machine_continues_after_the_loss_of_the_database() {
    let Some((mut site, id)) = open_pool(|_| ()).await else { return };
    let host = HostId::fresh();
    let machine = Machine::boot(&site.inventory, id, host).await;
    machine.report(33_000_000_000).await;
    machine.synchronize_clock().await;
    wait_for_agent(&site, host, |agent| state(agent) == "known-unbound").await;
    patch(&site, host, json!({"approved": true, "hostname": "first"})).await;
    let before =
        wait_for_agent(&site, host, |agent| reason(agent, "RequirementsMet") == "AgentIsReady").await;
    site.lose_database().await;
    let machine = Machine { key: machine.key, inventory: site.inventory.clone() };
    let begin = Instant::now();
    while !machine.poll().await.is_success() {
        assert!(begin.elapsed() < LIMIT);
        sleep(Duration::from_millis(50)).await;
    }
    machine.report(33_000_000_000).await;
    machine.synchronize_clock().await;
    let begin = Instant::now();
    loop {
        let record = site.inventory.host(machine.key).await.unwrap();
        if record.choices.approved && record.choices.hostname == "first" {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "{record:#?}");
        sleep(Duration::from_millis(50)).await;
    }
    let after = wait_for_agent(&site, host, |agent| reason(agent, "RequirementsMet") == "AgentIsReady").await;
    assert_eq!((after.uid(), state(&after)), (before.uid(), state(&before)));
}
