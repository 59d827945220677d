//! Service accounts with a subset of the kustomization's permissions.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{Api, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::hub::Hub;
use crate::permission::{Permission, Scope};
use crate::replica::Place;

/// Creates a service account with all permissions except one, and two namespaces for it.
pub(crate) async fn account_without(hub: &'static Hub, refused: &Permission) -> Place {
    let (namespace, lease_namespace) = (hub.namespace("site").await, hub.namespace("lease").await);
    let suffix = format!("-{namespace}");
    let mut roles: BTreeMap<(Scope, String), Vec<Permission>> = BTreeMap::new();
    for permission in Permission::shipped() {
        let permissions = roles.entry((permission.scope, permission.role.clone())).or_default();
        if permission != *refused {
            permissions.push(permission.with_suffix(&suffix));
        }
    }
    let token = hub.token_of_service_account(&lease_namespace, "kindling").await;
    let place = Place {
        hub,
        user: format!("system:serviceaccount:{lease_namespace}:kindling"),
        token,
        namespaces: vec![namespace.clone()],
        namespace,
        lease_namespace,
        suffix,
    };
    for ((scope, role), permissions) in &roles {
        grant(&place, (*scope, role), permissions).await;
    }
    wait_for_effect(&place, refused, roles.values().flatten()).await;
    place
}

/// Creates a role with these permissions, and binds it.
async fn grant(place: &Place, (scope, role): (Scope, &str), permissions: &[Permission]) {
    let name = format!("{role}{}", place.suffix);
    let rules: Vec<Value> = permissions.iter().map(Permission::rule).collect();
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let kind = if scope == Scope::Lease { "Role" } else { "ClusterRole" };
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "kindling", "namespace": place.lease_namespace}],
    });
    let admin = place.hub.admin();
    let namespaced = |namespace: &str| Api::<RoleBinding>::namespaced(admin.clone(), namespace);
    match scope {
        Scope::Lease => {
            create(Api::<Role>::namespaced(admin.clone(), &place.lease_namespace), role).await;
            create(namespaced(&place.lease_namespace), binding).await;
        }
        Scope::Resources => {
            create(Api::<ClusterRole>::all(admin.clone()), role).await;
            create(namespaced(&place.namespace), binding).await;
        }
        Scope::Cluster => {
            create(Api::<ClusterRole>::all(admin.clone()), role).await;
            create(Api::<ClusterRoleBinding>::all(admin.clone()), binding).await;
        }
    }
}

async fn create<K>(api: Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + serde::Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Waits until the API server applies all roles. Checks that it refuses only the missing permission.
async fn wait_for_effect<'a>(
    place: &Place,
    refused: &Permission,
    permissions: impl Iterator<Item = &'a Permission>,
) {
    for permission in permissions {
        while !is_allowed(place, permission).await {
            sleep(Duration::from_millis(20)).await;
        }
    }
    let refused = refused.clone().with_suffix(&place.suffix);
    assert!(!is_allowed(place, &refused).await, "{refused:?}");
}

/// Returns `true` if the API server grants this permission to the service account.
pub(crate) async fn is_allowed(place: &Place, permission: &Permission) -> bool {
    let namespace = match permission.scope {
        Scope::Resources => place.namespace.as_str(),
        Scope::Cluster => "",
        Scope::Lease => &place.lease_namespace,
    };
    let (resource, subresource) = permission.resource.split_once('/').unwrap_or((&permission.resource, ""));
    let review = json!({"spec": {"resourceAttributes": {
        "namespace": namespace,
        "group": permission.group,
        "resource": resource,
        "subresource": subresource,
        "verb": permission.verb,
        "name": permission.names.first().map_or("", String::as_str),
    }}});
    let review: SelfSubjectAccessReview = serde_json::from_value(review).unwrap();
    let review = Api::all(place.client()).create(&PostParams::default(), &review).await.unwrap();
    review.status.unwrap().allowed
}
