use assisted::infra_env::{
    HostStaticNetwork, InfraEnvUpdateParams, KernelArgument, KernelArgumentOperation, MacInterface, Proxy,
};
use futures_util::TryStreamExt;
use futures_util::future::join_all;

use super::*;
use crate::auth::{KeyTexts, LocalKeys, Policy};
use crate::catalogue::{CpuArchitecture, ImageType};
use crate::error::ErrorKind;
use crate::id::{ClusterId, HostId, HostKey};
use crate::infra_env::{MirrorRegistries, ResourceOwner, token_of_image_url};
use crate::service::EventListQuery;
use crate::service::hosts::registration::Registration;
use crate::service::test_inventory::{TestInventory, infra_env_params};
use crate::{Secret, Settings};

async fn event_names(inventory: &Inventory, id: InfraEnvId) -> Vec<String> {
    let list = inventory.events(EventListQuery::for_infra_env(id)).await.unwrap();
    list.events.map_ok(|event| event.name).try_collect().await.unwrap()
}

fn network(mac: &str, ip: &str) -> HostStaticNetwork {
    let network_yaml = format!(
        "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    address:\n    - ip: {ip}\n      \
         prefix-length: 24\n"
    );
    let map = MacInterface { mac_address: mac.to_owned(), logical_nic_name: "eth0".to_owned() };
    HostStaticNetwork { network_yaml, mac_interface_map: vec![map] }
}

/// Returns parameters in which every changeable field has a value other than its default.
fn full_params() -> InfraEnvCreateParams {
    InfraEnvCreateParams {
        proxy: Some(Proxy { http_proxy: Some("http://192.0.2.9:3128".to_owned()), ..Proxy::default() }),
        additional_ntp_sources: Some("ntp.example.org".to_owned()),
        ssh_authorized_key: Some(String::new()),
        image_type: Some(ImageType::Minimal),
        openshift_version: Some("4.17".to_owned()),
        static_network_config: Some(vec![
            network("52:54:00:00:00:02", "192.0.2.12"),
            network("52:54:00:00:00:01", "192.0.2.11"),
        ]),
        ignition_config_override: Some(r#"{"ignition": {"version": "3.1.0"}}"#.to_owned()),
        kernel_arguments: Some(vec![KernelArgument {
            operation: KernelArgumentOperation::Append.into(),
            value: "console=ttyS0".to_owned(),
        }]),
        network_discovery_delay_seconds: Some(7),
        ..infra_env_params()
    }
}

#[tokio::test]
async fn ensured_infra_env_equals_a_new_one_with_the_same_parameters() {
    type Edit = fn(&mut InfraEnvCreateParams);
    let edits: [(&str, Edit); 10] = [
        ("no proxy", |it| it.proxy = None),
        ("no NTP source", |it| it.additional_ntp_sources = None),
        ("no image type", |it| it.image_type = None),
        ("no version", |it| it.openshift_version = None),
        ("no networks", |it| it.static_network_config = None),
        ("no override", |it| it.ignition_config_override = None),
        ("no kernel arguments", |it| it.kernel_arguments = None),
        ("no delay", |it| it.network_discovery_delay_seconds = None),
        ("another pull secret", |it| {
            it.pull_secret = Secret::new(r#"{"auths":{"quay.io":{"auth":"YTpi"}}}"#);
        }),
        ("defaults only", |it| *it = infra_env_params()),
    ];
    let test = TestInventory::open().await;
    let inventory = &test.inventory;
    for (name, edit) in edits {
        let (id, before) = (InfraEnvId::fresh(), full_params());
        let created = inventory.ensure_infra_env(id, before.clone().into(), None).await.unwrap();
        let Ensured::Created(created) = created else { panic!("{name}: {created:?}") };
        assert_eq!((created.id, created.image_generation), (id, 1), "{name}");
        let unchanged = inventory.ensure_infra_env(id, before.clone().into(), None).await.unwrap();
        assert_eq!(unchanged, Ensured::Unchanged(created.clone()), "{name}");
        let mut after = before;
        edit(&mut after);
        let updated = inventory.ensure_infra_env(id, after.clone().into(), None).await.unwrap();
        let Ensured::Updated(updated) = updated else { panic!("{name}: {updated:?}") };
        assert_eq!(updated.image_generation, 2, "{name}");
        let other = inventory.register_infra_env(after.clone(), None).await.unwrap();
        assert_eq!(updated.image, other.image, "{name}");
        assert_eq!(inventory.infra_env(id).await.unwrap(), updated, "{name}");
        let unchanged = inventory.ensure_infra_env(id, after.into(), None).await.unwrap();
        assert_eq!(unchanged, Ensured::Unchanged(updated), "{name}");
        let events = event_names(inventory, id).await;
        let expected = ["infra_env_registered", "image_info_updated", "image_info_updated"];
        assert_eq!(
            events.iter().filter(|name| expected.contains(&name.as_str())).count(),
            3,
            "{name}: {events:?}"
        );
    }
}

#[tokio::test]
async fn networks_in_another_order_are_unchanged() {
    let test = TestInventory::open().await;
    let (id, mut params) = (InfraEnvId::fresh(), full_params());
    test.inventory.ensure_infra_env(id, params.clone().into(), None).await.unwrap();
    let events = event_names(&test.inventory, id).await;
    params.static_network_config.as_mut().unwrap().reverse();
    let ensured = test.inventory.ensure_infra_env(id, params.into(), None).await.unwrap();
    assert!(!ensured.is_changed(), "{ensured:?}");
    assert_eq!(event_names(&test.inventory, id).await, events);
}

#[tokio::test]
async fn rejects_changes_of_immutable_fields_and_invalid_values() {
    type Edit = fn(&mut InfraEnvCreateParams);
    let cases: [(Edit, ErrorKind, &str); 7] = [
        (
            |it| it.network_discovery_delay_seconds = Some(-1),
            ErrorKind::Invalid,
            "network_discovery_delay_seconds must be between 0 and 4294967295",
        ),
        (
            |it| it.name = "rack-2".to_owned(),
            ErrorKind::Conflict,
            "name cannot change from \"rack-1\" to \"rack-2\"",
        ),
        (
            |it| it.cpu_architecture = Some(CpuArchitecture::Arm64),
            ErrorKind::Conflict,
            "cpu_architecture cannot change from x86_64 to arm64",
        ),
        (
            |it| it.cluster_id = "0e5ad4c6-5d73-4d5c-8b1a-0f0b7f1f4f5e".parse().ok(),
            ErrorKind::Conflict,
            "cluster_id cannot change from null to 0e5ad4c6-5d73-4d5c-8b1a-0f0b7f1f4f5e",
        ),
        (
            |it| {
                it.name = "rack-2".to_owned();
                it.cpu_architecture = Some(CpuArchitecture::Arm64);
            },
            ErrorKind::Conflict,
            "name cannot change from \"rack-1\" to \"rack-2\"; cpu_architecture cannot change from x86_64 to arm64",
        ),
        (
            |it| it.openshift_version = Some("4.1".to_owned()),
            ErrorKind::Invalid,
            "No OS image for Openshift version 4.1",
        ),
        (|it| it.pull_secret = Secret::new("{}"), ErrorKind::Invalid, "pull secret must contain 'auths'"),
    ];
    let test = TestInventory::open().await;
    let inventory = &test.inventory;
    let id = InfraEnvId::fresh();
    let before = inventory.ensure_infra_env(id, infra_env_params().into(), None).await.unwrap().into_inner();
    let events = event_names(inventory, id).await;
    for (edit, kind, reason) in cases {
        let mut params = infra_env_params();
        edit(&mut params);
        let error = inventory.ensure_infra_env(id, params.into(), None).await.unwrap_err();
        assert!(error.reason().contains(reason), "{error}");
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert_eq!(inventory.infra_env(id).await.unwrap(), before);
    assert_eq!(event_names(inventory, id).await, events);
}

#[tokio::test]
async fn refused_creation_writes_nothing() {
    let test = TestInventory::open().await;
    let (inventory, id) = (&test.inventory, InfraEnvId::fresh());
    let of_unknown_cluster =
        InfraEnvCreateParams { cluster_id: Some(ClusterId::fresh()), ..infra_env_params() };
    let with_wrong_delay =
        InfraEnvCreateParams { network_discovery_delay_seconds: Some(-1), ..infra_env_params() };
    for (params, kind) in [(of_unknown_cluster, ErrorKind::NotFound), (with_wrong_delay, ErrorKind::Invalid)]
    {
        let error = inventory.ensure_infra_env(id, params.into(), None).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert_eq!(inventory.infra_env(id).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(inventory.events(EventListQuery::default()).await.unwrap().count, 0);
}

#[tokio::test]
async fn one_of_several_callers_creates_the_infra_env() {
    let test = TestInventory::open().await;
    let (inventory, id) = (&test.inventory, InfraEnvId::fresh());
    let calls = (0..8).map(|_| inventory.ensure_infra_env(id, full_params().into(), None));
    let ensured: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    let created = ensured.iter().filter(|it| matches!(it, Ensured::Created(_))).count();
    let unchanged = ensured.iter().filter(|it| matches!(it, Ensured::Unchanged(_))).count();
    assert_eq!((created, unchanged), (1, 7), "{ensured:?}");
    let records: Vec<_> = ensured.into_iter().map(Ensured::into_inner).collect();
    assert!(records.iter().all(|record| *record == records[0]));
    // Several callers can also change the existing infra-env concurrently.
    let calls = (0..8).map(|_| inventory.ensure_infra_env(id, infra_env_params().into(), None));
    let ensured: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    let updated = ensured.iter().filter(|it| matches!(it, Ensured::Updated(_))).count();
    let unchanged = ensured.iter().filter(|it| matches!(it, Ensured::Unchanged(_))).count();
    assert_eq!((updated, unchanged), (1, 7), "{ensured:?}");
}

#[tokio::test]
async fn removed_infra_env_is_created_again() {
    let test = TestInventory::open().await;
    let (inventory, id) = (&test.inventory, InfraEnvId::fresh());
    for _ in 0..2 {
        let ensured = inventory.ensure_infra_env(id, infra_env_params().into(), None).await.unwrap();
        assert!(matches!(ensured, Ensured::Created(_)), "{ensured:?}");
        inventory.deregister_infra_env(id, None).await.unwrap();
    }
}

/// Ensures that the infra-env exists, and returns the URL of its image.
async fn image_url(inventory: &Inventory, id: InfraEnvId, earlier_url: Option<&str>) -> String {
    let url_token = earlier_url.and_then(token_of_image_url);
    let definition = InfraEnvDefinition { url_token, ..infra_env_params().into() };
    let record = inventory.ensure_infra_env(id, definition, None).await.unwrap().into_inner();
    inventory.to_api_infra_env(&record).await.unwrap().download_url.reveal().to_owned()
}

#[tokio::test]
async fn infra_env_with_its_old_id_and_token_has_the_same_url() {
    let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
    for policy in [Policy::Open, Policy::local(keys)] {
        let test = TestInventory::with_policy(policy, |settings| settings).await;
        let (inventory, id) = (&test.inventory, InfraEnvId::fresh());
        let url = image_url(inventory, id, None).await;
        inventory.deregister_infra_env(id, None).await.unwrap();
        assert_eq!(image_url(inventory, id, Some(&url)).await, url);
        // The infra-env exists, so the missing token has no effect.
        assert_eq!(image_url(inventory, id, None).await, url);
    }
}

#[tokio::test]
async fn token_that_is_not_valid_for_the_infra_env_is_ignored() {
    let keys = || LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
    let (own, foreign) = (keys(), keys());
    let id = InfraEnvId::fresh();
    let token = |keys: &LocalKeys, id| keys.infra_env_token(id).unwrap().reveal().to_owned();
    let of_another = token(&own, InfraEnvId::fresh());
    let of_another_key = token(&foreign, id);
    let of_user = own.user_token(chrono::Utc::now(), None).unwrap().reveal().to_owned();
    let test = TestInventory::with_policy(Policy::local(own), |settings| settings).await;
    for invalid in [of_another, of_another_key, of_user, String::new(), "a.b.c".to_owned()] {
        let earlier = format!("http://192.0.2.1/byapikey/{invalid}/4.18/x86_64/full.iso");
        let url = image_url(&test.inventory, id, Some(&earlier)).await;
        let used = token_of_image_url(&url).unwrap();
        assert_ne!(used.reveal(), invalid);
        assert!(test.inventory.policy().takes_url_token(test.inventory.now(), id, &used));
        test.inventory.deregister_infra_env(id, None).await.unwrap();
    }
}

#[tokio::test]
async fn rejects_ids_other_than_the_configured_one() {
    let only = InfraEnvId::fresh();
    let test = TestInventory::with(|settings| Settings { infra_env_id: Some(only), ..settings }).await;
    let refusal = test.inventory.ensure_infra_env(InfraEnvId::fresh(), infra_env_params().into(), None).await;
    assert_eq!(refusal.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(
        test.inventory.ensure_infra_env(only, infra_env_params().into(), None).await.unwrap().is_changed()
    );
}

fn owner(name: &str) -> Option<ResourceOwner> {
    Some(ResourceOwner::new("InfraEnv", "site", name))
}

fn owned(params: InfraEnvCreateParams, owner: Option<ResourceOwner>) -> InfraEnvDefinition {
    InfraEnvDefinition { owner, ..params.into() }
}

#[tokio::test]
async fn owned_infra_env_is_changed_only_by_its_owner() {
    let test = TestInventory::open().await;
    let (inventory, id) = (&test.inventory, InfraEnvId::fresh());
    let created = inventory.ensure_infra_env(id, owned(infra_env_params(), owner("a")), None).await.unwrap();
    assert_eq!(created.into_inner().owner, owner("a"));
    for other in [None, owner("b")] {
        let error = inventory.ensure_infra_env(id, owned(full_params(), other), None).await.unwrap_err();
        let reason = format!("infra-env {id} is defined by InfraEnv site/a; change that object instead");
        assert_eq!((error.kind(), error.reason()), (ErrorKind::Conflict, reason.as_str()));
    }
    let update =
        InfraEnvUpdateParams { ntp_sources: Some("ntp.example.net".to_owned()), ..Default::default() };
    let error = inventory.update_infra_env(id, update, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let error = inventory.deregister_infra_env(id, None).await.unwrap_err();
    let reason = format!("infra-env {id} is defined by InfraEnv site/a; delete that object instead");
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Conflict, reason.as_str()));
    let again = inventory.ensure_infra_env(id, owned(infra_env_params(), owner("a")), None).await.unwrap();
    assert!(!again.is_changed(), "{again:?}");
    let changed = inventory.ensure_infra_env(id, owned(full_params(), owner("a")), None).await.unwrap();
    assert!(changed.is_changed() && changed.into_inner().owner == owner("a"));
}

#[tokio::test]
async fn infra_env_without_an_owner_gets_one_and_keeps_its_images() {
    let test = TestInventory::open().await;
    let (inventory, id) = (&test.inventory, InfraEnvId::fresh());
    let before = inventory.ensure_infra_env(id, infra_env_params().into(), None).await.unwrap().into_inner();
    let ensured = inventory.ensure_infra_env(id, owned(infra_env_params(), owner("a")), None).await.unwrap();
    let Ensured::Updated(after) = ensured else { panic!("{ensured:?}") };
    assert_eq!(inventory.infra_env(id).await.unwrap(), after);
    assert_eq!(after, InfraEnvRecord { owner: owner("a"), updated_at: after.updated_at, ..before });
}

#[tokio::test]
async fn owner_deletes_infra_env_after_its_hosts() {
    let test = TestInventory::open().await;
    let (inventory, id) = (&test.inventory, InfraEnvId::fresh());
    let deregister = |name| inventory.deregister_owned_infra_env(id, owner(name).unwrap(), None);
    assert!(!deregister("a").await.unwrap());
    inventory.ensure_infra_env(id, owned(infra_env_params(), owner("a")), None).await.unwrap();
    let host = HostKey { infra_env_id: id, host_id: HostId::fresh() };
    let registration = Registration { key: host, agent_version: String::new(), request: None };
    inventory.register_host(&registration).await.unwrap();
    let events = event_names(inventory, id).await;
    let error = deregister("a").await.unwrap_err();
    assert_eq!(error.reason(), format!("failed to deregister infraEnv {id}, 1 hosts are still associated"));
    assert_eq!(deregister("b").await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(event_names(inventory, id).await, events);
    assert!(inventory.deregister_host_if_present(host, None).await.unwrap());
    assert!(!inventory.deregister_host_if_present(host, None).await.unwrap());
    assert!(deregister("a").await.unwrap());
    assert!(!deregister("a").await.unwrap());
}

const CERTIFICATE: &str =
    include_str!("../../../../../tests/offline/manifests/disconnected/mirror/ca-bundle.crt");

fn mirrored(registries: &str, ca_bundle: Option<&str>) -> InfraEnvDefinition {
    let mirrors =
        MirrorRegistries { registries_conf: registries.to_owned(), ca_bundle: ca_bundle.map(str::to_owned) };
    InfraEnvDefinition { mirrors: Some(mirrors), ..infra_env_params().into() }
}

#[tokio::test]
async fn mirrors_are_in_images_and_only_definitions_change_them() {
    let registries = "[[registry]]\nlocation = 'quay.io'\n";
    let test = TestInventory::open().await;
    let (inventory, id) = (&test.inventory, InfraEnvId::fresh());
    let definition = mirrored(registries, Some(CERTIFICATE));
    let created = inventory.ensure_infra_env(id, definition.clone(), None).await.unwrap().into_inner();
    let mirrors = created.image.mirrors.clone().unwrap();
    assert_eq!(
        (mirrors.registries_conf.as_str(), mirrors.ca_bundle.as_deref()),
        (registries, Some(CERTIFICATE.trim()))
    );
    let again = inventory.ensure_infra_env(id, definition, None).await.unwrap();
    assert_eq!(again, Ensured::Unchanged(created));
    let paths = ["/etc/containers/registries.conf", "/etc/pki/ca-trust/source/anchors/domain.crt"];
    let has_paths = async || {
        let file = inventory.discovery_ignition(id, None).await.unwrap();
        let config = String::from_utf8(file.contents.to_vec()).unwrap();
        paths.map(|path| config.contains(path))
    };
    assert_eq!(has_paths().await, [true, true]);
    let update =
        InfraEnvUpdateParams { additional_ntp_sources: Some("192.0.2.3".to_owned()), ..Default::default() };
    let updated = inventory.update_infra_env(id, update, None).await.unwrap();
    assert_eq!(updated.image.mirrors, Some(mirrors));
    let response = serde_json::to_string(&inventory.to_api_infra_env(&updated).await.unwrap()).unwrap();
    assert!(!response.contains("mirror"), "{response}");
    let definition = mirrored(registries, Some(" \n"));
    let changed = inventory.ensure_infra_env(id, definition, None).await.unwrap().into_inner();
    assert_eq!(changed.image.mirrors.unwrap().ca_bundle, None);
    assert_eq!(has_paths().await, [true, false]);
    let removed = inventory.ensure_infra_env(id, infra_env_params().into(), None).await.unwrap();
    assert_eq!(removed.into_inner().image.mirrors, None);
    assert_eq!(has_paths().await, [false, false]);
}

#[tokio::test]
async fn rejects_invalid_mirrors() {
    let valid = "[[registry]]\nlocation = 'quay.io'\n";
    let cases = [
        (mirrored("", None), "mirror_registries.registries.conf \"\": has no [[registry]] table"),
        (mirrored("a", None), "mirror_registries.registries.conf \"a\": line 1: is not valid TOML"),
        (
            mirrored(valid, Some("hunter2")),
            "mirror_registries.ca-bundle.crt: line 1: expected a PEM certificate",
        ),
    ];
    let test = TestInventory::open().await;
    let (inventory, existing) = (&test.inventory, InfraEnvId::fresh());
    inventory.ensure_infra_env(existing, infra_env_params().into(), None).await.unwrap();
    for (definition, reason) in cases {
        for id in [existing, InfraEnvId::fresh()] {
            let error = inventory.ensure_infra_env(id, definition.clone(), None).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.reason().starts_with(reason), "{error}");
        }
    }
}

#[test]
fn record_without_an_owner_and_mirrors_is_readable() {
    let record = serde_json::json!({
        "id": InfraEnvId::fresh(), "name": "a", "user_name": "", "email_domain": "", "cluster_id": null,
        "cpu_architecture": "x86_64", "image": ImageSource::default(), "image_generation": 1,
        "image_changed_at": "2026-01-01T00:00:00Z", "signing_key": "", "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z"
    });
    let record: InfraEnvRecord = serde_json::from_value(record).unwrap();
    assert_eq!(record.owner, None);
    assert_eq!(record.image.mirrors, None);
    let value = serde_json::to_value(&record).unwrap();
    assert!(value.get("owner").is_none() && value["image"].get("mirrors").is_none(), "{value}");
}
