//! Requires that the kustomization grants exactly the rights that the operator uses.

use futures_util::StreamExt as _;
use futures_util::stream;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, DeleteParams, ListParams};
use tokio::sync::Mutex;

use crate::grant::account_without;
use crate::hub::{AuditEntry, Hub};
use crate::kustomization::{NAMESPACE, installed};
use crate::permission::{Permission, Scope};
use crate::refusals::Refusals;
use crate::replica::Place;
use crate::scenario;

/// Number of scenarios that run concurrently.
const CONCURRENT: usize = 8;

/// A lock for tests whose operator reconciles all namespaces, because such an operator would also reconcile the objects
/// of another test.
static ALL_NAMESPACES: Mutex<()> = Mutex::const_new(());

/// Returns `true` if the request counts as a request of the operator.
fn is_counted(entry: &AuditEntry) -> bool {
    entry.resource != "selfsubjectaccessreviews"
}

/// Returns the permission that a request uses. If several apply, returns the permission with the smallest scope.
fn used<'a>(permissions: &'a [Permission], entry: &AuditEntry) -> Option<&'a Permission> {
    permissions.iter().filter(|permission| permission.covers(entry, NAMESPACE)).max_by_key(|it| it.scope)
}

async fn shipped_account(hub: &'static Hub) -> Place {
    Place {
        hub,
        user: format!("system:serviceaccount:{NAMESPACE}:kindling"),
        token: hub.token_of_service_account(NAMESPACE, "kindling").await,
        namespaces: Vec::new(),
        namespace: hub.namespace("site").await,
        lease_namespace: NAMESPACE.to_owned(),
        suffix: String::new(),
    }
}

#[tokio::test]
async fn operator_uses_each_of_its_rights_and_needs_no_other() {
    let Some((hub, _)) = installed().await else { return };
    let _guard = ALL_NAMESPACES.lock().await;
    let place = shipped_account(hub).await;
    let mark = hub.audit_mark().await;
    scenario::run(&place).await;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(hub.admin());
    let _ = configurations.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();

    let is_own = |entry: &AuditEntry| entry.user == place.user && is_counted(entry);
    let requests = hub.audit_since(mark, is_own).await;
    let permissions = Permission::shipped();
    for request in &requests {
        assert!(request.code != 403 && used(&permissions, request).is_some(), "{request:#?}");
    }
    let unused = permissions.iter().map(Permission::refused_without).filter(|permission| {
        let is_user = |request: &&AuditEntry| used(&permissions, request) == Some(permission);
        !requests.iter().any(|request| is_user(&request))
    });
    assert_eq!(unused.collect::<Vec<_>>(), []);
    // The operator must also use each object name that a rule contains.
    let names = permissions
        .iter()
        .filter(|permission| permission.scope == Scope::Cluster && permission.verb == "get");
    for name in names.flat_map(|permission| &permission.names) {
        assert!(requests.iter().any(|request| request.name == *name), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_needs_each_of_its_rights() {
    let Some((hub, _)) = installed().await else { return };
    let _guard = ALL_NAMESPACES.lock().await;
    let refusals = Refusals::follow(hub).await;
    let permissions = Permission::shipped();
    assert!(permissions.len() > 30);
    let checks = permissions.iter().map(|permission| require_refusal(hub, &refusals, permission));
    stream::iter(checks).buffer_unordered(CONCURRENT).collect::<()>().await;
}

/// Requires that without a permission, the first refused request of the operator needs this permission.
async fn require_refusal(hub: &'static Hub, refusals: &Refusals, removed: &Permission) {
    let place = account_without(hub, removed).await;
    let refused = tokio::select! {
        refused = refusals.wait_for(&place.user) => refused,
        () = scenario::run(&place) => panic!("the operator does not need {removed:?}"),
    };
    let expected = removed.refused_without().with_suffix(&place.suffix);
    for request in refused {
        assert!(expected.covers(&request, &place.lease_namespace), "{expected:?}: {request:#?}");
    }
}
