//! Duration, CPU time and writes with as many objects as on a large hub, to compare with the Assisted Service on such a
//! hub.

use std::time::Duration;

use kube::Client;
use kube::api::{Api, ListParams};
use operator::crds::{Agent, InfraEnv};

use crate::hub::Hub;
use crate::objects::{create_infra_envs, create_pull_secret, infra_env_id, record_id};
use crate::service::{Cost, Service};

/// Maximum duration of one part.
const LIMIT: Duration = Duration::from_secs(1_200);
const MINUTE: Duration = Duration::from_secs(60);

/// Asserts that each Agent shows the inventory of its host. Returns the names of the Agents, which are host ids.
async fn assert_inventories(admin: &Client, namespace: &str, count: usize) -> Vec<String> {
    let api: Api<Agent> = Api::namespaced(admin.clone(), namespace);
    let (mut page, mut names) = (ListParams::default().limit(500), Vec::new());
    loop {
        let agents = api.list(&page).await.unwrap();
        for agent in &agents.items {
            let status = agent.status.as_ref().unwrap();
            assert!(!status.inventory.hostname.is_empty(), "{:?}", agent.metadata.name);
        }
        names.extend(agents.items.into_iter().map(|agent| agent.metadata.name.unwrap()));
        match agents.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names.len(), count);
    names
}

/// Reads all infra-envs and hosts by the REST API. This fills the caches of the inventory, which are bounded and not part
/// of the controllers.
async fn read_records(service: &Service<'_>, admin: &Client, hosts_in: &str, hosts: &[String]) {
    let infra_envs = Api::<InfraEnv>::namespaced(admin.clone(), &service.namespace);
    for infra_env in infra_envs.list(&ListParams::default()).await.unwrap() {
        service.get(&format!("/v2/infra-envs/{}", record_id(&infra_env))).await;
    }
    for host in hosts {
        service.get(&format!("/v2/infra-envs/{hosts_in}/hosts/{host}")).await;
    }
}

fn print(work: &str, cost: &Cost) {
    let (time, cpu) = (cost.time.as_secs_f64(), cost.cpu.as_secs_f64());
    println!("{work}: {time:.1} s, {cpu:.2} s of CPU time, {} writes {:?}", cost.total_writes(), cost.writes);
}

/// The same work with the Assisted Service: 200 InfraEnvs in 34 s with 1.6 s of CPU time and 414 writes; 300 hosts with
/// their inventories in 99 s with 13.1 s and 2,193 writes; then a minute with 263 writes.
#[test]
#[ignore = "measures for minutes; .ci/full runs it"]
fn work_of_a_hub_needs_few_writes() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let Some(hub) = Hub::shared().await else { return };
        hub.install_crds(&operator::crds::to_yaml().unwrap()).await;
        let service = Service::start(hub).await;
        let (admin, namespace) = (hub.admin(), service.namespace.clone());
        create_pull_secret(&admin, &namespace).await;
        let images = service
            .cost_until(("infraenvs", 200), LIMIT, async || {
                create_infra_envs(&admin, &namespace, "site", 200).await;
            })
            .await;
        print("200 InfraEnvs", &images);
        let id = infra_env_id(&admin, &namespace, "site-0").await.to_string();
        let arguments = ["simulate", "--url", &service.url, "--infra-env", &id, "--hosts", "300"];
        let arguments = [&arguments[..], &["--start-rate", "300", "--duration", "10m"]].concat();
        let mut hosts = None;
        let agents =
            service.cost_until(("agents", 300), LIMIT, async || hosts = Some(service.run(&arguments))).await;
        print("300 hosts with inventories", &agents);
        assert_inventories(&admin, &namespace, 300).await;
        let quiet = service.cost_of(MINUTE).await;
        print("a minute without changes", &quiet);
        let mut hosts = hosts.unwrap();
        hosts.kill().unwrap();
        hosts.wait().unwrap();
        assert_eq!(quiet.total_writes(), 0, "{quiet:?}");
        // Each InfraEnv needs two writes: one for the id and the finalizer, and one for the status.
        assert!(images.total_writes() <= 401, "{images:?}");
        // The bound is above a quarter of the Assisted Service's 2,193 writes, because each host needs a write for its
        // creation and another one for its inventory.
        assert!(agents.total_writes() <= 848, "{agents:?}");
    });
}

/// 1,000 InfraEnvs and 10,000 Agents: duration, memory, and a restart that writes nothing.
#[test]
#[ignore = "measures for minutes; .ci/full runs it"]
fn restart_of_a_large_hub_writes_nothing() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let Some(hub) = Hub::shared().await else { return };
        hub.install_crds(&operator::crds::to_yaml().unwrap()).await;
        let mut service = Service::start(hub).await;
        let (admin, namespace) = (hub.admin(), service.namespace.clone());
        create_pull_secret(&admin, &namespace).await;
        let images = service
            .cost_until(("infraenvs", 1_000), LIMIT, async || {
                create_infra_envs(&admin, &namespace, "site", 1_000).await;
            })
            .await;
        print("1,000 InfraEnvs", &images);
        let id = infra_env_id(&admin, &namespace, "site-0").await.to_string();
        let arguments = ["simulate", "--url", &service.url, "--infra-env", &id, "--hosts", "10000"];
        let mut hosts = None;
        let agents = service
            .cost_until(("agents", 10_000), LIMIT, async || hosts = Some(service.run(&arguments)))
            .await;
        print("10,000 hosts with inventories", &agents);
        let mut hosts = hosts.unwrap();
        hosts.kill().unwrap();
        hosts.wait().unwrap();
        let names = assert_inventories(&admin, &namespace, 10_000).await;
        service.restart(true);
        let restart = service.cost_of(MINUTE).await;
        print("a minute after a restart", &restart);
        let with_controllers = service.memory();
        service.restart(false);
        read_records(&service, &admin, &id, &names).await;
        service.cost_of(MINUTE / 2).await;
        let without = service.memory();
        println!("memory: {with_controllers} bytes with the controllers, {without} bytes without");
        assert_eq!(restart.total_writes(), 0, "{restart:?}");
        assert!(with_controllers.saturating_sub(without) / 11_000 <= 8 << 10);
    });
}
