//! The inventory of another Kindling server. Its own images must equal the images of an image server that calls it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::peer_service::PeerService;
use crate::process::ServerProcess;
use crate::server::{
    ExternalImageServer, IMAGES_URL, assert_refused, base_images, header_text, strict_settings,
};
use crate::support::Scratch;

const INFRA_ENVS: &str = "/api/assisted-install/v2/infra-envs";

/// An inventory that serves images, a proxy in front of it, and an image server that uses the proxy.
struct InventoryPair {
    inventory: ServerProcess,
    user: Option<String>,
    peer: PeerService,
    server: ExternalImageServer,
    _scratch: Scratch,
}

impl InventoryPair {
    async fn start(variables: &[(&str, &str)], user: impl FnOnce(&Scratch) -> Option<String>) -> Self {
        let scratch = Scratch::new();
        let user = user(&scratch);
        let list = base_images(scratch.folder()).to_string();
        let always = [("OS_IMAGES", list.as_str()), ("IMAGE_SERVICE_BASE_URL", IMAGES_URL)];
        let inventory = ServerProcess::start(&scratch, "127.0.0.1:0", &[&always[..], variables].concat());
        let peer = PeerService::proxy_for(&inventory.base).await;
        let server = ExternalImageServer::start(&strict_settings(&peer.url())).await;
        Self { inventory, user, peer, server, _scratch: scratch }
    }

    async fn open() -> Self {
        Self::start(&[], |_| None).await
    }

    async fn api(&self, method: Method, path: &str, body: &Value) -> Value {
        let url = format!("{}{INFRA_ENVS}{path}", self.inventory.base);
        let mut request = self.inventory.client.request(method, url).json(body);
        if let Some(user) = &self.user {
            request = request.bearer_auth(user);
        }
        let response = request.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{status}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Creates an infra-env with additional settings. Returns the infra-env and its id.
    async fn infra_env(&self, more: Value) -> (Value, String) {
        let mut body = json!({
            "name": "demo", "pull_secret": r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#,
            "image_type": "minimal-iso",
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let infra_env = self.api(Method::POST, "", &body).await;
        let id = infra_env["id"].as_str().unwrap().to_owned();
        (infra_env, id)
    }

    /// Requests an image until a request costs only one call. Then the last change is long enough ago.
    async fn wait_until_settled(&self, path: &str) {
        for _ in 0..3000 {
            self.peer.take_calls();
            self.server.get_with(path, &[("range", "bytes=0-0")]).await;
            if self.peer.take_calls().len() == 1 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{path} never costs only one call");
    }
}

fn static_network() -> Value {
    json!([{
        "network_yaml": "interfaces: [{name: eth0, type: ethernet, state: up}]\n",
        "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}],
    }])
}

#[tokio::test(flavor = "multi_thread")]
async fn images_equal_the_images_of_the_inventory() {
    let pair = InventoryPair::open().await;
    let arguments =
        json!([{"operation": "append", "value": "quiet"}, {"operation": "append", "value": "a=b"}]);
    for version in ["4.14", "4.18"] {
        for more in [
            json!({}),
            json!({"image_type": "full-iso", "static_network_config": static_network()}),
            json!({"kernel_arguments": arguments}),
            json!({"proxy": {"http_proxy": "http://proxy.example:3128"}}),
            json!({"static_network_config": static_network(), "kernel_arguments": arguments}),
        ] {
            let case = more.to_string();
            let mut more = more;
            more["openshift_version"] = version.into();
            let (_, id) = pair.infra_env(more).await;
            for path in [
                format!("/byid/{id}/{version}/x86_64/full.iso"),
                format!("/byid/{id}/{version}/x86_64/minimal.iso"),
                format!("/images/{id}?arch=x86_64&type=minimal-iso&version={version}"),
                format!("/images/{id}/pxe-initrd?arch=x86_64&version={version}"),
                format!("/i/{id}/full.iso"),
                format!("/i/{id}/initrd"),
                format!("/i/{id}/kernel"),
            ] {
                let (own, theirs) = (pair.inventory.image(&path).await, pair.server.image(&path).await);
                assert!(own.0 == theirs.0, "{case}: {path}");
                assert_eq!(own.1, theirs.1, "{case}: {path}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_equal_the_urls_of_the_inventory() {
    let pair = InventoryPair::open().await;
    let (_, id) = pair.infra_env(json!({"openshift_version": "4.18"})).await;
    let text = async |base: &str, path: &str| {
        let response = pair.inventory.client.get(format!("{base}/i/{id}{path}")).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.unwrap()
    };
    pair.server.image(&format!("/i/{id}/full.iso")).await;
    pair.inventory.image(&format!("/i/{id}/full.iso")).await;
    let listing = async |base: &str| -> Value {
        let mut listing: Value = serde_json::from_str(&text(base, "").await).unwrap();
        for file in listing["files"].as_array_mut().unwrap() {
            // Only the URL of the server differs.
            let file = file.as_object_mut().unwrap();
            file.remove("url").and_then(|_| file.remove("sha256_url")).unwrap();
        }
        json!([listing["version"], listing["cpu_architecture"], listing["ready"], listing["files"]])
    };
    assert_eq!(listing(&pair.server.base).await, listing(&pair.inventory.base).await);
    let script = text(&pair.server.base, "/script.ipxe").await;
    assert!(script.starts_with("#!ipxe"), "{script}");
    assert_eq!(script, text(&pair.inventory.base, "/script.ipxe").await);
    assert!(text(&pair.server.base, "/boot-trace").await.contains("full.iso"));
    let machine = pair.server.get(&format!("/i/{id}/52:54:00:00:00:01/full.iso")).await;
    assert_refused(&machine, 404, "images for one machine");
}

#[tokio::test(flavor = "multi_thread")]
async fn range_costs_one_conditional_call() {
    let pair = InventoryPair::open().await;
    let (_, id) = pair.infra_env(json!({"openshift_version": "4.14"})).await;
    let path = format!("/byid/{id}/4.14/x86_64/full.iso");
    pair.wait_until_settled(&path).await;
    for number in 0..1000 {
        let range = format!("bytes={number}-{}", number + 4095);
        assert_eq!(pair.server.get_with(&path, &[("range", &range)]).await.status(), 206);
    }
    let calls = pair.peer.take_calls();
    assert_eq!(calls.len(), 1000);
    assert!(calls.iter().all(|call| call.header("if-none-match").is_some() && call.status == Some(304)));
}

#[tokio::test(flavor = "multi_thread")]
async fn change_restarts_a_download_with_the_new_image() {
    let pair = InventoryPair::open().await;
    let (_, id) = pair.infra_env(json!({"openshift_version": "4.14"})).await;
    let path = format!("/byid/{id}/4.14/x86_64/minimal.iso");
    pair.wait_until_settled(&path).await;
    for change in [
        // Changes only the image, not the config.
        json!({"kernel_arguments": [{"operation": "append", "value": "loud"}]}),
        json!({"static_network_config": static_network()}),
        json!({"ssh_authorized_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj2tQSxYwQIcXsGZ6aHcKfoWiVBqVp3AmEFwqeFsTOO"}),
    ] {
        let before = pair.server.image(&path).await;
        pair.api(Method::PATCH, &format!("/{id}"), &change).await;
        let going_on = [("range", "bytes=1000000-"), ("if-range", before.1.as_str())];
        let whole = pair.server.get_with(&path, &going_on).await;
        assert_eq!(whole.status(), 200, "{change}");
        assert_ne!(header_text(&whole, "etag"), before.1, "{change}");
        let after = pair.inventory.image(&path).await;
        assert_eq!(header_text(&whole, "etag"), after.1, "{change}");
        assert!(whole.bytes().await.unwrap() == after.0, "{change}");
        let rest = pair.server.get_with(&path, &[("range", "bytes=1000000-"), ("if-range", &after.1)]).await;
        assert_eq!(rest.status(), 206, "{change}");
        assert!(rest.bytes().await.unwrap() == after.0[1_000_000..], "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_checked_by_the_inventory() {
    let key = [("AUTH_TYPE", "local"), ("KINDLING_EC_PRIVATE_KEY_FILE", "keys/ec-private-key.pem")];
    let pair = InventoryPair::start(&key, |scratch| {
        scratch.run_kindling("auth keys --out keys").expect_success();
        let line = "auth token --user --ec-private-key-file keys/ec-private-key.pem";
        Some(scratch.run_kindling(line).expect_text().trim().to_owned())
    })
    .await;
    let (infra_env, id) = pair.infra_env(json!({"openshift_version": "4.14"})).await;
    let (_, other) = pair.infra_env(json!({"openshift_version": "4.14"})).await;
    let url = infra_env["download_url"].as_str().unwrap().strip_prefix(IMAGES_URL).unwrap();
    let own = pair.inventory.image(url).await;
    assert!(pair.server.image(url).await == own);
    let token = url.split('/').nth(2).unwrap();
    let long = |id: &str| format!("/images/{id}?type=minimal-iso&version=4.14&api_key={token}");
    assert!(pair.server.image(&long(&id)).await == own);
    let initrd = format!("/images/{id}/pxe-initrd?version=4.14&api_key={token}");
    assert!(pair.server.image(&initrd).await == pair.inventory.image(&initrd).await);
    let user = format!("Bearer {}", pair.user.as_deref().unwrap());
    let plain = format!("/byid/{id}/4.14/x86_64/minimal.iso");
    assert_eq!(pair.server.get_with(&plain, &[("authorization", &user)]).await.status(), 200);
    assert_refused(&pair.server.get(&plain).await, 401, "nothing is shown");
    let tampered = url.replace(token, &format!("{}x", &token[..token.len() - 1]));
    assert_refused(&pair.server.get(&tampered).await, 401, "an invalid token");
    // The inventory chooses the status for requests without access.
    assert_refused(&pair.server.get(&long(&other)).await, 404, "a token of another one");
}
