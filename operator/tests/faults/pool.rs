//! Helpers for fault tests: they create and change objects, and wait for effects.

use std::time::Duration;

use http::{Method, Uri};
use inventory::id::{HostId, InfraEnvId};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use operator::crds::{Agent, InfraEnv};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use crate::hub::{Hub, HubUser, is_watch};
use crate::site::Site;

/// Maximum time to wait for an effect of the operator.
const LIMIT: Duration = Duration::from_secs(120);
const ID: &str = "infraenv.agent-install.openshift.io/infra-env-id";

static USER: OnceCell<HubUser> = OnceCell::const_new();

/// Returns a site in a new namespace, without an operator. Its user has all rights, even in a namespace that is being
/// deleted.
pub(crate) async fn open_site(hub: &'static Hub) -> Site {
    let user = USER.get_or_init(|| async {
        let user = hub.new_user();
        hub.allow_everything(&user.name).await;
        user
    });
    let user = user.await.clone();
    Site::prepare(hub, hub.namespace("faults").await, user).await
}

/// Creates an InfraEnv and its Secret. Returns the id of the infra-env after the image is available.
pub(crate) async fn create_pool(site: &Site) -> InfraEnvId {
    site.create_pull_secret("pull-secret").await;
    site.create_infra_env("pool", |_| ()).await;
    id_of(&site.wait_for_image("pool").await)
}

pub(crate) fn id_of(object: &InfraEnv) -> InfraEnvId {
    object.annotations()[ID].parse().unwrap()
}

/// Waits until `is_met` is true for the Agent of a host, and returns the Agent.
pub(crate) async fn wait_for_agent(site: &Site, host: HostId, is_met: impl Fn(&Agent) -> bool) -> Agent {
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

/// Waits until a condition holds.
pub(crate) async fn wait_until(what: &str, mut is_met: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !is_met().await {
        assert!(begin.elapsed() < LIMIT, "{what}: not after {LIMIT:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn edit_agent(site: &Site, host: HostId, spec: Value) {
    let patch = Patch::Merge(json!({"spec": spec}));
    site.api::<Agent>().patch(&host.to_string(), &PatchParams::default(), &patch).await.unwrap();
}

pub(crate) fn state(agent: &Agent) -> String {
    agent.status.as_ref().map(|status| status.debug_info.state.clone()).unwrap_or_default()
}

pub(crate) fn role(agent: &Agent) -> String {
    agent.status.as_ref().map(|status| status.role.clone()).unwrap_or_default()
}

/// Returns the reason of the Agent's condition of this type.
pub(crate) fn reason(agent: &Agent, type_: &str) -> String {
    let conditions = agent.status.iter().flat_map(|status| &status.conditions);
    let mut reasons = conditions.filter(|it| it.type_ == type_).map(|it| it.reason.clone());
    reasons.next().unwrap_or_default()
}

/// Returns `true` if the request is a list or a watch.
pub(crate) fn is_list_or_watch(method: &Method, uri: &Uri) -> bool {
    let names = uri.path().split_once("/namespaces/").map_or(0, |(_, rest)| rest.split('/').count());
    is_watch(uri) || *method == Method::GET && names == 2
}

/// Returns `true` if a controller has sent the request. Lists, watches and lease requests come from other tasks.
pub(crate) fn is_of_controller(method: &Method, uri: &Uri) -> bool {
    !is_list_or_watch(method, uri) && !uri.path().contains("/leases")
}

/// Returns the method and resource of a request, without object names.
pub(crate) fn summary(method: &Method, uri: &Uri) -> String {
    let rest = uri.path().split_once("/namespaces/").map_or("", |(_, rest)| rest);
    let segments: Vec<_> = rest.split('/').collect();
    match segments[..] {
        [_, plural] | [_, plural, _] => format!("{method} {plural}"),
        [_, plural, _, subresource] => format!("{method} {plural}/{subresource}"),
        _ => panic!("{uri}"),
    }
}
