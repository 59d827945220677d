//! Tests the hub: the behaviour of the API server on which other tests rely, the audit log and the fault proxy.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

mod hub;

use std::future::pending;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use futures_util::StreamExt;
use hub::{AuditEntry, Fault, FaultProxy, Hub, HubUser, Rule};
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams, WatchEvent, WatchParams,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

const LIMIT: Duration = Duration::from_secs(120);

/// A kind with an immutable field.
const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: lamps.hub.test
spec:
  group: hub.test
  scope: Namespaced
  names: {plural: lamps, singular: lamp, kind: Lamp, listKind: LampList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              colour:
                type: string
                x-kubernetes-validations:
                - {rule: self == oldSelf, message: the colour is immutable}
              watts: {type: integer, default: 60}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
---
"#;

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    from_json(json!({"metadata": {"name": name}, "data": {"key": "value"}}))
}

/// Waits until a condition about objects of the API server is met.
async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < LIMIT, "{what}: not after {LIMIT:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the HTTP status code of a failed request.
fn code_of<T>(result: Result<T, kube::Error>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("not a refusal of the API server: {error}"),
        Ok(_) => panic!("not refused"),
    }
}

#[tokio::test]
async fn crd_has_defaults_and_rejects_change_of_immutable_field() {
    let Some(hub) = Hub::shared().await else { return };
    hub.install_crds(CRD).await;
    let namespace = hub.namespace("crd").await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("hub.test", "v1", "Lamp"));
    let lamps: Api<DynamicObject> = Api::namespaced_with(hub.admin(), &namespace, &resource);
    let lamp = from_json(json!({
        "apiVersion": "hub.test/v1", "kind": "Lamp", "metadata": {"name": "lamp"}, "spec": {"colour": "red"},
    }));
    let lamp = lamps.create(&PostParams::default(), &lamp).await.unwrap();
    assert_eq!(lamp.data["spec"], json!({"colour": "red", "watts": 60}));

    let change = Patch::Merge(json!({"spec": {"colour": "blue"}}));
    let error = lamps.patch("lamp", &PatchParams::default(), &change).await.unwrap_err();
    assert!(error.to_string().contains("the colour is immutable"), "{error}");
}

#[tokio::test]
async fn object_is_garbage_collected_after_its_owner() {
    let Some(hub) = Hub::shared().await else { return };
    let maps: Api<ConfigMap> = Api::namespaced(hub.admin(), &hub.namespace("owners").await);
    let owner = maps.create(&PostParams::default(), &config_map("owner")).await.unwrap();
    let owned = from_json(json!({"metadata": {"name": "owned", "ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid,
    }]}}));
    maps.create(&PostParams::default(), &owned).await.unwrap();
    maps.delete("owner", &DeleteParams::default()).await.unwrap();
    wait_until("collected", async || maps.get_opt("owned").await.unwrap().is_none()).await;
}

#[tokio::test]
async fn deleted_namespace_disappears() {
    let Some(hub) = Hub::shared().await else { return };
    let name = hub.namespace("deleted").await;
    let maps: Api<ConfigMap> = Api::namespaced(hub.admin(), &name);
    maps.create(&PostParams::default(), &config_map("content")).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(hub.admin());
    namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
    wait_until("deleted", async || namespaces.get_opt(&name).await.unwrap().is_none()).await;
}

#[tokio::test]
async fn approved_certificate_signing_request_is_signed() {
    let Some(hub) = Hub::shared().await else { return };
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "client");
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let requests: Api<CertificateSigningRequest> = Api::all(hub.admin());
    let request: CertificateSigningRequest = from_json(json!({
        "metadata": {"name": "signed"},
        "spec": {
            "request": ByteString(pem.into_bytes()),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        },
    }));
    requests.create(&PostParams::default(), &request).await.unwrap();
    let approval = Patch::Merge(json!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "Test", "message": "approved by a test"},
    ]}}));
    requests.patch_approval("signed", &PatchParams::default(), &approval).await.unwrap();
    wait_until("signed", async || {
        let request = serde_json::to_value(requests.get("signed").await.unwrap()).unwrap();
        request["status"]["certificate"].is_string()
    })
    .await;
}

#[tokio::test]
async fn new_service_account_has_no_rights() {
    let Some(hub) = Hub::shared().await else { return };
    let namespace = hub.namespace("accounts").await;
    let client = hub.client_of_service_account(&namespace, "robot").await;
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let review = serde_json::to_value(review).unwrap();
    assert_eq!(review["status"]["userInfo"]["username"], format!("system:serviceaccount:{namespace}:robot"));
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    assert_eq!(code_of(maps.list(&ListParams::default()).await), 403);
}

#[tokio::test]
async fn kubectl_applies_and_uses_a_kubeconfig_of_a_proxy() {
    let Some(hub) = Hub::shared().await else { return };
    let namespace = hub.namespace("kubectl").await;
    hub.apply(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: one, namespace: {namespace}}}}}\n---\n\
         {{apiVersion: v1, kind: ConfigMap, metadata: {{name: two, namespace: {namespace}}}}}\n"
    ))
    .await;
    let names = hub.kubectl(&["get", "configmaps", "one", "two", "-o", "name", "-n", &namespace]).await;
    assert_eq!(names, "configmap/one\nconfigmap/two\n");

    let proxy = hub.fault_proxy();
    let config = proxy.kubeconfig(&hub.token_of_user("assisted"));
    let config = format!("--kubeconfig={}", config.display());
    let user = hub.kubectl(&[&config, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]).await;
    assert_eq!(user, "assisted");
    assert_eq!(proxy.count("POST", "selfsubjectreviews"), 1);
    assert!(hub.kubectl(&["version"]).await.contains("Server Version: v1."));
}

/// Returns a user with all rights, and a new namespace.
async fn user_and_namespace(hub: &Hub) -> (HubUser, String) {
    let user = hub.new_user();
    hub.allow_everything(&user.name).await;
    (user, hub.namespace("faults").await)
}

#[tokio::test]
async fn audit_log_contains_each_request_once_and_in_order() {
    let Some(hub) = Hub::shared().await else { return };
    let (user, namespace) = user_and_namespace(hub).await;
    let maps: Api<ConfigMap> = Api::namespaced(hub.client_of_user(&user.name), &namespace);
    let of_user = |entry: &AuditEntry| entry.user == user.name;
    maps.create(&PostParams::default(), &config_map("map")).await.unwrap();
    let mark = hub.audit_mark().await;
    let watch = maps.watch(&WatchParams::default().timeout(1), "0").await.unwrap();
    assert!(watch.count().await >= 1);
    maps.get("map").await.unwrap();
    assert_eq!(code_of(maps.get("missing").await), 404);
    maps.patch("map", &PatchParams::default(), &Patch::Merge(json!({"data": {"key": "new"}}))).await.unwrap();
    let short = |entry: &AuditEntry| format!("{} {} {}", entry.verb, entry.name, entry.code);
    let entries = hub.audit_since(mark, of_user).await;
    assert_eq!(
        entries.iter().map(short).collect::<Vec<_>>(),
        ["watch  200", "get map 200", "get missing 404", "patch map 200"]
    );
    assert!(entries.iter().all(|entry| entry.resource == "configmaps" && entry.namespace == namespace));
    let entries = hub.audit_entries(of_user).await;
    assert_eq!(entries.iter().map(short).next().unwrap(), "create map 201");
    assert_eq!(hub.wait_for_audit(mark, 4, of_user).await.len(), 4);
}

/// A user behind a fault proxy, with the ConfigMaps of a new namespace.
struct FaultTest {
    hub: &'static Hub,
    proxy: FaultProxy,
    user: HubUser,
    maps: Api<ConfigMap>,
}

impl FaultTest {
    async fn new() -> Option<Self> {
        let hub = Hub::shared().await?;
        let (user, namespace) = user_and_namespace(hub).await;
        let proxy = hub.fault_proxy();
        let maps = Api::namespaced(proxy.client(&user.token), &namespace);
        Some(Self { hub, proxy, user, maps })
    }

    async fn create(&self, name: &str) -> Result<ConfigMap, kube::Error> {
        self.maps.create(&PostParams::default(), &config_map(name)).await
    }

    /// Returns the number of create requests that have reached the API server.
    async fn creations(&self) -> usize {
        let of_user = |entry: &AuditEntry| entry.user == self.user.name && entry.verb == "create";
        self.hub.audit_entries(of_user).await.len()
    }
}

/// Returns parameters for a watch of one object, without bookmark events.
fn watch_params() -> WatchParams {
    WatchParams::default().fields("metadata.name=map").disable_bookmarks()
}

fn is_broken_connection<T>(result: &Result<T, kube::Error>) -> bool {
    matches!(result, Err(kube::Error::HyperError(_) | kube::Error::Service(_)))
}

#[tokio::test]
async fn delayed_request_is_forwarded() {
    let Some(test) = FaultTest::new().await else { return };
    test.proxy.add(Rule::new(Fault::Delay(Duration::from_millis(300))).method("POST"));
    let start = Instant::now();
    test.create("map").await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn cut_request_does_not_reach_the_server() {
    let Some(test) = FaultTest::new().await else { return };
    let rule = test.proxy.add(Rule::new(Fault::CutBeforeRequest).method("POST").path("/configmaps").times(1));
    let result = test.create("map").await;
    assert!(is_broken_connection(&result), "{result:?}");
    assert_eq!(test.creations().await, 0);
    test.create("map").await.unwrap();
    assert_eq!(test.creations().await, 1);
    let counts = test.proxy.counts(rule);
    assert_eq!((counts.matches, counts.faults), (2, 1));
    assert_eq!(test.proxy.count("POST", "/configmaps"), 2);
}

#[tokio::test]
async fn request_with_a_lost_response_takes_effect() {
    let Some(test) = FaultTest::new().await else { return };
    let rule = test.proxy.add(Rule::new(Fault::LoseResponse).method("POST"));
    let result = test.create("map").await;
    assert!(is_broken_connection(&result), "{result:?}");
    assert_eq!(test.creations().await, 1);
    test.proxy.remove(rule);
    assert_eq!(code_of(test.create("map").await), 409);
    assert_eq!(test.proxy.counts(rule).faults, 1);
}

#[tokio::test]
async fn fault_rules_apply_in_their_order() {
    let Some(test) = FaultTest::new().await else { return };
    test.proxy.add(Rule::new(Fault::Conflict).skip(1).times(1));
    test.proxy.add(Rule::new(Fault::Gone).skip(2).times(1));
    test.proxy.add(Rule::new(Fault::TooManyRequests(7)).skip(3).times(1));
    test.proxy.add(Rule::new(Fault::InternalError).skip(4).times(1));
    test.create("map").await.unwrap();
    for (code, reason) in
        [(409, "Conflict"), (410, "Expired"), (429, "TooManyRequests"), (500, "InternalError")]
    {
        let Err(kube::Error::Api(status)) = test.maps.get("map").await else { panic!("no status {code}") };
        assert_eq!((status.code, status.reason.as_str()), (code, reason));
        let retry_after = status.details.as_ref().map(|details| details.retry_after_seconds);
        assert_eq!(retry_after, (code == 429).then_some(7));
    }
    test.maps.get("map").await.unwrap();
    let faults: Vec<bool> = test.proxy.requests().iter().map(|request| request.fault.is_some()).collect();
    assert_eq!(faults, [false, true, true, true, true, false]);
}

#[tokio::test]
async fn request_in_a_black_hole_has_no_response_until_it_is_cut() {
    let Some(test) = FaultTest::new().await else { return };
    test.proxy.add(Rule::new(Fault::BlackHole).method("POST").times(1));
    let creation = test.create("map");
    tokio::pin!(creation);
    assert!(timeout(Duration::from_millis(500), &mut creation).await.is_err());
    test.proxy.cut_all();
    let result = timeout(LIMIT, creation).await.unwrap();
    assert!(is_broken_connection(&result), "{result:?}");
    assert_eq!(test.creations().await, 0);
    test.create("map").await.unwrap();
}

#[tokio::test]
async fn watch_events_are_forwarded_until_the_watch_is_cut() {
    let Some(test) = FaultTest::new().await else { return };
    let watch = test.maps.watch(&watch_params(), "0").await.unwrap();
    let mut watch = watch.boxed();
    test.create("map").await.unwrap();
    let event = timeout(LIMIT, watch.next()).await.unwrap();
    assert!(matches!(event, Some(Ok(WatchEvent::Added(_)))), "{event:?}");
    test.maps.delete("map", &DeleteParams::default()).await.unwrap();
    let event = timeout(LIMIT, watch.next()).await.unwrap();
    assert!(matches!(event, Some(Ok(WatchEvent::Deleted(_)))), "{event:?}");
    test.proxy.cut_all();
    let event = timeout(LIMIT, watch.next()).await.unwrap();
    assert!(!matches!(event, Some(Ok(_))), "{event:?}");
    assert_eq!(test.proxy.count("GET", "watch=true"), 1);
}

#[tokio::test]
async fn frozen_watch_receives_events_after_the_thaw() {
    let Some(test) = FaultTest::new().await else { return };
    let watch = test.maps.watch(&watch_params(), "0").await.unwrap();
    let mut watch = watch.boxed();
    test.proxy.freeze();
    let direct: Api<ConfigMap> = Api::namespaced(test.hub.admin(), test.maps.namespace().unwrap());
    direct.create(&PostParams::default(), &config_map("map")).await.unwrap();
    assert!(timeout(Duration::from_millis(500), watch.next()).await.is_err());
    test.proxy.thaw();
    let event = timeout(LIMIT, watch.next()).await.unwrap();
    assert!(matches!(event, Some(Ok(WatchEvent::Added(_)))), "{event:?}");
}

#[tokio::test]
async fn rule_ends_the_watch() {
    let Some(test) = FaultTest::new().await else { return };
    test.proxy.add(Rule::new(Fault::WatchGone).watches(true).times(1));
    let cut = Fault::CutDuringResponse(Duration::from_millis(200));
    test.proxy.add(Rule::new(cut).watches(true).skip(1));
    let params = watch_params();
    let mut watch = test.maps.watch(&params, "0").await.unwrap().boxed();
    let event = watch.next().await;
    assert!(matches!(&event, Some(Ok(WatchEvent::Error(status))) if status.code == 410), "{event:?}");
    assert!(watch.next().await.is_none());
    let mut watch = test.maps.watch(&params, "0").await.unwrap().boxed();
    let event = timeout(LIMIT, watch.next()).await.unwrap();
    assert!(!matches!(event, Some(Ok(_))), "{event:?}");
    test.maps.list(&ListParams::default()).await.unwrap();
}

/// Returns `true` if a process has this text in its arguments.
fn has_process_with(text: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(text)
    })
}

#[tokio::test]
async fn programs_end_after_their_test_is_killed() {
    let Some(_) = Hub::shared().await else { return };
    let mut test = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "hub_that_runs_until_it_is_killed", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(test.stdout.take().unwrap()).lines().map_while(Result::ok);
    let folder = lines.into_iter().find_map(|line| Some(line.split_once("folder=")?.1.to_owned())).unwrap();
    assert!(has_process_with(&folder) && Path::new(&folder).exists());
    test.kill().unwrap();
    test.wait().unwrap();
    let start = Instant::now();
    while has_process_with(&folder) || Path::new(&folder).exists() {
        assert!(start.elapsed() < LIMIT, "programs of {folder} still run");
        thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
#[ignore = "a process for another test"]
async fn hub_that_runs_until_it_is_killed() {
    let Some(hub) = Hub::shared().await else { return };
    println!("folder={}", hub.folder().display());
    pending::<()>().await;
}
