//! Tests the controller of InfraEnvs: creation, edits, references, deletion and restoration.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use http::Request;
use inventory::ErrorKind;
use inventory::auth::{KeyTexts, LocalKeys, Policy};
use inventory::id::{HostId, InfraEnvId};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use operator::crds::{Agent, ClusterRef, InfraEnv, InfraEnvSpec, MirrorRef};
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::ServiceExt as _;

use crate::hub::Hub;
use crate::machine::Machine;
use crate::site::{Site, hub, image_created, iso_url};

const FINALIZER: &str = "infraenv.agent-install.openshift.io/ai-deprovision";
const ID: &str = "infraenv.agent-install.openshift.io/infra-env-id";

const REGISTRIES: &str =
    "[[registry]]\nlocation = 'quay.io'\n[[registry.mirror]]\nlocation = 'mirror.example:5000'\n";

fn id_of(object: &InfraEnv) -> InfraEnvId {
    object.annotations()[ID].parse().unwrap()
}

#[tokio::test]
async fn infra_env_costs_one_metadata_patch_and_one_status_patch() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    site.create_pull_secret("pull-secret").await;
    let mark = hub.audit_mark().await;
    let created = site.create_infra_env("one", |_| ()).await;
    let object = site.wait_for_image("one").await;
    assert_eq!(object.finalizers(), [FINALIZER]);
    assert_eq!(object.annotations()[ID], created.uid().unwrap());
    let (status, reason, _) = image_created(&object).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "InfraEnvAvailable"));
    let status = object.status.clone().unwrap();
    let id = id_of(&object);
    assert!(status.iso_download_url.starts_with(&format!("http://192.0.2.1/byid/{id}/4.18/x86_64/")));
    assert!(status.created_time.is_some());
    let label = "infraenvs.agent-install.openshift.io";
    assert_eq!(status.agent_label_selector.match_labels[label], "one");
    let files = "http://192.0.2.1/api/assisted-install/v2/infra-envs";
    let artifacts = status.boot_artifacts;
    assert_eq!(artifacts.kernel, "http://192.0.2.1/boot-artifacts/kernel?arch=x86_64&version=4.18");
    assert_eq!(artifacts.rootfs, "http://192.0.2.1/boot-artifacts/rootfs?arch=x86_64&version=4.18");
    assert!(artifacts.initrd.starts_with(&format!("http://192.0.2.1/images/{id}/")), "{}", artifacts.initrd);
    assert_eq!(artifacts.ipxe_script, format!("{files}/{id}/downloads/files?file_name=ipxe-script"));
    assert_eq!(
        artifacts.discovery_ignition_url,
        format!("{files}/{id}/downloads/files?file_name=discovery.ign")
    );
    sleep(Duration::from_secs(3)).await;
    let expected = ["patch infraenvs", "get secrets", "patch secrets", "patch infraenvs/status"];
    assert_eq!(site.requests_since(mark).await, expected);
    // Another InfraEnv with the same Secret does not read it again.
    let mark = hub.audit_mark().await;
    site.create_infra_env("two", |_| ()).await;
    let other = site.wait_for_image("two").await;
    assert_eq!(site.requests_since(mark).await, ["patch infraenvs", "patch infraenvs/status"]);
    let pull_secret = async |id| site.inventory.infra_env(id).await.unwrap().image.pull_secret;
    assert_eq!(pull_secret(id_of(&other)).await.reveal(), pull_secret(id).await.reveal());
    let secret = site.api::<Secret>().get("pull-secret").await.unwrap();
    for label in ["agent-install.openshift.io/watch", "cluster.open-cluster-management.io/backup"] {
        assert_eq!(secret.labels()[label], "true");
    }
    let record = site.inventory.infra_env(id).await.unwrap();
    assert_eq!((record.name.as_str(), record.owner.unwrap().name.as_str()), ("one", "one"));
}

#[tokio::test]
async fn status_follows_edits_and_faults_of_the_spec() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    site.create_pull_secret("pull-secret").await;
    site.create_infra_env("one", |_| ()).await;
    let first = iso_url(&site.wait_for_image("one").await);
    let rows = [
        (
            json!({"kernelArguments": [{"operation": "delete", "value": "a"}]}),
            json!({"kernelArguments": null}),
            "Failed to create image: Only kernel argument operation append is supported.  Got delete",
        ),
        (
            json!({"proxy": {"httpProxy": "p"}}),
            json!({"proxy": null}),
            "Failed to create image: Failed to validate HTTP Proxy: proxy.http_proxy \"p\": does not start \
             with http:// or https://",
        ),
        (
            json!({"osImageVersion": "4.99"}),
            json!({"osImageVersion": null}),
            "Failed to create image: No OS image for Openshift version 4.99 and architecture x86_64: The requested OS \
             image for version (4.99) and CPU architecture (x86_64) isn't specified in OS images list",
        ),
        (
            json!({"pullSecretRef": {"name": "none"}}),
            json!({"pullSecretRef": {"name": "pull-secret"}}),
            &format!(
                "Failed to create image due to an internal error: failed to find secret none: failed to get secret \
                 {}/none from API: secrets \"none\" not found",
                site.namespace
            ),
        ),
    ];
    for (fault, repair, message) in rows {
        site.patch_spec("one", fault).await;
        let status = site.wait_for_message("one", message).await.status.unwrap();
        assert_eq!((status.iso_download_url.as_str(), status.created_time), ("", None), "{message}");
        site.patch_spec("one", repair).await;
        assert_eq!(iso_url(&site.wait_for_image("one").await), first, "{message}");
    }
    site.patch_spec("one", json!({"additionalNTPSources": ["a.example.com"]})).await;
    let second = iso_url(&site.wait_for("one", |it| iso_url(it) != first).await);
    assert_ne!(second, first);
    site.patch_spec("one", json!({"additionalNTPSources": null})).await;
    site.wait_for("one", |it| iso_url(it) == first).await;
}

#[tokio::test]
async fn infra_env_waits_for_its_secret_and_follows_it() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    site.create_infra_env("early", |_| ()).await;
    let message = format!(
        "Failed to create image due to an internal error: failed to find secret pull-secret: failed to get secret \
         {}/pull-secret from API: secrets \"pull-secret\" not found",
        site.namespace
    );
    site.wait_for_message("early", &message).await;
    site.create_pull_secret("pull-secret").await;
    let first = iso_url(&site.wait_for_image("early").await);
    let other = json!({"stringData": {".dockerconfigjson": r#"{"auths":{"quay.io":{"auth":"YTpi"}}}"#}});
    let secrets = site.api::<Secret>();
    secrets.patch("pull-secret", &PatchParams::default(), &Patch::Merge(&other)).await.unwrap();
    site.wait_for("early", |it| iso_url(it) != first).await;
}

#[tokio::test]
async fn deletion_removes_the_infra_env_and_then_the_finalizer() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    site.create_pull_secret("pull-secret").await;
    site.create_infra_env("one", |_| ()).await;
    let id = id_of(&site.wait_for_image("one").await);
    let mark = hub.audit_mark().await;
    site.delete::<InfraEnv>("one").await;
    site.wait_until_gone::<InfraEnv>("one").await;
    let error = site.inventory.infra_env(id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(site.requests_since(mark).await, ["patch infraenvs"]);
}

#[tokio::test]
async fn infra_env_with_a_cluster_reports_a_missing_cluster_deployment() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    let cluster = ClusterRef { name: "nowhere".to_owned(), namespace: "ns".to_owned() };
    site.create_infra_env("lost", |spec| spec.cluster_ref = Some(cluster)).await;
    let object = site.wait_for("lost", |it| image_created(it).is_some()).await;
    let (status, reason, _) = image_created(&object).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "MissingClusterDeployment"));
}

#[tokio::test]
async fn lost_database_is_restored_with_the_same_ids_and_urls() {
    let Some(hub) = hub().await else { return };
    lose_and_restore(hub, Policy::Open).await;
}

#[tokio::test]
async fn lost_database_is_restored_with_the_same_tokens() {
    let Some(hub) = hub().await else { return };
    let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
    lose_and_restore(hub, Policy::local(keys)).await;
}

/// Deletes the database of an InfraEnv. Requires that the id and the status are the same after the restoration.
async fn lose_and_restore(hub: &'static Hub, policy: Policy) {
    let has_token = matches!(policy, Policy::Local(_));
    let mut site = Site::open_with_policy(hub, policy).await;
    site.create_pull_secret("pull-secret").await;
    site.create_infra_env("one", |_| ()).await;
    let before = site.wait_for_image("one").await;
    let id = id_of(&before);
    assert_eq!(iso_url(&before).contains("/byapikey/"), has_token);
    let mark = hub.audit_mark().await;
    site.lose_database().await;
    let begin = tokio::time::Instant::now();
    while site.inventory.infra_env(id).await.is_err() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(50)).await;
    }
    sleep(Duration::from_secs(2)).await;
    assert_eq!(site.requests_since(mark).await, ["get secrets"]);
    let after = site.wait_for_image("one").await;
    assert_eq!(after.status, before.status);
}

#[tokio::test]
async fn annotation_cannot_take_over_another_infra_env() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    site.create_pull_secret("pull-secret").await;
    site.create_infra_env("one", |_| ()).await;
    let id = id_of(&site.wait_for_image("one").await);
    let mut thief = InfraEnv::new("thief", site.api::<InfraEnv>().get("one").await.unwrap().spec);
    thief.metadata.annotations = Some([(ID.to_owned(), id.to_string())].into());
    site.create(&thief).await;
    let message =
        format!("Failed to create image: infra-env {id} is defined by InfraEnv {}/one", site.namespace);
    site.wait_for_message("thief", &message).await;
    // Hosts of the infra-env get Agents only from the InfraEnv that owns it.
    let host = HostId::fresh();
    Machine::boot(&site.inventory, id, host).await;
    let begin = tokio::time::Instant::now();
    let agent = loop {
        if let Some(agent) = site.api::<Agent>().get_opt(&host.to_string()).await.unwrap() {
            break agent;
        }
        assert!(begin.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(agent.labels()["infraenvs.agent-install.openshift.io"], "one");
    site.delete::<InfraEnv>("thief").await;
    site.wait_until_gone::<InfraEnv>("thief").await;
    assert_eq!(site.inventory.infra_env(id).await.unwrap().name, "one");
}

impl Site {
    fn mirror_ref(&self) -> MirrorRef {
        MirrorRef { name: "mirrors".to_owned(), namespace: self.namespace.clone() }
    }

    fn with_mirrors(&self) -> impl FnOnce(&mut InfraEnvSpec) {
        let mirror_ref = self.mirror_ref();
        move |spec| spec.mirror_registry_ref = Some(mirror_ref)
    }

    async fn create_mirrors(&self, data: Value) {
        let config_map = json!({"metadata": {"name": "mirrors"}, "data": data});
        let config_map: ConfigMap = serde_json::from_value(config_map).unwrap();
        self.create(&config_map).await;
    }

    async fn patch_mirrors(&self, data: Value) {
        let patch = Patch::Merge(json!({"data": data}));
        self.api::<ConfigMap>().patch("mirrors", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Returns the Ignition config of the image.
    async fn ignition(&self, id: InfraEnvId) -> String {
        let uri = format!("/api/assisted-install/v2/infra-envs/{id}/downloads/files?file_name=discovery.ign");
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let response = self.inventory.router().oneshot(request).await.unwrap();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }
}

#[tokio::test]
async fn unlabelled_config_map_with_mirrors_is_read_and_labelled_once() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    site.create_pull_secret("pull-secret").await;
    site.create_mirrors(json!({"registries.conf": REGISTRIES})).await;
    let mark = hub.audit_mark().await;
    site.create_infra_env("one", site.with_mirrors()).await;
    site.wait_for_image("one").await;
    sleep(Duration::from_secs(3)).await;
    let expected = [
        "patch infraenvs",
        "get secrets",
        "patch secrets",
        "get configmaps",
        "patch configmaps",
        "patch infraenvs/status",
    ];
    assert_eq!(site.requests_since(mark).await, expected);
    let config_map = site.api::<ConfigMap>().get("mirrors").await.unwrap();
    for label in ["agent-install.openshift.io/watch", "cluster.open-cluster-management.io/backup"] {
        assert_eq!(config_map.labels()[label], "true");
    }
    // Other edits use the stored mirrors again.
    let (before, mark) = (iso_url(&site.wait_for_image("one").await), hub.audit_mark().await);
    site.patch_spec("one", json!({"additionalNTPSources": ["a.example.com"]})).await;
    let object = site.wait_for("one", |it| iso_url(it) != before).await;
    assert_eq!(site.requests_since(mark).await, ["patch infraenvs/status"]);
    let record = site.inventory.infra_env(id_of(&object)).await.unwrap();
    assert_eq!(record.image.mirrors.unwrap().registries_conf, REGISTRIES);
    // Another InfraEnv with the same ConfigMap does not read it again.
    let mark = hub.audit_mark().await;
    site.create_infra_env("two", site.with_mirrors()).await;
    let other = site.wait_for_image("two").await;
    assert_eq!(site.requests_since(mark).await, ["patch infraenvs", "patch infraenvs/status"]);
    let record = site.inventory.infra_env(id_of(&other)).await.unwrap();
    assert_eq!(record.image.mirrors.unwrap().registries_conf, REGISTRIES);
}

#[tokio::test]
async fn image_follows_the_config_map_with_mirrors() {
    const REGISTRIES_PATH: &str = "/etc/containers/registries.conf";
    const AUTHORITY_PATH: &str = "/etc/pki/ca-trust/source/anchors/domain.crt";
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    let authority = rcgen::generate_simple_self_signed(["mirror.example".to_owned()]).unwrap().cert.pem();
    site.create_pull_secret("pull-secret").await;
    site.create_infra_env("one", |_| ()).await;
    let object = site.wait_for_image("one").await;
    let (id, without_mirrors) = (id_of(&object), iso_url(&object));
    assert!(!site.ignition(id).await.contains(REGISTRIES_PATH));

    site.create_mirrors(json!({"registries.conf": REGISTRIES})).await;
    site.patch_spec("one", json!({"mirrorRegistryRef": site.mirror_ref()})).await;
    let with_mirrors = iso_url(&site.wait_for("one", |it| iso_url(it) != without_mirrors).await);
    let config = site.ignition(id).await;
    assert!(config.contains(REGISTRIES_PATH) && !config.contains(AUTHORITY_PATH), "{config}");

    site.patch_mirrors(json!({"ca-bundle.crt": authority})).await;
    let is_new = |it: &InfraEnv| ![&without_mirrors, &with_mirrors].contains(&&iso_url(it));
    site.wait_for("one", is_new).await;
    let config = site.ignition(id).await;
    assert!(config.contains(REGISTRIES_PATH) && config.contains(AUTHORITY_PATH), "{config}");

    site.patch_mirrors(json!({"registries.conf": ""})).await;
    site.wait_for("one", |it| iso_url(it) == without_mirrors).await;
    site.patch_mirrors(json!({"registries.conf": REGISTRIES, "ca-bundle.crt": null})).await;
    site.wait_for("one", |it| iso_url(it) == with_mirrors).await;
    site.patch_spec("one", json!({"mirrorRegistryRef": null})).await;
    site.wait_for("one", |it| iso_url(it) == without_mirrors).await;
}

#[tokio::test]
async fn infra_env_waits_for_its_config_map_with_mirrors() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    site.create_pull_secret("pull-secret").await;
    site.create_infra_env("early", site.with_mirrors()).await;
    let error = "Failed to create image due to an internal error";
    let missing = format!(
        "{error}: failed to find configmap mirrors: failed to get configmap {}/mirrors from API: \
         configmaps \"mirrors\" not found",
        site.namespace
    );
    site.wait_for_message("early", &missing).await;
    site.create_mirrors(json!({"ca-bundle.crt": ""})).await;
    let without_key = format!("{error}: configmap mirrors did not contain key registries.conf");
    site.wait_for_message("early", &without_key).await;
    site.patch_mirrors(json!({"registries.conf": REGISTRIES})).await;
    site.wait_for_image("early").await;
    site.delete::<ConfigMap>("mirrors").await;
    site.wait_for_message("early", &missing).await;
}

#[tokio::test]
async fn rejects_invalid_mirrors_until_the_config_map_is_repaired() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    site.create_pull_secret("pull-secret").await;
    site.create_mirrors(json!({"registries.conf": REGISTRIES})).await;
    site.create_infra_env("one", site.with_mirrors()).await;
    let first = iso_url(&site.wait_for_image("one").await);
    let rows = [
        (
            json!({"registries.conf": "["}),
            json!({"registries.conf": REGISTRIES}),
            "mirror_registries.registries.conf \"[\": line 1: is not valid TOML",
        ),
        (
            json!({"ca-bundle.crt": "a"}),
            json!({"ca-bundle.crt": null}),
            "mirror_registries.ca-bundle.crt: line 1: expected a PEM certificate",
        ),
    ];
    for (fault, repair, reason) in rows {
        site.patch_mirrors(fault).await;
        let begin = format!("Failed to create image: {reason}");
        let is_shown = |it: &InfraEnv| image_created(it).is_some_and(|(_, _, text)| text.starts_with(&begin));
        site.wait_for("one", is_shown).await;
        site.patch_mirrors(repair).await;
        assert_eq!(iso_url(&site.wait_for_image("one").await), first, "{reason}");
    }
    site.patch_spec("one", json!({"mirrorRegistryRef": {"name": ""}})).await;
    let message = "Failed to create image: spec.mirrorRegistryRef requires a name and a namespace";
    site.wait_for_message("one", message).await;
}

#[tokio::test]
async fn rejects_annotation_that_is_not_a_uuid() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    site.create_pull_secret("pull-secret").await;
    let mut object = InfraEnv::new("odd", operator::crds::InfraEnvSpec::default());
    object.metadata.annotations = Some([(ID.to_owned(), "x".to_owned())].into());
    site.create(&object).await;
    let message = format!("Failed to create image: {ID} is \"x\", which is not a UUID");
    site.wait_for_message("odd", &message).await;
    site.delete::<InfraEnv>("odd").await;
    site.wait_until_gone::<InfraEnv>("odd").await;
}
