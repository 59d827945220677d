//! Tests changes that users make while no replica is running.

use inventory::ErrorKind;
use inventory::id::HostId;
use kube::ResourceExt as _;
use operator::crds::Agent;
use serde_json::json;

use crate::machine::Machine;
use crate::pool::{create_pool, open_site, state, wait_for_agent, wait_until};
use crate::site::{Site, hub};

/// Returns a site with an InfraEnv and the Agent of a machine.
async fn open_pool() -> Option<(Site, Machine)> {
    let mut site = open_site(hub().await?).await;
    site.start_operator("replica", site.client());
    let id = create_pool(&site).await;
    let machine = Machine::boot(&site.inventory, id, HostId::fresh()).await;
    wait_for_agent(&site, machine.key.host_id, |agent| agent.status.is_some()).await;
    Some((site, machine))
}

#[tokio::test]
async fn agent_deleted_while_no_replica_runs_stays_deleted() {
    let Some((mut site, machine)) = open_pool().await else { return };
    let name = machine.key.host_id.to_string();
    site.kill_operators().await;
    site.delete::<Agent>(&name).await;
    site.start_operator("replica", site.client());
    site.wait_until_gone::<Agent>(&name).await;
    assert_eq!(site.inventory.host(machine.key).await.unwrap_err().kind(), ErrorKind::NotFound);
    // Wait for the Agent of another machine, which shows that the InfraEnv has been reconciled.
    let other = Machine::boot(&site.inventory, machine.key.infra_env_id, HostId::fresh()).await;
    wait_for_agent(&site, other.key.host_id, |agent| agent.status.is_some()).await;
    assert!(site.api::<Agent>().get_opt(&name).await.unwrap().is_none());
}

#[tokio::test]
async fn agents_follow_their_hosts_while_their_infra_env_has_a_fault() {
    let Some((mut site, machine)) = open_pool().await else { return };
    site.patch_spec("pool", json!({"pullSecretRef": {"name": "none"}})).await;
    site.kill_operators().await;
    site.start_operator("replica", site.client());
    machine.report(33_000_000_000).await;
    machine.synchronize_clock().await;
    wait_for_agent(&site, machine.key.host_id, |agent| state(agent) == "known-unbound").await;
    let other = Machine::boot(&site.inventory, machine.key.infra_env_id, HostId::fresh()).await;
    let agent = wait_for_agent(&site, other.key.host_id, |agent| agent.status.is_some()).await;
    assert_eq!(agent.owner_references().len(), 1);
}

#[tokio::test]
async fn deleting_an_infra_env_while_no_replica_runs_deletes_its_agents() {
    let Some((mut site, machine)) = open_pool().await else { return };
    site.kill_operators().await;
    site.delete::<operator::crds::InfraEnv>("pool").await;
    site.start_operator("replica", site.client());
    site.wait_until_gone::<operator::crds::InfraEnv>("pool").await;
    site.wait_until_gone::<Agent>(&machine.key.host_id.to_string()).await;
    wait_until("the host is deleted", async || site.inventory.host(machine.key).await.is_err()).await;
}
