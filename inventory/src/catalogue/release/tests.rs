use serde_json::{Value, json};

use super::*;

const X86: ReleaseArchitecture = ReleaseArchitecture::One(CpuArchitecture::X86_64);
const ARM: ReleaseArchitecture = ReleaseArchitecture::One(CpuArchitecture::Arm64);

fn release(name: &str, version: &str, architecture: &str) -> Value {
    json!({
        "openshift_version": name,
        "version": version,
        "cpu_architecture": architecture,
        "url": format!("registry.example/{version}-{architecture}"),
    })
}

fn with(mut release: Value, key: &str, value: Value) -> Value {
    release[key] = value;
    release
}

/// Creates a catalogue with images of 4.13 to 4.16 for `x86_64`, and of 4.14 for ARM.
fn catalogue(releases: &Value) -> Catalogue {
    let image = |version: &str, architecture: &str| json!({"openshift_version": version, "cpu_architecture": architecture, "url": "u", "version": "1"});
    let images = json!([
        image("4.13", "x86_64"),
        image("4.14", "x86_64"),
        image("4.14", "arm64"),
        image("4.15", "x86_64"),
        image("4.16", "x86_64"),
    ]);
    let catalogue = Catalogue::parse(&images.to_string()).unwrap();
    catalogue.with_release_images(&releases.to_string()).unwrap()
}

fn multi() -> Value {
    let architectures = json!(["x86_64", "aarch64", "ppc64le"]);
    with(release("4.14-multi", "4.14.9-multi", "multi"), "cpu_architectures", architectures)
}

#[test]
fn minor_version_prefers_newest_stable_over_prerelease() {
    let catalogue = catalogue(&json!([
        release("4.14", "4.14.9", "x86_64"),
        release("4.14", "4.14.10", "x86_64"),
        with(release("4.14", "4.14.11", "x86_64"), "support_level", json!("beta")),
        release("4.15", "4.15.0-rc.1", "x86_64"),
        release("4.15", "4.15.0-ec.9", "x86_64"),
    ]));
    let selected = |version| catalogue.release(version, X86).unwrap().version.as_str();
    assert_eq!(selected("4.14"), "4.14.10");
    assert_eq!(selected("4.14.9"), "4.14.9");
    assert_eq!(selected("4.14.11"), "4.14.11");
    assert_eq!(selected("4.15"), "4.15.0-rc.1");
    assert_eq!(selected("4.15.0-ec.9"), "4.15.0-ec.9");
}

#[test]
fn release_error_names_the_reason() {
    let catalogue = catalogue(&json!([
        release("4.14", "4.14.9", "x86_64"),
        release("4.16", "4.16.1", "arm64"),
        release("4.17", "4.17.1", "x86_64"),
    ]));
    let reason = |version, architecture| catalogue.release(version, architecture).unwrap_err().to_string();
    assert_eq!(
        reason("4.14.8", X86),
        "No release image for Openshift version 4.14.8 and architecture x86_64: The requested release image for \
         version (4.14.8) and CPU architecture (x86_64) isn't specified in release images list"
    );
    assert!(reason("4.14", ARM).ends_with("isn't specified in release images list"));
    assert!(reason("4", X86).ends_with(": invalid version"));
    for (version, architecture, whole) in [("4.16", ARM, "4.16.1"), ("4.17", X86, "4.17.1")] {
        let expected =
            format!("No OS images are available for version {whole} and architecture {architecture}");
        assert_eq!(reason(version, architecture), expected);
    }
    let error = Catalogue::default().release("4.14", X86).unwrap_err().to_string();
    assert!(error.ends_with(": The release images list is empty"), "{error}");
}

#[test]
fn multi_release_matches_each_of_its_architectures() {
    let catalogue = catalogue(&json!([release("4.14", "4.14.9", "x86_64"), multi()]));
    let selected = |version, architecture| catalogue.release(version, architecture).unwrap();
    assert!(selected("4.14-multi", ReleaseArchitecture::Multi).is_multi());
    assert!(selected("4.14.9-multi", X86).is_multi());
    assert!(selected("4.14-multi", ARM).is_multi());
    assert!(!selected("4.14", X86).is_multi());
    let url = "registry.example/4.14.9-multi-multi";
    assert!(catalogue.release_at(url, ReleaseArchitecture::Multi).unwrap().is_multi());
    let s390x = ReleaseArchitecture::One(CpuArchitecture::S390x);
    assert!(catalogue.release_at(url, s390x).unwrap_err().to_string().contains("architecture s390x"));
    let error = catalogue.release_at("elsewhere", X86).unwrap_err();
    assert_eq!(error.to_string(), "No release image with URL elsewhere");
}

fn offered_versions(catalogue: &Catalogue, query: VersionQuery<'_>) -> Vec<String> {
    catalogue.openshift_versions(query).into_keys().collect()
}

#[test]
fn versions_list_only_architectures_with_images() {
    let catalogue = catalogue(&json!([
        release("4.14", "4.14.9", "x86_64"),
        with(release("4.14", "4.14.9", "aarch64"), "default", json!(true)),
        multi(),
        with(release("4.15", "4.15.2", "x86_64"), "support_level", json!("end-of-life")),
        release("4.16", "4.16.0-rc.1", "x86_64"),
        release("4.17", "4.17.1", "x86_64"),
        release("4.15", "4.15.2", "s390x"),
    ]));
    let versions = catalogue.openshift_versions(VersionQuery::default());
    assert_eq!(
        serde_json::to_value(&versions).unwrap(),
        json!({
            "4.14.9": {"display_name": "4.14.9", "support_level": "production", "cpu_architectures": ["x86_64", "arm64"], "default": true},
            "4.14.9-multi": {"display_name": "4.14.9-multi", "support_level": "production", "cpu_architectures": ["x86_64", "arm64"]},
            "4.15.2": {"display_name": "4.15.2", "support_level": "end-of-life", "cpu_architectures": ["x86_64"]},
            "4.16.0-rc.1": {"display_name": "4.16.0-rc.1", "support_level": "beta", "cpu_architectures": ["x86_64"]},
        })
    );
}

#[test]
fn only_latest_considers_all_releases() {
    let catalogue = catalogue(&json!([
        release("4.14", "4.14.8", "x86_64"),
        release("4.14", "4.14.9", "x86_64"),
        multi(),
        with(release("4.14", "4.14.10", "x86_64"), "support_level", json!("beta")),
        release("4.16", "4.16.0-ec.1", "x86_64"),
        release("4.16", "4.16.0-rc.1", "x86_64"),
    ]));
    let newest = VersionQuery { only_latest: true, containing: None };
    assert_eq!(offered_versions(&catalogue, newest), ["4.14.9", "4.14.9-multi", "4.16.0-rc.1"]);
    let old = VersionQuery { containing: Some("4.14.8"), only_latest: false };
    assert_eq!(offered_versions(&catalogue, old), ["4.14.8"]);
    assert_eq!(offered_versions(&catalogue, VersionQuery { only_latest: true, ..old }), [""; 0]);
}

#[test]
fn ignored_versions_are_not_offered() {
    let releases = json!([
        release("4.14", "4.14.9", "x86_64"),
        multi(),
        release("4.15", "4.15.2", "x86_64"),
        release("4.15", "4.15.3", "x86_64")
    ]);
    let ignoring =
        |list: &str| offered_versions(&catalogue(&releases).ignoring(list).unwrap(), VersionQuery::default());
    assert_eq!(ignoring(r#"["4.14", "4.15.2-multi"]"#), ["4.15.3"]);
    assert_eq!(ignoring(""), ["4.14.9", "4.14.9-multi", "4.15.2", "4.15.3"]);
    assert!(catalogue(&releases).ignoring("4.14").is_err());
}

#[test]
fn rejects_ignored_versions_that_are_not_versions() {
    for (list, version) in
        [(r#"["4.14", "4"]"#, "4"), (r#"["4.14", "4.15x"]"#, "4.15x"), (r#"["4.14", ""]"#, "")]
    {
        let error = Catalogue::default().ignoring(list).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("ignored version 2: is {version:?}, which is not a valid version")
        );
    }
}

#[test]
fn rejects_invalid_lists() {
    let good = || release("4.14", "4.14.9", "x86_64");
    for (key, value, reason) in [
        ("url", json!(null), "url is missing"),
        ("version", json!("new"), "version is \"new\", which is not a valid version"),
        ("version", json!("4.14--multi"), "version is \"4.14--multi\", which is not a valid version"),
        ("version", json!("4.14-rc.-multi"), "version is \"4.14-rc.-multi\", which is not a valid version"),
        (
            "openshift_version",
            json!("4.14--multi"),
            "openshift_version is \"4.14--multi\", which is not a valid version",
        ),
        (
            "cpu_architecture",
            json!("mips"),
            "cpu_architecture is \"mips\", which is not a known CPU architecture",
        ),
        (
            "cpu_architectures",
            json!(["x86_64", "mips"]),
            "cpu_architectures is \"mips\", which is not a known CPU architecture",
        ),
        ("cpu_architectures", json!([1]), "cpu_architectures must be a list of strings"),
        ("default", json!("yes"), "default must be true or false"),
        (
            "support_level",
            json!("full"),
            "support_level is \"full\"; expected one of beta, production, maintenance, end-of-life",
        ),
    ] {
        let list = json!([good(), with(good(), key, value)]).to_string();
        let error = Catalogue::default().with_release_images(&list).unwrap_err();
        assert_eq!(error.to_string(), format!("release 2: {reason}"));
    }
}
