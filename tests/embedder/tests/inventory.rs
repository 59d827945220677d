//! Operations of an inventory without HTTP, and simulated hosts.

use std::sync::Arc;
use std::time::Duration;

use agent::simulated::{HostGroup, Profile, SimulatedSite};
use agent::{Agent, AgentEnd, AgentError};
use assisted::client::{ApiClient, WatchOptions};
use assisted::cluster::ClusterCreateParams;
use assisted::host::HostStatus;
use assisted::infra_env::InfraEnvCreateParams;
use assisted::{HostId, Secret};
use embedder::provisioning::open_inventory;
use embedder::site::PULL_SECRET;
use futures_util::{StreamExt, TryStreamExt};
use inventory::ErrorKind;
use inventory::id::{HostKey, InfraEnvId};
use inventory::service::{Ensured, HostQuery, ResourceId, WatchEvent, WatchQuery};
use tokio::task::JoinSet;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Starts simulated hosts, and waits until they have sent their inventory. Returns the agents and the ids of the hosts.
async fn discover(
    client: &ApiClient,
    infra_env: InfraEnvId,
    count: u32,
) -> Result<(JoinSet<Result<AgentEnd, AgentError>>, Vec<HostId>), Box<dyn std::error::Error>> {
    let site = Arc::new(SimulatedSite::new(Profile::new([HostGroup::new("node", count)]), count, 1)?);
    let mut agents = JoinSet::new();
    for machine in site.machines() {
        agents.spawn(Agent::new(client.clone(), infra_env, "quay.io/example/agent:v1", machine)?.run());
    }
    let options = WatchOptions::default().interval(Duration::from_millis(50));
    let mut hosts = Vec::new();
    let mut changes = client.watch_hosts(infra_env, options);
    while hosts.len() < count.try_into()? {
        let change = changes.next().await.ok_or("the watch ended")??;
        let host = change.host();
        if !host.inventory.is_empty() && !hosts.contains(&host.id) {
            hosts.push(host.id);
        }
    }
    Ok((agents, hosts))
}

#[tokio::test]
async fn provisioning_service_needs_no_http() -> Outcome {
    let directory = tempfile::tempdir()?;
    let inventory = open_inventory(directory.path()).await?;
    let mut changes = inventory.watch(WatchQuery::default());
    assert!(matches!(changes.next().await, Some(WatchEvent::Resync { .. })));

    let id = InfraEnvId::fresh();
    let params = InfraEnvCreateParams::new("rack-1", Secret::new(PULL_SECRET));
    assert!(matches!(
        inventory.ensure_infra_env(id, params.clone().into(), None).await?,
        Ensured::Created(_)
    ));
    assert!(matches!(
        inventory.ensure_infra_env(id, params.clone().into(), None).await?,
        Ensured::Unchanged(_)
    ));
    let with_key = InfraEnvCreateParams { additional_ntp_sources: Some("192.0.2.1".to_owned()), ..params };
    assert!(matches!(inventory.ensure_infra_env(id, with_key.into(), None).await?, Ensured::Updated(_)));
    let Some(WatchEvent::Changed(change)) = changes.next().await else { return Err("no change".into()) };
    assert_eq!(change.resource, ResourceId::InfraEnv(id));

    // Only hosts use HTTP, here without a socket.
    let client = ApiClient::over(None, inventory.router())?;
    let (mut agents, ids) = discover(&client, id, 2).await?;
    let hosts: Vec<_> = inventory.hosts(HostQuery::of_infra_env(id)).try_collect().await?;
    assert_eq!(hosts.len(), 2);
    assert!(hosts.iter().all(|host| ids.contains(&host.id)));

    let cluster = ClusterCreateParams::new("edge", "4.18", Secret::new(PULL_SECRET));
    let cluster = inventory.register_cluster(cluster, None).await?.id;
    let key = HostKey { infra_env_id: id, host_id: ids[0] };
    inventory.bind_host(key, cluster, None).await?;
    // Restarts the hosts. Without a restart, the agents would receive the change with their next poll, within a minute.
    agents.shutdown().await;
    let (_agents, _) = discover(&client, id, 2).await?;
    let is_bound = |host: &assisted::host::Host| host.status != HostStatus::Binding;
    let options = WatchOptions::default().interval(Duration::from_millis(50));
    client.wait_for_host((id, ids[0]), is_bound, Duration::from_secs(60), &options).await?;
    let host = inventory.to_api_host(&inventory.host(key).await?).await?;
    assert_eq!(host.cluster_id, Some(cluster));
    let again = inventory.bind_host(key, cluster, None).await.err().ok_or("bound twice")?;
    assert_eq!(again.kind(), ErrorKind::Conflict, "{again}");
    inventory.unbind_host(key, None).await?;
    inventory.deregister_host(key, None).await?;
    assert_eq!(inventory.host(key).await.err().ok_or("found")?.kind(), ErrorKind::NotFound);
    let other = HostKey { host_id: ids[1], ..key };
    inventory.deregister_host(other, None).await?;
    let events = inventory.events(Default::default()).await?;
    let events: Vec<_> = events.events.try_collect().await?;
    assert!(events.iter().any(|event| event.host == Some(ids[0])), "{}", events.len());
    inventory.deregister_cluster(cluster, None).await?;
    inventory.deregister_infra_env(id, None).await?;
    assert_eq!(inventory.infra_env(id).await.err().ok_or("found")?.kind(), ErrorKind::NotFound);
    inventory.close().await;
    Ok(())
}
