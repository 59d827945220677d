//! The selection of `NMStateConfig`s for an infra-env, and the check against its cluster, with the complete messages.

use crate::support::Scratch;
use crate::{run_create, scratch_with_site};

/// Changes a manifest of the site.
#[track_caller]
fn change_manifest(scratch: &Scratch, file: &str, from: &str, to: &str) {
    let path = format!("manifests/{file}");
    let text = String::from_utf8(scratch.read(&path)).unwrap();
    assert!(text.contains(from), "{path} has no {from:?}");
    scratch.write(&path, text.replacen(from, to, 1));
}

#[track_caller]
fn assert_refused(scratch: &Scratch, options: &[&str], stderr: &str) {
    let output = run_create(scratch, &[&["--full", "full.iso"], options].concat());
    assert_eq!(output.stderr, stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && !scratch.has_file("full.iso"));
}

/// Creates an image, and returns the findings and the summary.
#[track_caller]
fn findings_and_summary(scratch: &Scratch, options: &[&str]) -> (String, String) {
    let output = run_create(scratch, &[&["--full", "full.iso"], options].concat());
    let stderr = output.stderr.clone();
    let summary = output.expect_text();
    scratch.remove("full.iso");
    (stderr, summary)
}

const SELECTOR: &str = "manifests/infraenv.yaml:13: spec.nmStateConfigLabelSelector";

#[test]
fn rejects_selector_that_matches_none_of_the_configs() {
    let one = |what: &str| {
        format!(
            "{SELECTOR}: error: {what}; for example, rack4/master-0 has infraenv=rack4\nError: 1 error; nothing was written\n"
        )
    };
    let site = scratch_with_site("bonded");
    change_manifest(&site, "infraenv.yaml", "infraenv: rack4", "infraenv: rack-4");
    assert_refused(&site, &[], &one("selects no NMStateConfig"));
    let site = scratch_with_site("bonded");
    change_manifest(
        &site,
        "infraenv.yaml",
        "    matchLabels:\n      infraenv: rack4\n",
        "    matchLabels: {}\n",
    );
    assert_refused(&site, &[], &one("is empty, so it selects no NMStateConfig"));
    let site = scratch_with_site("bonded");
    change_manifest(
        &site,
        "infraenv.yaml",
        "  nmStateConfigLabelSelector:\n    matchLabels:\n      infraenv: rack4\n",
        "",
    );
    assert_refused(
        &site,
        &[],
        &one("is missing, so it selects no NMStateConfig").replace("yaml:13", "yaml:6"),
    );
}

#[test]
fn rejects_config_whose_label_has_another_value() {
    let site = scratch_with_site("bonded");
    change_manifest(&site, "nmstate.yaml", "infraenv: rack4", "infraenv: rack-4");
    assert_refused(
        &site,
        &[],
        "manifests/nmstate.yaml:6: metadata.labels: error: the InfraEnv's selector does not match infraenv=rack-4, so this host is left out\n\
         Error: 1 error; nothing was written\n",
    );
}

#[test]
fn config_without_the_label_is_a_warning() {
    let site = scratch_with_site("bonded");
    change_manifest(&site, "nmstate.yaml", "    infraenv: rack4", "    rack: \"4\"");
    let warning = "manifests/nmstate.yaml:6: metadata.labels: warning: the InfraEnv's selector does not match rack=4, so this host is left out\n";
    let (stderr, summary) = findings_and_summary(&site, &[]);
    assert_eq!(stderr, warning);
    assert!(summary.contains("Static networks:   master-1, master-2\n"));
    assert_refused(
        &site,
        &["--strict"],
        &format!("{warning}Error: 1 warning, an error because of --strict; nothing was written\n"),
    );
}

#[test]
fn configs_of_another_infra_env_are_not_reported() {
    let site = scratch_with_site("bonded");
    change_manifest(&site, "nmstate.yaml", "infraenv: rack4", "infraenv: spare");
    let other = String::from_utf8(site.read("manifests/infraenv.yaml")).unwrap();
    let other = other.replacen("name: rack4", "name: spare", 1).replace("infraenv: rack4", "infraenv: spare");
    site.write("manifests/other.yaml", other);
    for (infra_env, hosts) in [("rack4", "master-1, master-2"), ("spare", "master-0")] {
        let (stderr, summary) = findings_and_summary(&site, &["--infra-env", infra_env, "--strict"]);
        assert_eq!(stderr, "");
        assert!(summary.contains(&format!("Static networks:   {hosts}\n")));
    }
}

#[test]
fn rejects_selected_configs_in_another_namespace() {
    let site = scratch_with_site("bonded");
    let text = String::from_utf8(site.read("manifests/nmstate.yaml")).unwrap();
    site.write("manifests/nmstate.yaml", text.replacen("namespace: rack4", "namespace: rack5", 1));
    let far = |line: usize| {
        format!(
            "manifests/nmstate.yaml:{line}: metadata.namespace: error: the InfraEnv selects these labels, but only in its own \
             namespace \"rack4\", so this host is left out\n"
        )
    };
    assert_refused(&site, &[], &format!("{}Error: 1 error; nothing was written\n", far(5)));
    site.write("manifests/nmstate.yaml", text.replace("namespace: rack4", "namespace: rack5"));
    let all = [far(5), far(60), far(115)].concat();
    assert_refused(&site, &[], &format!("{all}Error: 3 errors; nothing was written\n"));
    // The configs belong to the infra-env of their namespace.
    let other = String::from_utf8(site.read("manifests/infraenv.yaml")).unwrap();
    let other = other.replace("name: rack4\n  namespace: rack4", "name: rack5\n  namespace: rack5");
    site.write("manifests/other.yaml", other);
    let (stderr, _) = findings_and_summary(&site, &["--infra-env", "rack4"]);
    assert_eq!(stderr, format!("{SELECTOR}: warning: matches no NMStateConfig: the hosts use DHCP\n"));
}

#[test]
fn rejects_selected_config_in_the_namespace_of_another_infra_env() {
    let site = scratch_with_site("bonded");
    let text = String::from_utf8(site.read("manifests/nmstate.yaml")).unwrap();
    site.write("manifests/nmstate.yaml", text.replacen("infraenv: rack4", "infraenv: rack7", 1));
    let other = String::from_utf8(site.read("manifests/infraenv.yaml")).unwrap();
    let other = other.replacen("name: rack4\n  namespace: rack4", "name: rack7\n  namespace: rack7", 1);
    site.write("manifests/other.yaml", other.replace("infraenv: rack4", "infraenv: rack7"));
    let secret = String::from_utf8(site.read("manifests/pull-secret.yaml")).unwrap();
    site.write("manifests/other-secret.yaml", secret.replace("rack4", "rack7"));
    assert_refused(
        &site,
        &["--infra-env", "rack7"],
        "manifests/nmstate.yaml:5: metadata.namespace: error: the InfraEnv selects these labels, but only in its own \
         namespace \"rack7\", so this host is left out\n\
         Error: 1 error; nothing was written\n",
    );
    assert_refused(
        &site,
        &["--infra-env", "rack4"],
        "manifests/nmstate.yaml:6: metadata.labels: error: the InfraEnv's selector does not match infraenv=rack7, so this \
         host is left out\n\
         Error: 1 error; nothing was written\n",
    );
}

#[test]
fn rejects_config_that_meets_only_a_part_of_the_selector() {
    let site = scratch_with_site("bonded");
    let expression = "    matchExpressions:\n    - {key: role, operator: Exists}\n    matchLabels:\n";
    change_manifest(&site, "infraenv.yaml", "    matchLabels:\n", expression);
    assert_refused(
        &site,
        &[],
        &format!(
            "{SELECTOR}: error: selects no NMStateConfig; for example, rack4/master-0 has infraenv=rack4, but the selector \
             also requires a label role\n\
             Error: 1 error; nothing was written\n"
        ),
    );
    let text = String::from_utf8(site.read("manifests/nmstate.yaml")).unwrap();
    let with_role = text.replace("    infraenv: rack4\n", "    infraenv: rack4\n    role: master\n");
    site.write("manifests/nmstate.yaml", with_role.replacen("    role: master\n", "", 1));
    assert_refused(
        &site,
        &[],
        "manifests/nmstate.yaml:6: metadata.labels: error: the InfraEnv's selector also requires a label role, so this host \
         with infraenv=rack4 is left out\n\
         Error: 1 error; nothing was written\n",
    );
}

/// Creates the site with a cluster that has these networks.
fn scratch_with_networks(networks: &str) -> Scratch {
    let site = scratch_with_site("bonded");
    change_manifest(&site, "cluster.yaml", "  networking:\n", &format!("{networks}  networking:\n"));
    site
}

#[test]
fn rejects_host_addresses_that_are_vips() {
    let address = |line: usize, text: &str| {
        format!(
            "manifests/nmstate.yaml:{line}: spec.config.interfaces[1].ipv4.address[0].ip: error: {text}\n"
        )
    };
    let lists =
        scratch_with_networks("  apiVIPs:\n  - 10.4.100.10\n  ingressVIPs: [10.4.100.12, \"2001:db8::1\"]\n");
    assert_refused(
        &lists,
        &[],
        &format!(
            "{}{}Error: 2 errors; nothing was written\n",
            address(36, "10.4.100.10 is also the API VIP in manifests/cluster.yaml:31"),
            address(146, "10.4.100.12 is also the ingress VIP in manifests/cluster.yaml:32"),
        ),
    );
    let single = scratch_with_networks("  ingressVIP: 10.4.100.11\n");
    assert_refused(
        &single,
        &[],
        &format!(
            "{}Error: 1 error; nothing was written\n",
            address(91, "10.4.100.11 is also the ingress VIP in manifests/cluster.yaml:30"),
        ),
    );
    assert_eq!(findings_and_summary(&scratch_with_networks("  apiVIP: 10.4.100.5\n"), &["--strict"]).0, "");
}

#[test]
fn hosts_outside_the_machine_networks_are_a_warning() {
    let machine = |networks: &str| {
        let site = scratch_with_site("bonded");
        let section = format!("  networking:\n    machineNetwork: {networks}\n");
        change_manifest(&site, "cluster.yaml", "  networking:\n", &section);
        site
    };
    for networks in ["[{cidr: 10.4.100.0/24}]", "[{cidr: 10.9.0.0/16}, {cidr: 10.4.0.0/16}]", "[]"] {
        assert_eq!(findings_and_summary(&machine(networks), &["--strict"]).0, "", "{networks}");
    }
    let warning = |line: usize| {
        format!(
            "manifests/nmstate.yaml:{line}: spec.config.interfaces[1].ipv4.address[0].ip: warning: the host has no static \
             address in the machine networks 10.9.0.0/24, 2001:db8::/64\n"
        )
    };
    let site = machine("[{cidr: 10.9.0.0/24}, {cidr: 2001:db8::/64}]");
    let warnings = [36, 91, 146].map(warning).concat();
    assert_eq!(findings_and_summary(&site, &[]).0, warnings);
    let end = "Error: 3 warnings, errors because of --strict; nothing was written\n";
    assert_refused(&site, &["--strict"], &format!("{warnings}{end}"));
}

#[test]
fn rejects_malformed_networks_of_a_cluster() {
    let site = scratch_with_networks("  apiVIPs: [10.4.100.300]\n");
    change_manifest(
        &site,
        "cluster.yaml",
        "    clusterNetwork:",
        "    machineNetwork: [{cidr: 10.4.0.0/33}]\n    clusterNetwork:",
    );
    assert_refused(
        &site,
        &[],
        "manifests/cluster.yaml:30: spec.apiVIPs[0]: error: \"10.4.100.300\" is not an IP address\n\
         manifests/cluster.yaml:32: spec.networking.machineNetwork[0].cidr: error: \"10.4.0.0/33\" is not a network such as \
         192.0.2.0/24\n\
         Error: 2 errors; nothing was written\n",
    );
}

#[test]
fn rejects_networks_of_a_cluster_of_the_wrong_type() {
    for (networks, said) in [
        ("  apiVIPs: 10.4.100.5\n", "30: spec.apiVIPs: error: has to be a list of strings"),
        ("  ingressVIP: [10.4.100.5]\n", "30: spec.ingressVIP: error: has to be a string"),
    ] {
        let end = "Error: 1 error; nothing was written\n";
        assert_refused(
            &scratch_with_networks(networks),
            &[],
            &format!("manifests/cluster.yaml:{said}\n{end}"),
        );
    }
    for (list, said) in [
        ("[10.4.100.0/24]", "machineNetwork[0]: error: has to be an object"),
        ("10.4.100.0/24", "machineNetwork: error: has to be a list"),
        ("[{cidr: [10.4.100.0/24]}]", "machineNetwork[0].cidr: error: has to be a string"),
    ] {
        let site = scratch_with_site("bonded");
        let section = format!("  networking:\n    machineNetwork: {list}\n");
        change_manifest(&site, "cluster.yaml", "  networking:\n", &section);
        let place = "manifests/cluster.yaml:31: spec.networking.";
        assert_refused(&site, &[], &format!("{place}{said}\nError: 1 error; nothing was written\n"));
    }
}

#[test]
fn unknown_fields_and_host_bits_of_a_cluster_are_warnings() {
    let site = scratch_with_networks("  apiVip: 10.4.100.10\n");
    change_manifest(
        &site,
        "cluster.yaml",
        "    clusterNetwork:",
        "    machineNetwork: [{cidr: 10.4.100.5/24, mask: 24}]\n    clusterNetwork:",
    );
    assert_eq!(
        findings_and_summary(&site, &[]).0,
        "manifests/cluster.yaml:30: spec.apiVip: warning: unknown field; did you mean apiVIP?\n\
         manifests/cluster.yaml:32: spec.networking.machineNetwork[0].mask: warning: unknown field\n\
         manifests/cluster.yaml:32: spec.networking.machineNetwork[0].cidr: warning: \"10.4.100.5/24\" has bits beyond its \
         prefix; the network is 10.4.100.0/24\n"
    );
}
