//! URLs with the revision of an image. They change if and only if the bytes of the image change, and a URL never
//! returns bytes of another revision.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use ignition::discovery::HttpUrl;
use isogen::Digest;
use kindling::http::images::{EmbeddedInputs, ImageServer};
use kindling::inventory::auth::{KeyTexts, LocalKeys, Policy};
use kindling::inventory::catalogue::Version;
use kindling::inventory::id::{ClusterId, InfraEnvId};
use kindling::inventory::infra_env::{ImageSource, InfraEnvRecord, MirrorRegistries, ResourceOwner};
use kindling::inventory::service::infra_envs::{ImageUrls, IpxeScript};
use kindling::inventory::store::{Change, ReadSet, Reader as _};
use kindling::inventory::time::Micros;
use kindling::inventory::{Inventory, Secret, Settings};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{API, ImageTestServer, base_image_bytes, header, run};

const PULL_SECRET: &str = r#"{"auths": {"quay.io": {"auth": "b3RoZXI6cGFzcw=="}}}"#;
const CERTIFICATE: &str = include_str!("../offline/manifests/disconnected/mirror/ca-bundle.crt");

const REGISTRIES: &str = include_str!("../offline/manifests/disconnected/mirror/registries.conf");

/// An edit of an infra-env, and whether it changes the full ISO and the minimal ISO.
struct Edit {
    action: EditAction,
    changes: [bool; 2],
}

#[derive(Debug)]
enum EditAction {
    Patch(Value),
    /// A change to the mirrors in the store, because the API cannot change them.
    Mirrors(Option<MirrorRegistries>),
}

fn edit(body: Value, changes: [bool; 2]) -> Edit {
    Edit { action: EditAction::Patch(body), changes }
}

fn edit_mirrors(ca_bundle: Option<&str>, changes: [bool; 2]) -> Edit {
    let ca_bundle = ca_bundle.map(str::to_owned);
    let mirrors = MirrorRegistries { registries_conf: REGISTRIES.to_owned(), ca_bundle };
    Edit { action: EditAction::Mirrors(Some(mirrors)), changes }
}

fn host(mac: &str, name: &str) -> Value {
    json!({
        "network_yaml": format!("interfaces: [{{name: {name}, type: ethernet, state: up}}]\n"),
        "mac_interface_map": [{"mac_address": mac, "logical_nic_name": name}],
    })
}

/// Returns at least one edit of each field of an infra-env's image source, in this order.
fn edits() -> Vec<Edit> {
    // A new field needs an edit in the list below. Only the store can set `rendezvous_ip` of a full or minimal image.
    let ImageSource {
        openshift_version: _,
        os_image: _,
        image_type: _,
        pull_secret: _,
        ssh_authorized_key: _,
        proxy: _,
        additional_ntp_sources: _,
        ntp_sources: _,
        static_network_config: _,
        ignition_config_override: _,
        kernel_arguments: _,
        additional_trust_bundle: _,
        rendezvous_ip: _,
        network_discovery_delay_seconds: _,
        mirrors: _,
    } = ImageSource::default();
    let (both, none) = ([true; 2], [false; 2]);
    let (one, two) = (host("52:54:00:00:00:01", "eth0"), host("52:54:00:00:00:02", "eth1"));
    let file = json!({"path": "/etc/a", "contents": {"source": "data:,a"}});
    let config = json!({"ignition": {"version": "3.1.0"}, "storage": {"files": [file]}});
    let spaced = serde_json::to_string_pretty(&config).unwrap();
    vec![
        // The catalogue has the same base image for both versions.
        edit(json!({"openshift_version": "4.14.3"}), none),
        edit(json!({"openshift_version": "4.14"}), none),
        edit(json!({"pull_secret": PULL_SECRET}), both),
        edit(
            json!({"ssh_authorized_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA a@b"}),
            both,
        ),
        edit(json!({"proxy": {"http_proxy": "http://192.0.2.1:3128"}}), both),
        edit(json!({"proxy": {"no_proxy": "example.com"}}), both),
        edit(json!({"additional_ntp_sources": "192.0.2.3"}), both),
        edit(json!({"ntp_sources": "192.0.2.4", "additional_ntp_sources": ""}), both),
        edit(json!({"static_network_config": [one, two]}), both),
        edit(json!({"static_network_config": [two, one]}), none),
        edit(json!({"ignition_config_override": config.to_string()}), both),
        edit(json!({"ignition_config_override": spaced}), none),
        edit(json!({"kernel_arguments": [{"operation": "append", "value": "loud"}]}), both),
        edit(json!({"additional_trust_bundle": CERTIFICATE}), both),
        // Only live systems that run nmstate have this delay, from 4.18 on.
        edit(json!({"network_discovery_delay_seconds": 7}), none),
        edit_mirrors(None, both),
        edit_mirrors(Some(CERTIFICATE), both),
        edit_mirrors(Some(&format!("\n{CERTIFICATE}\n")), none),
        Edit { action: EditAction::Mirrors(None), changes: both },
    ]
}

impl ImageTestServer {
    async fn edit(&self, id: &str, body: &Value) -> Value {
        self.api(Method::PATCH, &format!("/infra-envs/{id}"), body).await
    }

    /// Edits an infra-env, and returns the path of its image.
    async fn apply(&self, id: &str, action: &EditAction) -> String {
        match action {
            EditAction::Patch(body) => self.path(&self.edit(id, body).await),
            EditAction::Mirrors(mirrors) => {
                self.replace_record(id, |record| record.image.mirrors.clone_from(mirrors)).await;
                let urls = self.image_urls(id).await;
                urls.iso.reveal().strip_prefix(&self.base).unwrap().to_owned()
            }
        }
    }

    fn path(&self, infra_env: &Value) -> String {
        infra_env["download_url"].as_str().unwrap().strip_prefix(&self.base).unwrap().to_owned()
    }

    async fn record(&self, id: &str) -> InfraEnvRecord {
        self.inventory.infra_env(id.parse().unwrap()).await.unwrap()
    }

    async fn image_urls(&self, id: &str) -> ImageUrls {
        self.inventory.image_urls(&self.record(id).await).await.unwrap()
    }

    /// Returns the digest of a file at a URL of this server.
    async fn digest(&self, url: &str) -> Digest {
        Digest::from_data(&self.get_bytes(url.strip_prefix(&self.base).unwrap_or(url)).await)
    }

    async fn range(&self, path: &str, range: &str, more: &[(&str, &str)]) -> Response {
        let mut request = self.client.get(format!("{}{path}", self.base)).header("range", range);
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap()
    }

    /// Replaces the record of an infra-env, as a change to its image source does.
    async fn replace_record(&self, id: &str, edit: impl Fn(&mut InfraEnvRecord)) {
        let id: InfraEnvId = id.parse().unwrap();
        let edit = &edit;
        let change = |reads: ReadSet| async move {
            let mut stored = reads.find::<InfraEnvRecord>(None, id.0).await?.unwrap();
            stored.record.image_generation += 1;
            let changed_at = stored.record.image_changed_at.0.unwrap() + TimeDelta::seconds(1);
            stored.record.image_changed_at = Micros::new(changed_at);
            edit(&mut stored.record);
            let mut change = Change::new();
            change.replace(&stored.record, stored.generation)?;
            Ok((change, ()))
        };
        self.inventory.records().change(change).await.unwrap();
    }

    /// Opens the same records as after a restart, or as on another replica, with these settings.
    fn restarted(&self, settings: Settings) -> Inventory {
        let records = Arc::clone(self.inventory.records().store());
        let (files, catalogue) = (self.inventory.files().clone(), self.inventory.catalogue().clone());
        Inventory::new(records, files, catalogue, settings, Policy::Open)
    }
}

impl ImageTestServer {
    /// Serves the same infra-envs without any cached plan, and returns the URL of the new server.
    async fn serve_again(&self) -> String {
        let inventory = self.restarted(self.inventory.settings().clone());
        let (os_images, embedded) =
            (inventory.catalogue().os_images().to_vec(), EmbeddedInputs::new(inventory.clone()));
        let url = inventory.settings().image_service_base_url.clone();
        let server = ImageServer::new(os_images, self.live_images.clone(), Arc::new(embedded), url);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let app = kindling::http::app(&inventory, Some(&server));
        tokio::spawn(kindling::http::serve(listener, app, std::future::pending()));
        base
    }
}

fn reason(refusal: &Value) -> &str {
    refusal["reason"].as_str().unwrap_or_else(|| panic!("{refusal}"))
}

/// Returns the revision in a path that ends with `/{revision}/{file}`.
fn revision(path: &str) -> &str {
    path.rsplit('/').nth(1).unwrap()
}

#[test]
fn url_changes_if_and_only_if_the_bytes_change() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        for (kind, image_type) in ["full-iso", "minimal-iso"].into_iter().enumerate() {
            let (_, id) = server.create_infra_env().await;
            let infra_env = server.edit(&id, &json!({"image_type": image_type})).await;
            let (mut url, mut initrd) = (server.path(&infra_env), server.image_urls(&id).await.initrd);
            let mut digest = server.digest(&url).await;
            let mut initrd_digest = server.digest(initrd.reveal()).await;
            for Edit { action, changes } in edits() {
                let new_url = server.apply(&id, &action).await;
                let new_digest = server.digest(&new_url).await;
                assert_eq!(new_url != url, changes[kind], "{image_type}: {action:?}");
                assert_eq!(new_digest != digest, changes[kind], "{image_type}: {action:?}");
                (url, digest) = (new_url, new_digest);
                let new_initrd = server.image_urls(&id).await.initrd;
                let new_digest = server.digest(new_initrd.reveal()).await;
                assert_eq!(new_digest != initrd_digest, new_initrd != initrd, "{image_type}: {action:?}");
                (initrd, initrd_digest) = (new_initrd, new_digest);
            }
            let other_type = server.edit(&id, &json!({"image_type": "full-iso"})).await;
            assert_eq!(server.digest(&server.path(&other_type)).await != digest, kind == 1);
            assert_eq!(server.path(&other_type) != url, kind == 1);
        }
    });
}

#[test]
fn fields_outside_the_image_do_not_change_the_url() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (infra_env, id) = server.create_infra_env().await;
        let (url, digest) = (server.path(&infra_env), server.digest(&server.path(&infra_env)).await);
        // A new field needs an edit in the list below. The id and the architecture cannot change.
        let InfraEnvRecord {
            id: _,
            name: _,
            user_name: _,
            email_domain: _,
            cluster_id: _,
            cpu_architecture: _,
            image: _,
            image_generation: _,
            image_changed_at: _,
            signing_key: _,
            url_token: _,
            token_key: _,
            owner: _,
            created_at: _,
            updated_at: _,
        } = server.record(&id).await;
        type EditRecord = fn(&mut InfraEnvRecord);
        let edits: [(&str, EditRecord, bool); 10] = [
            ("image_generation", |_| (), false),
            ("name", |record| record.name = "other".to_owned(), false),
            ("user_name", |record| record.user_name = "other".to_owned(), false),
            ("email_domain", |record| record.email_domain = "other.example".to_owned(), false),
            ("cluster_id", |record| record.cluster_id = Some(ClusterId::fresh()), false),
            ("signing_key", |record| record.signing_key = Secret::new("other"), false),
            ("rendezvous_ip", |record| record.image.rendezvous_ip = Some("192.0.2.5".to_owned()), false),
            ("owner", |record| record.owner = Some(ResourceOwner::new("InfraEnv", "site", "other")), false),
            ("updated_at", |record| record.updated_at = Micros::now(), false),
            // Agents read their token from the image.
            ("url_token", |record| record.url_token = Secret::new("e30.eyJzdWIiOiJ4In0.e30"), true),
        ];
        for (field, change, changes) in edits {
            server.replace_record(&id, change).await;
            let current = server.image_urls(&id).await;
            assert_eq!(!current.iso.reveal().ends_with(&url), changes, "{field}");
            let bytes = server.digest(&format!("/byid/{id}/4.14/x86_64/full.iso")).await;
            assert_eq!(bytes != digest, changes, "{field}");
        }
        let regenerate = format!("{}{API}/infra-envs/{id}/regenerate-signing-key", server.base);
        assert_eq!(server.client.post(regenerate).send().await.unwrap().status(), 204);
        assert_eq!(server.digest(&url).await, digest);
    });
}

#[test]
fn edit_and_its_reversal_return_to_the_first_url() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (infra_env, id) = server.create_infra_env().await;
        let first = server.path(&infra_env);
        let bytes = server.get_bytes(&first).await;
        let changed = server.edit(&id, &json!({"additional_ntp_sources": "192.0.2.3"})).await;
        assert_ne!(server.path(&changed), first);
        let reverted = server.edit(&id, &json!({"additional_ntp_sources": ""})).await;
        assert_eq!(server.path(&reverted), first);
        assert!(server.get_bytes(&first).await == bytes);
        let file = first.rsplit('/').next().unwrap();
        assert_eq!((file, revision(&first).len(), first.contains('?')), ("full.iso", 16, false));
    });
}

#[test]
fn cached_revision_is_served_after_an_edit() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (infra_env, id) = server.create_infra_env().await;
        let old = server.path(&infra_env);
        let initrd = server.image_urls(&id).await.initrd;
        let initrd = initrd.reveal().strip_prefix(&server.base).unwrap().to_owned();
        let old_initrd = server.get_bytes(&initrd).await;
        let first = server.range(&old, "bytes=0-99999", &[]).await;
        let etag = header(&first, "etag");
        let mut bytes = first.bytes().await.unwrap().to_vec();
        let new = server.path(&server.edit(&id, &json!({"pull_secret": PULL_SECRET})).await);
        // The rest of a download without `If-Range` belongs to the same image as its beginning.
        let rest = server.range(&old, "bytes=100000-", &[]).await;
        assert_eq!((rest.status().as_u16(), header(&rest, "etag")), (206, etag.clone()));
        bytes.extend(rest.bytes().await.unwrap());
        assert!(server.get_bytes(&old).await == bytes);
        assert!(server.get_bytes(&new).await != bytes);
        assert!(server.get_bytes(&initrd).await == old_initrd);
        let line = String::from_utf8(server.get_bytes(&format!("{old}.sha256")).await).unwrap();
        assert!(line.starts_with(&Digest::from_data(&bytes).to_string()), "{line}");
        let head = server.client.head(format!("{}{old}", server.base)).send().await.unwrap();
        assert_eq!((head.status().as_u16(), header(&head, "etag")), (200, etag.clone()));
        assert_eq!(header(&head, "content-length"), bytes.len().to_string());
        for (tag, status) in [(etag.as_str(), 206), ("\"other\"", 200)] {
            let response = server.range(&old, "bytes=5-9", &[("if-range", tag)]).await;
            assert_eq!(response.status(), status, "{tag}");
        }
        // The URL without a revision means the current image.
        let current = server.get_bytes(&format!("/byid/{id}/4.14/x86_64/full.iso")).await;
        assert!(current == server.get_bytes(&new).await);
        let url = format!("{}{API}/infra-envs/{id}", server.base);
        assert_eq!(server.client.delete(url).send().await.unwrap().status(), 204);
        for path in [&old, &new, &initrd] {
            assert_eq!(server.get(path).await.status(), 404, "{path}");
        }
    });
}

#[test]
fn lost_revision_is_gone_and_names_the_current_url() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (infra_env, id) = server.create_infra_env().await;
        let (old, old_initrd) = (server.path(&infra_env), server.image_urls(&id).await.initrd);
        let new = server.edit(&id, &json!({"pull_secret": PULL_SECRET})).await;
        let urls = server.image_urls(&id).await;
        let refused = server.get(&old).await;
        assert_eq!(refused.status(), 410);
        let refusal: Value = refused.json().await.unwrap();
        assert_eq!(
            reason(&refusal),
            format!(
                "image revision {} of infra-env {id} is no longer available; the current image is {}",
                revision(&old),
                new["download_url"].as_str().unwrap(),
            )
        );
        let initrd = old_initrd.reveal().strip_prefix(&server.base).unwrap();
        let refused = server.get(initrd).await;
        assert_eq!(refused.status(), 410);
        let refusal: Value = refused.json().await.unwrap();
        assert!(reason(&refusal).ends_with(&format!("the current image is {}", urls.initrd.reveal())));
        // A range request for the old revision gets no byte of the new one.
        assert_eq!(server.range(&old, "bytes=100-199", &[]).await.status(), 410);
        let current = server.path(&new);
        for (text, status) in [
            ("0123456789abcdef", 410),
            ("0123456789ABCDEF", 404),
            ("0123456789abcde", 404),
            ("0123456789abcdef0", 404),
            ("latest", 404),
        ] {
            let path = current.replace(revision(&current), text);
            assert_eq!(server.get(&path).await.status(), status, "{path}");
            let initrd = format!("/images/{id}/{text}/pxe-initrd?version=4.14");
            assert_eq!(server.get(&initrd).await.status(), status, "{initrd}");
        }
    });
}

#[test]
fn error_for_a_lost_revision_has_the_credential_of_the_request() {
    run(async {
        let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
        let user = keys.user_token(Utc::now(), None).unwrap().reveal().to_owned();
        let server = ImageTestServer::start(Policy::local(keys), Some(user.clone())).await;
        let (infra_env, id) = server.create_infra_env().await;
        let old = server.path(&infra_env);
        assert!(old.starts_with("/byapikey/"), "{old}");
        let changed = server.edit(&id, &json!({"pull_secret": PULL_SECRET})).await;
        let new = changed["download_url"].as_str().unwrap();
        let token = new.split('/').nth(4).unwrap();
        let by_id = |text: &str| text.replace(&format!("byapikey/{token}"), &format!("byid/{id}"));
        let (old_by_id, new_by_id) = (by_id(&old), by_id(new));
        let current_image_of_gone = async |path: &str, user: Option<&str>| {
            let mut request = server.client.get(format!("{}{path}", server.base));
            if let Some(user) = user {
                request = request.bearer_auth(user);
            }
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 410, "{path}");
            let refusal: Value = response.json().await.unwrap();
            reason(&refusal).split_once("the current image is ").unwrap().1.to_owned()
        };
        assert_eq!(current_image_of_gone(&old, None).await, new);
        assert_eq!(
            server.get(&current_image_of_gone(&old, None).await[server.base.len()..]).await.status(),
            200
        );
        let with_key = current_image_of_gone(&format!("{old_by_id}?api_key={token}"), None).await;
        assert_eq!(with_key, format!("{new_by_id}?api_key={token}"));
        assert_eq!(current_image_of_gone(&old_by_id, Some(&user)).await, new_by_id);
        let initrd = format!("/images/{id}/0123456789abcdef/pxe-initrd?version=4.14&arch=x86_64");
        assert!(!current_image_of_gone(&initrd, Some(&user)).await.contains(token));
        assert!(current_image_of_gone(&format!("{initrd}&api_key={token}"), None).await.contains(token));
        for path in [&old_by_id, &new_by_id[server.base.len()..], &initrd] {
            assert_eq!(server.get(path).await.status(), 401, "{path}");
        }
    });
}

#[test]
fn replicas_and_restarts_publish_the_same_urls() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        server.edit(&id, &json!({"image_type": "minimal-iso"})).await;
        let (record, urls) = (server.record(&id).await, server.image_urls(&id).await);
        let settings = server.inventory.settings();
        assert_eq!(server.restarted(settings.clone()).image_urls(&record).await.unwrap(), urls);
        let url = |text: &str| HttpUrl::parse("url", text).unwrap();
        for (index, changed) in [
            Settings { service_base_url: url("http://192.0.2.9"), ..settings.clone() },
            Settings { image_service_base_url: url("http://192.0.2.9"), ..settings.clone() },
            Settings { agent_image: "quay.io/example/agent:other".to_owned(), ..settings.clone() },
            Settings { service_ca_certificates: Some(CERTIFICATE.to_owned()), ..settings.clone() },
            Settings { skip_certificate_verification: true, ..settings.clone() },
        ]
        .into_iter()
        .enumerate()
        {
            let other = server.restarted(changed).image_urls(&record).await.unwrap();
            assert_ne!(other.revision, urls.revision, "{index}");
        }
        let unrelated = Settings { self_version: "other".to_owned(), ..settings.clone() };
        assert_eq!(server.restarted(unrelated).image_urls(&record).await.unwrap(), urls);
        let nmstate = Settings { first_nmstate_version: Version::new(4, 14), ..settings.clone() };
        let delayed = Settings { discovery_delay_seconds: 9, ..nmstate.clone() };
        let nmstate = server.restarted(nmstate).image_urls(&record).await.unwrap();
        let delayed = server.restarted(delayed).image_urls(&record).await.unwrap();
        assert!(urls.revision != nmstate.revision && nmstate.revision != delayed.revision);
        assert!(nmstate.initrd != delayed.initrd);
    });
}

#[test]
fn published_urls_return_their_files() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (infra_env, id) = server.create_infra_env().await;
        let urls = server.image_urls(&id).await;
        assert_eq!(urls.iso.reveal(), infra_env["download_url"]);
        assert_eq!(revision(urls.iso.reveal()), urls.revision.to_string());
        let image_url =
            server.api(Method::GET, &format!("/infra-envs/{id}/downloads/image-url"), &json!({})).await;
        assert_eq!(image_url["url"], infra_env["download_url"]);
        let script = String::from_utf8(
            server
                .get_bytes(&urls.ipxe_script(IpxeScript::DiscoveryImageAlways).reveal()[server.base.len()..])
                .await,
        )
        .unwrap();
        // Users save scripts, so the URLs in scripts mean the current image.
        let plain = format!("{}/images/{id}/pxe-initrd?arch=x86_64&version=4.14", server.base);
        for url in [&plain, &urls.kernel, &urls.rootfs] {
            assert!(script.contains(url), "{url}: {script}");
        }
        let initrd = server.digest(urls.initrd.reveal()).await;
        assert_eq!(server.digest(&plain).await, initrd);
        assert_eq!(server.digest(&format!("/i/{id}/initrd")).await, initrd);
        for url in [
            &urls.kernel,
            &urls.rootfs,
            urls.discovery_ignition.reveal(),
            urls.events.reveal(),
            urls.static_network.reveal(),
            urls.ipxe_script(IpxeScript::BootOrderControl).reveal(),
        ] {
            assert_eq!(server.get(url.strip_prefix(&server.base).unwrap()).await.status(), 200, "{url}");
        }
        assert!(!format!("{urls:?}").contains(&id), "{urls:?}");
    });
}

/// Clients request alternating revisions during edits. They get the bytes of the revision in their URL, or an error.
#[test]
fn revision_has_one_content_during_edits() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let body = |number: usize| json!({"additional_ntp_sources": format!("192.0.2.{}", number % 3)});
        let mut contents = HashMap::new();
        for number in 0..3 {
            let path = server.path(&server.edit(&id, &body(number)).await);
            let bytes = server.get_bytes(&path).await;
            contents.insert(path, bytes);
        }
        assert_eq!(contents.len(), 3);
        let contents = Arc::new(contents);
        // The new server has no plans of old revisions, so it sends the revision if it is current, and otherwise
        // responds with 410.
        let fresh = server.serve_again().await;
        let readers: Vec<_> = contents
            .keys()
            .map(|path| {
                let (client, url) = (server.client.clone(), format!("{fresh}{path}"));
                let contents = Arc::clone(&contents);
                let path = path.clone();
                tokio::spawn(async move { count_served_ranges((client, url), &contents[&path]).await })
            })
            .collect();
        for number in 0..30 {
            server.edit(&id, &body(number)).await;
        }
        let mut served = 0;
        for reader in readers {
            served += reader.await.unwrap();
        }
        assert!(served > 0);
        assert!(base_image_bytes().len() > 60_000);
    });
}

/// Reads ranges of one revision during edits. Returns the number of served ranges.
async fn count_served_ranges((client, url): (Client, String), content: &[u8]) -> usize {
    let mut served = 0;
    for start in (0..60_000).step_by(1000) {
        let request = client.get(&url).header("range", format!("bytes={start}-"));
        let response = request.send().await.unwrap();
        if response.status() == 410 {
            continue;
        }
        assert_eq!(response.status(), 206, "{url}");
        assert!(content[start..] == response.bytes().await.unwrap(), "{url}: another revision");
        served += 1;
    }
    served
}
