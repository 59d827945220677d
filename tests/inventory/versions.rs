//! Which versions there are.

use serde_json::{Value, json};

use crate::service::{Service, on_each_database};

async fn offered(service: &Service, query: &str) -> Vec<String> {
    let versions = service.get(&format!("/v2/openshift-versions{query}")).await.expect(200);
    versions.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn versions_are_offered_by_name() {
    on_each_database(async |service| {
        let versions = service.get("/v2/openshift-versions").await.expect(200);
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
        assert_eq!(offered(service, "?version=4.14").await, ["4.14.71"]);
        assert_eq!(offered(service, "?version=multi").await, ["4.18.3-multi"]);
        assert_eq!(offered(service, "?version=9").await, [""; 0]);
        assert_eq!(offered(service, "?version=&only_latest=no").await.len(), 3);
        assert_eq!(offered(service, "?version=4.18&only_latest=true").await, ["4.18.3", "4.18.3-multi"]);
    });
}

#[test]
fn the_parts_of_an_installation_have_versions() {
    on_each_database(async |service| {
        let answer = service.get("/v2/component-versions").await.expect(200);
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
fn versions_support_processors() {
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
            let answer = service.get(&path).await.expect(200);
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
        assert_eq!(service.get(path).await.refused(400), "openshift_version in query is required");
        service.get(&format!("{path}?openshift_version=latest")).await.refused(400);
    });
}
