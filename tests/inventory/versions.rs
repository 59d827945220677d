//! The list of versions.

use serde_json::{Value, json};

use crate::service::{PULL_SECRET, TestService, on_each_database};

async fn version_names(service: &TestService, query: &str) -> Vec<String> {
    let versions = service.get(&format!("/v2/openshift-versions{query}")).await.json_with_status(200);
    versions.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn versions_are_listed_by_name() {
    on_each_database(async |service| {
        let versions = service.get("/v2/openshift-versions").await.json_with_status(200);
        let version = |name: &str, architectures: &[&str]| json!({"display_name": name, "support_level": "production", "cpu_architectures": architectures});
        let mut default = version("4.18.3", &["x86_64", "s390x"]);
        default["default"] = json!(true);
        assert_eq!(
            versions,
            json!({
                "4.14.71": version("4.14.71", &["x86_64"]),
                "4.18.3": default,
                "4.18.3-multi": version("4.18.3-multi", &["x86_64", "arm64", "s390x"]),
            })
        );
    });
}

#[test]
fn versions_are_filtered() {
    on_each_database(async |service| {
        assert_eq!(version_names(service, "?version=4.14").await, ["4.14.71"]);
        assert_eq!(version_names(service, "?version=multi").await, ["4.18.3-multi"]);
        assert_eq!(version_names(service, "?version=9").await, [""; 0]);
        assert_eq!(version_names(service, "?version=&only_latest=no").await.len(), 3);
        assert_eq!(
            version_names(service, "?version=4.18&only_latest=true").await,
            ["4.18.3", "4.18.3-multi"]
        );
    });
}

#[test]
fn component_versions_are_listed() {
    on_each_database(async |service| {
        let answer = service.get("/v2/component-versions").await.json_with_status(200);
        let names: Vec<_> = answer["versions"].as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            [
                "assisted-installer",
                "assisted-installer-controller",
                "assisted-installer-service",
                "discovery-agent"
            ]
        );
        assert_eq!(answer.get("release_tag"), None::<&Value>);
    });
}

#[test]
fn versions_list_their_support_of_architectures() {
    on_each_database(async |service| {
        for (version, expected) in [
            ("4.9.1", ["supported", "unavailable", "unavailable", "unavailable", "unavailable"]),
            ("4.10", ["supported", "supported", "unavailable", "unavailable", "unavailable"]),
            ("4.11.0-rc.1", ["supported", "supported", "unavailable", "unavailable", "tech-preview"]),
            ("4.12", ["supported", "supported", "tech-preview", "tech-preview", "tech-preview"]),
            ("4.13", ["supported", "supported", "supported", "supported", "tech-preview"]),
            ("5.0", ["supported", "supported", "supported", "supported", "tech-preview"]),
        ] {
            let path = format!("/v2/support-levels/architectures?openshift_version={version}");
            let answer = service.get(&path).await.json_with_status(200);
            let keys = [
                "X86_64_ARCHITECTURE",
                "ARM64_ARCHITECTURE",
                "PPC64LE_ARCHITECTURE",
                "S390X_ARCHITECTURE",
                "MULTIARCH_RELEASE_IMAGE",
            ];
            let levels: serde_json::Map<_, _> =
                keys.iter().zip(expected).map(|(key, level)| ((*key).to_owned(), json!(level))).collect();
            assert_eq!(answer, json!({"architectures": levels}), "{version}");
        }
        let path = "/v2/support-levels/architectures";
        assert_eq!(service.get(path).await.refusal_reason(400), "openshift_version in query is required");
        service.get(&format!("{path}?openshift_version=latest")).await.refusal_reason(400);
    });
}

fn os_image(version: &str) -> Value {
    json!({"openshift_version": version, "cpu_architecture": "x86_64", "url": "http://mirror.example/live.iso", "version": "9.9"})
}

#[test]
fn os_images_are_added_and_removed() {
    on_each_database(async |service| {
        let before = service.get("/v2/os-images").await.json_with_status(200);
        assert!(before.as_array().unwrap().iter().all(|image| image["configured"] == true));
        assert_eq!(before.as_array().unwrap().len(), 4);
        let mut expected = os_image("4.99");
        expected["type"] = json!("full-iso");
        expected["configured"] = json!(false);
        assert_eq!(service.post("/v2/os-images", &os_image("4.99")).await.json_with_status(201), expected);
        let after = service.get("/v2/os-images").await.json_with_status(200);
        assert_eq!(after.as_array().unwrap().last(), Some(&expected));
        let reason = service.post("/v2/os-images", &os_image("4.99")).await.refusal_reason(409);
        assert_eq!(reason, "an OS image for version 4.99 and architecture x86_64 already exists");
        service.delete("/v2/os-images/4.99/amd64").await.json_with_status(204);
        assert_eq!(service.delete("/v2/os-images/4.99/x86_64").await.refusal_reason(404), "record not found");
        assert_eq!(service.get("/v2/os-images").await.json_with_status(200), before);
    });
}

#[test]
fn credentials_in_the_url_of_an_os_image_are_not_shown() {
    on_each_database(async |service| {
        let mut image = os_image("4.99");
        image["url"] = json!("http://reader:hunter2@mirror.example/live.iso");
        let added = service.post("/v2/os-images", &image).await.json_with_status(201);
        assert_eq!(added["url"], "http://*****@mirror.example/live.iso");
        let list = service.get("/v2/os-images").await.json_with_status(200);
        assert_eq!(list.as_array().unwrap().last(), Some(&added));
        // The record contains the credentials, because the download uses them.
        let stored = service.inventory.added_images().await.unwrap();
        assert_eq!(stored[0].url, image["url"]);
    });
}

#[test]
fn url_of_an_os_image_is_stored_without_white_space_around_it() {
    on_each_database(async |service| {
        let mut image = os_image("4.99");
        image["url"] = json!(" http://mirror.example/live.iso\n");
        let added = service.post("/v2/os-images", &image).await.json_with_status(201);
        assert_eq!(added["url"], "http://mirror.example/live.iso");
        let stored = service.inventory.added_images().await.unwrap();
        assert_eq!(stored[0].url, "http://mirror.example/live.iso");
    });
}

#[test]
fn added_os_image_in_use_cannot_be_deleted() {
    on_each_database(async |service| {
        let body = json!({"name": "demo", "pull_secret": PULL_SECRET, "openshift_version": "4.99.1"});
        service.post("/v2/infra-envs", &body).await.refusal_reason(400);
        service.post("/v2/os-images", &os_image("4.99")).await.json_with_status(201);
        let infra_env = service.post("/v2/infra-envs", &body).await.json_with_status(201);
        assert!(infra_env["download_url"].as_str().unwrap().contains("/4.99/x86_64/"), "{infra_env}");
        let reason = service.delete("/v2/os-images/4.99/x86_64").await.refusal_reason(409);
        assert_eq!(reason, format!("infra-env {} uses the OS image", infra_env["id"].as_str().unwrap()));
        service
            .delete(&format!("/v2/infra-envs/{}", infra_env["id"].as_str().unwrap()))
            .await
            .json_with_status(204);
        service.delete("/v2/os-images/4.99/x86_64").await.json_with_status(204);
    });
}

#[test]
fn configured_os_images_cannot_be_deleted_and_new_ones_are_checked() {
    on_each_database(async |service| {
        let reason = service.delete("/v2/os-images/4.14/x86_64").await.refusal_reason(409);
        assert_eq!(reason, "the OS image is part of the configuration of this service");
        service.delete("/v2/os-images/4.14/mips").await.refusal_reason(400);
        service.post("/v2/os-images", &os_image("4.14")).await.refusal_reason(409);
        for (key, value, reason) in [
            ("openshift_version", json!("latest"), "openshift_version \"latest\" is not valid"),
            ("openshift_version", json!(null), "openshift_version in body is required"),
            ("version", json!(""), "version in body should be at least 1 chars long"),
            (
                "cpu_architecture",
                json!("mips"),
                "cpu_architecture in body should be one of [x86_64 aarch64 arm64 ppc64le s390x]",
            ),
            ("version", json!("../9"), "version \"../9\" is not valid: it is a part of a file name"),
            ("sha256", json!("ab"), "sha256"),
            ("url", json!("ftp://mirror.example"), "url"),
        ] {
            let mut body = os_image("4.99");
            body[key] = value;
            let actual = service.post("/v2/os-images", &body).await.refusal_reason(400);
            assert!(actual.contains(reason), "{actual}");
        }
        // The names of base image files contain the `version` of the image, so two images with the same `version` and
        // architecture must have the same URL and digest.
        service.post("/v2/os-images", &os_image("4.98")).await.json_with_status(201);
        service.post("/v2/os-images", &os_image("4.97")).await.json_with_status(201);
        let mut other = os_image("4.96");
        other["url"] = json!("http://mirror.example/other.iso");
        let reason = service.post("/v2/os-images", &other).await.refusal_reason(409);
        let expected = "the OS image for version 4.98 and architecture x86_64 has the version 9.9 too, but another url or sha256";
        assert_eq!(reason, expected);
        // URLs contain the `openshift_version` or the `version` of an image, so the `version` of an image must not be
        // the `openshift_version` of another image.
        other["version"] = json!("4.98");
        let reason = service.post("/v2/os-images", &other).await.refusal_reason(409);
        assert_eq!(reason, "the OS image for version 4.98 has the version 9.9; URLs could mean either image");
        other["version"] = json!("9.9");
        other["cpu_architecture"] = json!("arm64");
        service.post("/v2/os-images", &other).await.json_with_status(201);
    });
}
