//! Images created offline are identical to the images that the server streams for the same inputs.

use std::sync::Arc;

use discovery::Draft;
use discovery::manifests::Manifests;
use ignition::discovery::HttpUrl;
use kindling::http::images::{EmbeddedInputs, ImageServer};
use kindling::images::library::{Library, LibrarySettings};
use kindling::inventory::auth::Policy;
use kindling::inventory::catalogue::Catalogue;
use kindling::inventory::files::FileStore;
use kindling::inventory::store::SqlStore;
use kindling::inventory::{Inventory, Settings};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::Scratch;
use crate::{manifests_folder, scratch_with_site};

/// Starts a server with the base image of a folder, under all versions that the sites request. Returns its URL.
async fn start_server(scratch: &Scratch) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let url = HttpUrl::parse("origin", &origin).unwrap();
    let image = |version: &str| {
        json!({"openshift_version": version, "cpu_architecture": "x86_64", "version": format!("{version}.94.1"),
            "url": format!("file://{}", scratch.path("base.iso").display())})
    };
    let catalogue = Catalogue::parse(&json!([image("4.14"), image("4.18")]).to_string()).unwrap();
    let os_images = catalogue.os_images().to_vec();
    let library = Library::open(LibrarySettings::new(scratch.path("images")), os_images.clone()).unwrap();
    let store = Arc::new(SqlStore::open_file(&scratch.path("kindling.db")).await.unwrap());
    let files = FileStore::in_directory(&scratch.path("files")).unwrap();
    let inventory =
        Inventory::new(store, files, catalogue, Settings::new(url.clone(), url.clone()), Policy::Open);
    let images = ImageServer::new(os_images, library, Arc::new(EmbeddedInputs::new(inventory.clone())), url);
    tokio::spawn(kindling::http::serve(
        listener,
        kindling::http::app(&inventory, Some(&images)),
        std::future::pending(),
    ));
    origin
}

/// Converts the settings of a draft to an API request.
fn infra_env_request(draft: &Draft, version: &str) -> Value {
    let text = |text: &Option<discovery::Text>| text.as_ref().map(|it| it.value.clone());
    let hosts = draft.hosts.iter().map(|host| serde_json::to_value(&host.network).unwrap());
    let arguments =
        draft.kernel_arguments.iter().map(|it| json!({"operation": it.value.0, "value": it.value.1}));
    json!({
        "name": "site", "openshift_version": version,
        "pull_secret": text(&draft.pull_secret),
        "ssh_authorized_key": text(&draft.ssh_keys),
        "proxy": {"http_proxy": text(&draft.http_proxy), "https_proxy": text(&draft.https_proxy), "no_proxy": text(&draft.no_proxy)},
        "additional_ntp_sources": text(&draft.additional_ntp_sources),
        "ignition_config_override": text(&draft.config_override),
        "network_discovery_delay_seconds": draft.discovery_delay_seconds.as_ref().map(|it| it.value),
        "kernel_arguments": arguments.collect::<Vec<_>>(),
        "static_network_config": hosts.collect::<Vec<_>>(),
    })
}

async fn compare_site(site: &str, version: &str) {
    let scratch = scratch_with_site(site);
    let origin = start_server(&scratch).await;
    let client = Client::new();
    let (draft, findings) =
        Manifests::read(manifests_folder(site)).unwrap().draft(None, Draft::default()).unwrap();
    assert!(!findings.is_fatal(), "{findings}");
    let url = format!("{origin}/api/assisted-install/v2/infra-envs");
    let created = client.post(&url).json(&infra_env_request(&draft, version)).send().await.unwrap();
    let (status, text) = (created.status(), created.text().await.unwrap());
    assert!(status.is_success(), "{site}: {text}");
    let created: Value = serde_json::from_str(&text).unwrap();
    let id = created["id"].as_str().unwrap();
    let rootfs = format!("{origin}/boot-artifacts/rootfs?arch=x86_64&version={version}.94.1");
    let arguments = [
        "discovery",
        "create",
        "--manifests",
        "manifests",
        "--base",
        "base.iso",
        "--service-url",
        &origin,
        "--infra-env-id",
        id,
        "--openshift-version",
        version,
        "--rootfs-url",
        &rootfs,
        "--full",
        "full.iso",
        "--minimal",
        "minimal.iso",
        "--pxe",
        "pxe",
    ];
    let command = scratch.command(arguments);
    tokio::task::spawn_blocking(move || command.run().expect_success()).await.unwrap();
    for (file, name) in [
        ("full.iso", "full.iso"),
        ("minimal.iso", "minimal.iso"),
        ("pxe/initrd.img", "initrd"),
        ("pxe/vmlinuz", "kernel"),
        ("pxe/rootfs.img", "rootfs"),
    ] {
        let served = client.get(format!("{origin}/i/{id}/{name}")).send().await.unwrap();
        assert_eq!(served.status(), 200, "{site}: {name}");
        let served = served.bytes().await.unwrap();
        assert!(served[..] == scratch.read(file)[..], "{site}: {file} differs from the served file");
    }
}

#[test]
fn written_files_equal_served_files() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        for (site, version) in [("bonded", "4.18"), ("single-node", "4.14"), ("dual-stack", "4.18")] {
            compare_site(site, version).await;
        }
    });
}
