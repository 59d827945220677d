//! Kindling's own URLs: one prefix for all files of an infra-env, images for one host, and the progress of clients.

use chrono::Utc;
use reqwest::Method;
use serde_json::{Value, json};

use super::{API, ImageTestServer, KeyTexts, LocalKeys, Policy, VERSION, header, run};

impl ImageTestServer {
    async fn get_json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.get_bytes(path).await).unwrap()
    }

    async fn get_text(&self, path: &str) -> String {
        String::from_utf8(self.get_bytes(path).await).unwrap()
    }

    /// Returns the path of a URL from the server.
    fn path_of_url<'a>(&self, url: &'a Value) -> &'a str {
        url.as_str().unwrap().strip_prefix(&self.base).unwrap()
    }

    async fn get_range(&self, path: &str, range: &str) -> Vec<u8> {
        let request = self.client.get(format!("{}{path}", self.base)).header("range", range);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 206);
        response.bytes().await.unwrap().to_vec()
    }
}

#[test]
fn one_prefix_serves_all_files_of_an_infra_env() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        // A request for a file waits for its base image, a request for the list does not.
        let full = server.get_bytes(&format!("/i/{id}/full.iso")).await;
        let listing = server.get_json(&format!("/i/{id}")).await;
        assert_eq!(listing["infra_env_id"], id.as_str());
        assert_eq!((&listing["version"], &listing["ready"]), (&json!(VERSION), &json!(true)));
        let names: Vec<_> = listing["files"].as_array().unwrap().iter().map(|file| &file["name"]).collect();
        assert_eq!(names, ["full.iso", "minimal.iso", "initrd", "kernel", "rootfs"]);
        for file in listing["files"].as_array().unwrap() {
            let path = server.path_of_url(&file["url"]);
            let response = server.get(path).await;
            assert_eq!(header(&response, "etag"), file["etag"].as_str().unwrap(), "{path}");
            let bytes = response.bytes().await.unwrap();
            assert_eq!(json!(bytes.len()), file["size"], "{path}");
            let line = server.get_text(server.path_of_url(&file["sha256_url"])).await;
            assert_eq!(
                line.split(' ').next().unwrap(),
                isogen::Digest::from_data(&bytes).to_string(),
                "{path}"
            );
        }
        for (ours, theirs) in [
            ("full.iso", format!("/byid/{id}/4.14/x86_64/full.iso")),
            ("minimal.iso", format!("/byid/{id}/4.14/x86_64/minimal.iso")),
            ("initrd", format!("/images/{id}/pxe-initrd?version=4.14")),
            ("kernel", "/boot-artifacts/kernel?version=4.14".to_owned()),
            ("rootfs", "/boot-artifacts/rootfs?version=4.14".to_owned()),
            ("script.ipxe", format!("{API}/infra-envs/{id}/downloads/files?file_name=ipxe-script")),
        ] {
            assert!(
                server.get_bytes(&format!("/i/{id}/{ours}")).await == server.get_bytes(&theirs).await,
                "{ours}"
            );
        }
        assert_eq!(server.path_of_url(&listing["script_url"]), format!("/i/{id}/script.ipxe"));
        assert!(full == server.get_bytes(&format!("/i/{id}/full.iso")).await);
    });
}

#[test]
fn token_names_its_infra_env() {
    run(async {
        let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
        let user = keys.user_token(Utc::now(), None).unwrap().reveal().to_owned();
        let server = ImageTestServer::start(Policy::local(keys), Some(user)).await;
        let (infra_env, id) = server.create_infra_env().await;
        let token = infra_env["download_url"].as_str().unwrap().split('/').nth(4).unwrap().to_owned();
        for path in [
            format!("/i/{id}"),
            format!("/i/{id}/full.iso"),
            format!("/i/{id}/kernel"),
            format!("/i/{id}/script.ipxe"),
            format!("/i/{id}/boot-trace"),
            format!("/i/{id}/52-54-00-00-00-01/full.iso"),
        ] {
            assert_eq!(server.get(&path).await.status(), 401, "{path}");
            assert_eq!(server.get(&path.replace(&id, &token)).await.status(), 200, "{path}");
            assert_eq!(server.get(&format!("{path}?api_key={token}")).await.status(), 200, "{path}");
        }
        // Every listed URL works unchanged.
        for path in [format!("/i/{token}"), format!("/i/{id}?api_key={token}")] {
            let listing = server.get_json(&path).await;
            for url in
                [&listing["files"][1]["url"], &listing["files"][3]["sha256_url"], &listing["script_url"]]
            {
                assert_eq!(server.get(server.path_of_url(url)).await.status(), 200, "{url}");
            }
        }
        let (_, other) = server.create_infra_env().await;
        assert_eq!(server.get(&format!("/i/{other}/full.iso?api_key={token}")).await.status(), 401);
    });
}

#[test]
fn host_gets_only_its_own_network() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let host = |number: u8| {
            json!({
                "network_yaml": "interfaces: [{name: eth0, type: ethernet, state: up}]\n",
                "mac_interface_map": [{"mac_address": format!("52:54:00:aa:00:0{number}"), "logical_nic_name": "eth0"}],
            })
        };
        let change = json!({"static_network_config": [host(1), host(2)]});
        server.api(Method::PATCH, &format!("/infra-envs/{id}"), &change).await;
        let addresses = async |path: String| {
            let image = server.open_image(&server.get_bytes(&path).await);
            let config = image.archive().unwrap().get("config.ign").unwrap().to_vec();
            let config = String::from_utf8(config).unwrap();
            interface_maps(&config)
        };
        let all = addresses(format!("/i/{id}/full.iso")).await;
        assert_eq!(all.len(), 2, "{all:?}");
        for mac in ["52:54:00:AA:00:02", "52-54-00-aa-00-02"] {
            let own = addresses(format!("/i/{id}/{mac}/full.iso")).await;
            assert_eq!(own.len(), 1);
            assert!(own[0].contains("52:54:00:aa:00:02"), "{own:?}");
        }
        let one = server.get(&format!("/i/{id}/52-54-00-aa-00-01/minimal.iso")).await;
        let other = server.get(&format!("/i/{id}/52-54-00-aa-00-02/minimal.iso")).await;
        assert_ne!(header(&one, "etag"), header(&other, "etag"));
    });
}

/// Returns the interface maps in a config.
fn interface_maps(config: &str) -> Vec<String> {
    let config: Value = serde_json::from_str(config).unwrap();
    let files = config["storage"]["files"].as_array().unwrap();
    let maps = files.iter().filter(|file| file["path"].as_str().unwrap().ends_with("mac_interface.ini"));
    let text = |file: &Value| file["contents"]["source"].as_str().unwrap().to_lowercase().replace("%3a", ":");
    maps.map(text).collect()
}

#[test]
fn boot_trace_shows_the_progress_of_a_client() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let trace = async || server.get_json(&format!("/i/{id}/boot-trace")).await["readers"].clone();
        assert_eq!(trace().await, json!([]));
        let path = format!("/i/{id}/full.iso");
        let image = server.open_image(&server.get_bytes(&path).await);
        let rootfs = image.require_file("images/pxeboot/rootfs.img").unwrap().extent;
        let change = json!({"kernel_arguments": [{"operation": "append", "value": "loud"}]});
        server.api(Method::PATCH, &format!("/infra-envs/{id}"), &change).await;
        let first = rootfs.offset() + 100;
        server.get_range(&path, &format!("bytes={first}-{}", first + 9)).await;
        server.get_range(&path, &format!("bytes={first}-{}", first + 9)).await;
        let readers = trace().await;
        let [reader] = readers.as_array().unwrap().as_slice() else { panic!("{readers}") };
        assert_eq!((&reader["client"], &reader["file"]), (&json!("127.0.0.1"), &json!("full.iso")));
        assert_eq!((&reader["answers"], &reader["bytes_sent"]), (&json!(2), &json!(20)));
        assert_eq!(reader["state"], "reading");
        let place = json!({"first": first, "last": first + 9, "file": "images/pxeboot/rootfs.img"});
        assert_eq!(reader["last_range"], place);
        assert_eq!(reader["ranges"], Value::Null, "no client requested ranges");
        let boot_trace = server.get_json(&format!("/i/{id}/boot-trace?ranges=true")).await;
        let reader = &boot_trace["readers"][0];
        let [range] = reader["ranges"].as_array().unwrap().as_slice() else { panic!("{reader}") };
        let block = first - first % (64 << 10);
        assert_eq!((&range["first"], &range["last"]), (&json!(block), &json!(block + (64 << 10) - 1)));
        // The config is not part of the base image's bytes.
        let mut files = image.files_in(isogen::Extent::new(block, 64 << 10).unwrap());
        files.retain(|file| file != "images/ignition.img");
        assert!(files.contains(&"images/pxeboot/rootfs.img".to_owned()), "{files:?}");
        assert_eq!(range["files"], json!(files));
        // HEAD and 304 responses send no bytes of the image, so the trace does not count them.
        let url = format!("{}{path}", server.base);
        server.client.head(&url).send().await.unwrap();
        let etag = reader["etag"].as_str().unwrap();
        assert_eq!(server.client.get(&url).header("if-none-match", etag).send().await.unwrap().status(), 304);
        assert_eq!(trace().await[0]["answers"], 2);
        server.get_bytes(&path).await;
        assert_eq!(trace().await[0]["state"], "complete");
        assert_eq!(trace().await[0]["percent"], 100);
        server.get_bytes(&format!("/i/{id}/kernel")).await;
        assert_eq!(trace().await[1]["file"], "kernel");
    });
}

#[test]
fn boot_trace_distinguishes_multiple_ranges() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let path = format!("/i/{id}/full.iso");
        let len = server.client.head(format!("{}{path}", server.base)).send().await.unwrap();
        let last: u64 = header(&len, "content-length").parse::<u64>().unwrap() - 1;
        server.get_range(&path, &format!("bytes=0-9,{}-{last}", last - 9)).await;
        let boot_trace = server.get_json(&format!("/i/{id}/boot-trace?ranges=true")).await;
        let reader = &boot_trace["readers"][0];
        assert_eq!(reader["bytes_sent"], 20, "part headers do not count as image bytes");
        let places =
            reader["ranges"].as_array().unwrap().iter().map(|range| (&range["first"], &range["last"]));
        let end = last - last % (64 << 10);
        let expected = [(&json!(0), &json!((64 << 10) - 1)), (&json!(end), &json!(last))];
        assert_eq!(places.collect::<Vec<_>>(), expected);
    });
}

#[test]
fn sent_bytes_are_counted() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let path = format!("/i/{id}/minimal.iso");
        server.get_range(&path, "bytes=0-99").await;
        server.get_range(&path, "bytes=0-9,20-29").await;
        server.get("/nonsense").await;
        let text = server.get_text("/metrics").await;
        for line in [
            r#"kindling_image_answers_total{file="minimal.iso",kind="range"} 1"#,
            r#"kindling_image_answers_total{file="minimal.iso",kind="ranges"} 1"#,
            r#"kindling_requests_total{area="images",status="206"} 2"#,
            r#"kindling_requests_total{area="other",status="404"} 1"#,
            r#"kindling_plans_total{outcome="made"} 1"#,
        ] {
            assert!(text.lines().any(|text_line| text_line == line), "{line}\n{text}");
        }
        let ready = r#"state="ready"} 1"#;
        assert!(
            text.lines().any(|line| line.starts_with("kindling_live_image_state{") && line.ends_with(ready))
        );
        assert!(text.ends_with("# EOF\n"));
        let sent_bytes =
            text.lines().find(|line| line.starts_with(r#"kindling_image_bytes_total{file="minimal.iso"}"#));
        // The parts of the second response have part headers.
        let sent_bytes: u64 = sent_bytes.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        assert!((120..1000).contains(&sent_bytes), "{sent_bytes}");
    });
}

/// The outcome of a request is cached for a while, but a change invalidates it immediately.
#[test]
fn cached_response_is_recomputed_after_a_change() {
    run(async {
        let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
        let user = keys.user_token(Utc::now(), None).unwrap().reveal().to_owned();
        let server = ImageTestServer::start(Policy::local(keys), Some(user.clone())).await;
        let (infra_env, id) = server.create_infra_env().await;
        let token = server.path_of_url(&infra_env["download_url"]).split('/').nth(2).unwrap();
        let path = format!("/byapikey/{token}/4.14/x86_64/full.iso");
        let first = server.get(&path).await;
        let etag = header(&first, "etag");
        for _ in 0..3 {
            assert_eq!(header(&server.get(&path).await, "etag"), etag);
            // A request without a token is refused, even after requests with a token.
            assert_eq!(server.get(&format!("/byid/{id}/4.14/x86_64/full.iso")).await.status(), 401);
            let url = format!("{}/byid/{id}/4.14/x86_64/full.iso", server.base);
            assert_eq!(server.client.get(url).bearer_auth(&user).send().await.unwrap().status(), 200);
        }
        let change = json!({"kernel_arguments": [{"operation": "append", "value": "loud"}]});
        server.api(Method::PATCH, &format!("/infra-envs/{id}"), &change).await;
        assert_ne!(header(&server.get(&path).await, "etag"), etag);
        let url = format!("{}{API}/infra-envs/{id}", server.base);
        assert_eq!(server.client.delete(url).bearer_auth(&user).send().await.unwrap().status(), 204);
        assert_eq!(server.get(&path).await.status(), 404);
    });
}
