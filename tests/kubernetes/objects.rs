//! Creates the Kubernetes objects that users of the hub create.

use k8s_openapi::api::core::v1::Secret;
use kindling::assisted::InfraEnvId;
use kube::Client;
use kube::api::{Api, PostParams};
use operator::crds::InfraEnv;
use serde_json::{Value, json};

const RECORD_ID: &str = "infraenv.agent-install.openshift.io/infra-env-id";

fn object<O: serde::de::DeserializeOwned>(value: Value) -> O {
    serde_json::from_value(value).unwrap()
}

pub(crate) async fn create_infra_envs(admin: &Client, namespace: &str, prefix: &str, count: usize) {
    let api: Api<InfraEnv> = Api::namespaced(admin.clone(), namespace);
    for number in 0..count {
        let name = format!("{prefix}-{number}");
        let infra_env =
            object(json!({"metadata": {"name": name}, "spec": {"pullSecretRef": {"name": "pull-secret"}}}));
        api.create(&PostParams::default(), &infra_env).await.unwrap();
    }
}

pub(crate) async fn create_pull_secret(admin: &Client, namespace: &str) {
    let secret: Secret =
        object(json!({"metadata": {"name": "pull-secret"}, "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#}}));
    Api::namespaced(admin.clone(), namespace).create(&PostParams::default(), &secret).await.unwrap();
}

pub(crate) async fn infra_env_id(admin: &Client, namespace: &str, name: &str) -> InfraEnvId {
    record_id(&Api::namespaced(admin.clone(), namespace).get(name).await.unwrap())
}

/// Returns the id of an InfraEnv's record.
pub(crate) fn record_id(infra_env: &InfraEnv) -> InfraEnvId {
    infra_env.metadata.annotations.as_ref().unwrap()[RECORD_ID].parse().unwrap()
}
