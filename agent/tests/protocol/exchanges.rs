//! Steps in the JSON of a service, and the JSON replies of simulated hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent::Agent;
use agent::simulated::{Profile, SimulatedMachine, SimulatedSite};
use serde_json::{Value, json};

use crate::service::{AGENT_VERSION, Answer, Purpose, Received, SERVICE_VERSION, ScriptedService, step};

/// Cluster id in the arguments of steps.
const CLUSTER: &str = "4f630ba3-0297-4d99-a7c7-f62e7bca1332";

/// Returns three machines. The last one has the faults.
fn machines(faults: &str) -> Vec<SimulatedMachine> {
    let yaml = format!(
        "{{network: 192.168.1.0/24, groups: [{{name: node, count: 2}}, {{name: faulty, faults: [{faults}]}}]}}"
    );
    let profile: Profile = serde_yaml_ng::from_str(&yaml).unwrap();
    Arc::new(SimulatedSite::new(profile, 3, 1).unwrap()).machines().collect()
}

fn first() -> SimulatedMachine {
    machines("").remove(0)
}

fn faulty(fault: &str) -> SimulatedMachine {
    machines(fault).pop().unwrap()
}

/// Runs steps on a machine, and returns the bodies of the replies by type of step.
async fn replies(machine: SimulatedMachine, steps: Vec<Value>) -> BTreeMap<String, Value> {
    let count = steps.len();
    let script = move |request: &Received| {
        let is_first = request.purpose == Purpose::Poll && request.number == 0;
        is_first.then(|| Answer::steps(60, "continue", Value::from(steps.clone())))
    };
    let service = ScriptedService::start(script).await;
    let agent = Agent::new(service.client(), service.infra_env, AGENT_VERSION, machine).unwrap();
    let agent = tokio::spawn(agent.run());
    let replies = service.wait_for(Purpose::Reply, count).await;
    agent.abort();
    let by_type = |reply: Received| (reply.body["step_type"].as_str().unwrap().to_owned(), reply.body);
    replies.into_iter().map(by_type).collect()
}

/// Runs one step on a machine, and returns the body of the reply.
async fn reply(machine: SimulatedMachine, step: Value) -> Value {
    replies(machine, vec![step]).await.into_values().next().unwrap()
}

/// Parses the output of a reply to a step that succeeded. The reply has no other keys.
fn output(reply: &Value) -> Value {
    let step_type = reply["step_type"].as_str().unwrap();
    let text = reply["output"].as_str().unwrap();
    assert_eq!(
        *reply,
        json!({"step_type": step_type, "step_id": format!("{step_type}-00000001"), "output": text})
    );
    serde_json::from_str(text).unwrap()
}

fn connectivity_step(others: &[SimulatedMachine]) -> Value {
    let hosts = others.iter().map(|other| {
        let report = serde_json::to_value(other.inventory_report()).unwrap();
        let interface = &report["interfaces"][0];
        let address = interface["ipv4_addresses"][0].as_str().unwrap().split('/').next().unwrap();
        let nic =
            json!({"ip_addresses": [address], "mac": interface["mac_address"], "name": interface["name"]});
        json!({"host_id": other.id(), "nics": [nic]})
    });
    step("connectivity-check", &[&Value::from(hosts.collect::<Vec<_>>()).to_string()])
}

/// Returns the round-trip time of the only ping of a connectivity report, and removes it.
fn take_round_trip(report: &mut Value) -> f64 {
    let ping = report["remote_hosts"][0]["l3_connectivity"][0].as_object_mut().unwrap();
    ping.remove("average_rtt_ms").unwrap().as_f64().unwrap()
}

#[tokio::test(start_paused = true)]
async fn connectivity_of_each_host_is_reported() {
    let all = machines("");
    let reply = reply(all[0].clone(), connectivity_step(&all[1..2])).await;
    let mut report = output(&reply);
    let round_trip = take_round_trip(&mut report);
    assert!((0.2..0.41).contains(&round_trip), "{round_trip}");
    let expected = json!({"remote_hosts": [{
        "host_id": all[1].id(),
        "l2_connectivity": [{
            "outgoing_ip_address": "192.168.1.11", "outgoing_nic": "eth0",
            "remote_ip_address": "192.168.1.12", "remote_mac": "52:56:00:00:00:10", "successful": true,
        }],
        "l3_connectivity": [{"remote_ip_address": "192.168.1.12", "successful": true}],
        "mtu_report": null,
    }]});
    assert_eq!(report, expected);
}

#[tokio::test(start_paused = true)]
async fn unreachable_host_is_reported_with_null_lists() {
    let all = machines("isolated");
    let report = output(&reply(all[0].clone(), connectivity_step(&all[2..])).await);
    let expected = json!({"remote_hosts": [{
        "host_id": all[2].id(), "l2_connectivity": null,
        "l3_connectivity": [{"remote_ip_address": "192.168.1.13"}], "mtu_report": null,
    }]});
    assert_eq!(report, expected);
}

#[tokio::test(start_paused = true)]
async fn all_mac_addresses_of_a_collision_are_reported() {
    let all = machines("address-collision");
    let report = output(&reply(all[0].clone(), connectivity_step(&all[2..])).await);
    let links = &report["remote_hosts"][0]["l2_connectivity"];
    let link = json!({
        "outgoing_ip_address": "192.168.1.11", "outgoing_nic": "eth0", "remote_ip_address": "192.168.1.13",
    });
    let mut expected = [link.clone(), link];
    expected[0]["remote_mac"] = json!("52:56:00:00:00:20");
    expected[0]["successful"] = json!(true);
    expected[1]["remote_mac"] = json!("5a:56:00:00:00:20");
    assert_eq!(*links, json!(expected));
}

#[tokio::test(start_paused = true)]
async fn network_steps_have_the_documented_outputs() {
    let domains = json!({"domains": [
        {"domain_name": "api.c.example.com"},
        {"domain_name": "console-openshift-console.apps.c.example.com"},
        {"domain_name": "validateNoWildcardDNS.c.example.com."},
        {"domain_name": "validateNoWildcardDNS.c.example.com"},
        {"domain_name": "quay.io"},
    ]});
    let vips = json!([
        {"vip": "192.168.1.5", "vip_type": "api"}, {"vip": "192.168.1.12", "vip_type": "ingress"},
    ]);
    let leases = json!({
        "api_vip_mac": "00:1a:4a:00:00:01", "ingress_vip_mac": "00:1a:4a:00:00:02", "interface": "eth0",
        "api_vip_lease": "lease {}",
    });
    let steps = vec![
        step("domain-resolution", &[&domains.to_string()]),
        step("ntp-synchronizer", &[r#"{"ntp_source":"ntp1.example.com"}"#]),
        step("verify-vips", &[&vips.to_string()]),
        step("dhcp-lease-allocate", &[&leases.to_string()]),
    ];
    let replies = replies(first(), steps).await;
    let resolved = |name: &str, address: &str| {
        json!({
            "domain_name": name, "ipv4_addresses": [address], "ipv6_addresses": [],
            "cnames": [format!("{name}.")],
        })
    };
    let unresolved =
        |name: &str| json!({"domain_name": name, "ipv4_addresses": [], "ipv6_addresses": [], "cnames": null});
    let expected = json!({"resolutions": [
        resolved("api.c.example.com", "192.168.1.5"),
        resolved("console-openshift-console.apps.c.example.com", "192.168.1.6"),
        unresolved("validateNoWildcardDNS.c.example.com."),
        unresolved("validateNoWildcardDNS.c.example.com"),
        resolved("quay.io", "198.51.100.10"),
    ]});
    assert_eq!(output(&replies["domain-resolution"]), expected);
    let expected = json!({"ntp_sources": [
        {"source_name": "ntp1.example.com", "source_state": "synced"},
        {"source_name": "ntp.simulated.example", "source_state": "combined"},
    ]});
    assert_eq!(output(&replies["ntp-synchronizer"]), expected);
    let expected = json!([
        {"verification": "succeeded", "vip": "192.168.1.5", "vip_type": "api"},
        {"verification": "failed", "vip": "192.168.1.12", "vip_type": "ingress"},
    ]);
    assert_eq!(output(&replies["verify-vips"]), expected);
    let expected = json!({
        "api_vip_address": "192.168.1.7", "api_vip_lease": "lease {}", "ingress_vip_address": "192.168.1.8",
    });
    assert_eq!(output(&replies["dhcp-lease-allocate"]), expected);
}

#[tokio::test(start_paused = true)]
async fn free_addresses_include_reserved_virtual_addresses() {
    let step = step("free-network-addresses", &[r#"["192.168.1.0/24"]"#]);
    let free = output(&reply(first(), step).await);
    assert_eq!((free.as_array().unwrap().len(), &free[0]["network"]), (1, &json!("192.168.1.0/24")));
    let addresses = free[0]["free_addresses"].as_array().unwrap();
    assert_eq!(addresses.len(), 256 - 4);
    assert!(addresses.contains(&json!("192.168.1.5")) && addresses.contains(&json!("192.168.1.255")));
}

#[tokio::test(start_paused = true)]
async fn steps_before_an_installation_have_the_documented_outputs() {
    let images = r#"{"images":["quay.io/a:1","quay.io/b:2"],"timeout":960}"#;
    let steps = vec![
        step("installation-disk-speed-check", &[r#"{"path":"/dev/sda"}"#, "480.00"]),
        step("container-image-availability", &[images]),
    ];
    let replies = replies(first(), steps).await;
    assert_eq!(
        output(&replies["installation-disk-speed-check"]),
        json!({"path": "/dev/sda", "io_sync_duration": 2})
    );
    let images = output(&replies["container-image-availability"]);
    for (image, name) in images["images"].as_array().unwrap().iter().zip(["quay.io/a:1", "quay.io/b:2"]) {
        let keys: BTreeSet<_> = image.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, BTreeSet::from(["download_rate", "name", "result", "size_bytes", "time"]));
        assert_eq!((&image["name"], &image["result"]), (&json!(name), &json!("success")));
    }
}

#[tokio::test(start_paused = true)]
async fn failed_steps_before_an_installation_still_have_outputs() {
    let images = step("container-image-availability", &[r#"{"images":["quay.io/a:1"],"timeout":960}"#]);
    let reply_of_images = reply(faulty("no-images"), images).await;
    let expected = json!({
        "step_type": "container-image-availability", "step_id": "container-image-availability-00000001",
        "exit_code": 2, "error": "cannot pull all images",
        "output": r#"{"images":[{"name":"quay.io/a:1","result":"failure"}]}"#,
    });
    assert_eq!(reply_of_images, expected);
    let disk = step("installation-disk-speed-check", &[r#"{"path":"/dev/sda"}"#, "480.00"]);
    let expected = json!({
        "step_type": "installation-disk-speed-check", "step_id": "installation-disk-speed-check-00000001",
        "exit_code": 1, "error": "fio: /dev/sda: Input/output error", "output": r#"{"path":"/dev/sda"}"#,
    });
    assert_eq!(reply(faulty("broken-disk"), disk).await, expected);
}

#[tokio::test(start_paused = true)]
async fn checks_of_other_servers_have_the_documented_outputs() {
    let url = "https://api-int.c.example.com:22623/config/worker";
    let tang = r#"{"tang_servers":"[{\"url\":\"http://tang:7500\",\"thumbprint\":\"abc\"}]"}"#;
    let steps = vec![
        step("api-vip-connectivity-check", &[&json!({"url": url}).to_string()]),
        step("tang-connectivity-check", &[tang]),
    ];
    let served = replies(first(), steps.clone()).await;
    assert_eq!(
        output(&served["api-vip-connectivity-check"]),
        json!({"ignition": r#"{"ignition":{"version":"3.2.0"}}"#, "is_success": true, "url": url})
    );
    let expected = json!({"is_success": true, "tang_server_response": [{
        "payload": "eyJrZXlzIjpbXX0", "signatures": [{"protected": "e30", "signature": "abc"}],
        "tang_url": "http://tang:7500/adv/abc",
    }]});
    assert_eq!(output(&served["tang-connectivity-check"]), expected);

    // A failed download has exit code 0, a failed check of a Tang server has exit code -1.
    let failed = replies(faulty("unplugged-link"), steps).await;
    assert_eq!(
        output(&failed["api-vip-connectivity-check"]),
        json!({"download_error": "ignition file download failed: request failed: network is unreachable", "url": url})
    );
    let expected = json!({
        "step_type": "tang-connectivity-check", "step_id": "tang-connectivity-check-00000001",
        "exit_code": -1, "error": "network is unreachable", "output": r#"{"tang_server_response":null}"#,
    });
    assert_eq!(failed["tang-connectivity-check"], expected);
}

#[tokio::test(start_paused = true)]
async fn steps_without_a_report_succeed() {
    let artifacts = r#"{"host_fs_mount_dir":"/host","initrd_url":"i","kernel_url":"k","rootfs_url":"r"}"#;
    let steps = vec![step("stop-installation", &[]), step("download-boot-artifacts", &[artifacts])];
    let replies = replies(first(), steps).await;
    let stopped = json!({"step_type": "stop-installation", "step_id": "stop-installation-00000001"});
    assert_eq!(replies["stop-installation"], stopped);
    let text = &replies["download-boot-artifacts"]["output"];
    assert_eq!(*text, json!("Successfully downloaded boot artifacts"));
}

#[tokio::test(start_paused = true)]
async fn upgrade_reports_the_image_of_the_request() {
    let upgrade = step("upgrade-agent", &[r#"{"agent_image":"quay.io/example/agent:3"}"#]);
    let report = output(&reply(first(), upgrade).await);
    assert_eq!(report, json!({"agent_image": "quay.io/example/agent:3", "result": "success"}));
}

#[tokio::test(start_paused = true)]
async fn inventory_has_all_fields_that_validations_need() {
    let machine = first();
    let step = step("inventory", &[&machine.id().to_string()]);
    let report = output(&reply(machine, step).await);
    let expected = json!({
        "hostname": "node-1",
        "cpu": {"count": 8, "architecture": "x86_64", "frequency": 2400.0, "flags": [], "model_name": "Simulated CPU"},
        "memory": {
            "physical_bytes": 34_359_738_368_u64, "usable_bytes": 33_822_867_456_u64,
            "physical_bytes_method": "dmidecode",
        },
        "disks": [{
            "id": "/dev/disk/by-id/wwn-0x5000c50000000000", "by_id": "/dev/disk/by-id/wwn-0x5000c50000000000",
            "by_path": "/dev/disk/by-path/pci-0000:00:1f.2-ata-1", "path": "/dev/sda", "name": "sda",
            "drive_type": "SSD", "size_bytes": 480_000_000_000_u64, "has_uuid": true, "hctl": "0:0:0:0",
            "model": "Simulated Disk", "serial": "S00000000", "vendor": "Kindling",
            "wwn": "0x5000c50000000000",
            "installation_eligibility": {"eligible": true, "not_eligible_reasons": null},
        }],
        "interfaces": [{
            "name": "eth0", "type": "physical", "mac_address": "52:56:00:00:00:00", "mtu": 1500,
            "has_carrier": true, "speed_mbps": 10000, "flags": ["up", "broadcast", "multicast", "running"],
            "ipv4_addresses": ["192.168.1.11/24"], "ipv6_addresses": [], "product": "0x0001", "vendor": "0x1af4",
        }],
        "routes": [{
            "interface": "eth0", "gateway": "192.168.1.1", "destination": "0.0.0.0", "family": 2, "metric": 100,
        }],
        "system_vendor": {
            "manufacturer": "Kindling", "product_name": "Simulated Machine",
            "serial_number": "simulated-00000000", "virtual": true,
        },
        "boot": {
            "current_boot_mode": "uefi", "device_type": "ephemeral", "secure_boot_state": "Disabled",
            "command_line": "ignition.firstboot ignition.platform.id=metal",
        },
        "gpus": [], "bmc_address": "0.0.0.0", "bmc_v6address": "::/0", "tpm_version": "none",
    });
    assert_eq!(report, expected);
}

#[tokio::test(start_paused = true)]
async fn faults_of_steps_decide_exit_codes_and_outputs() {
    let media = "cannot access the media (ISO) - media was likely disconnected: simulated fault";
    for (failure, expected) in [
        ("exit-1", json!({"exit_code": 1, "error": "simulated fault: the command failed"})),
        ("timeout", json!({"exit_code": 124, "error": "simulated fault: the command timed out"})),
        ("invalid-output", json!({"output": "simulated fault: not JSON"})),
        ("empty-output", json!({})),
        ("media-lost", json!({"exit_code": 256, "error": media})),
    ] {
        let machine = faulty(&format!("\"step:free-network-addresses={failure}\""));
        let steps = vec![
            step("free-network-addresses", &[r#"["192.168.1.0/24"]"#]),
            step("ntp-synchronizer", &[r#"{"ntp_source":""}"#]),
        ];
        let mut replies = replies(machine, steps).await;
        let reply = replies.get_mut("free-network-addresses").unwrap().as_object_mut().unwrap();
        reply.remove("step_id").unwrap();
        reply.remove("step_type").unwrap();
        assert_eq!(Value::from(reply.clone()), expected, "{failure}");
        output(&replies["ntp-synchronizer"]);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_media_fail_valid_steps_with_exit_code_256() {
    let steps = vec![
        step("ntp-synchronizer", &[r#"{"ntp_source":""}"#]),
        step("verify-vips", &["[]", "[]"]),
        step("measure-noise", &[]),
    ];
    let replies = replies(faulty("media-lost"), steps).await;
    let codes = replies.values().map(|reply| reply["exit_code"].as_i64().unwrap());
    // Sorted by step type: measure-noise, ntp-synchronizer, verify-vips.
    assert_eq!(codes.collect::<Vec<_>>(), [-1, 256, -1]);
}

#[tokio::test(start_paused = true)]
async fn logs_are_reported_before_the_reply() {
    let machine = first();
    let host = machine.id();
    let arguments = json!({
        "bootstrap": false, "cluster_id": CLUSTER, "host_id": host, "infra_env_id": CLUSTER,
        "installer_gather": true, "master_ips": null,
    });
    let logs = step("logs-gather", &[&arguments.to_string()]);
    let script = move |request: &Received| {
        let is_first = request.purpose == Purpose::Poll && request.number == 0;
        is_first.then(|| Answer::steps(60, "continue", json!([logs])))
    };
    let service = ScriptedService::start(script).await;
    let agent = Agent::new(service.client(), service.infra_env, AGENT_VERSION, machine).unwrap();
    let agent = tokio::spawn(agent.run());
    let replies = service.wait_for(Purpose::Reply, 1).await;
    assert_eq!(replies[0].body, json!({"step_type": "logs-gather", "step_id": "logs-gather-00000001"}));
    let progress = service.received(Purpose::Other);
    let path =
        format!("/api/assisted-install/v2/infra-envs/{}/hosts/{host}/logs-progress", service.infra_env);
    assert!(progress.iter().all(|request| request.path == path), "{progress:?}");
    let bodies: Vec<_> = progress.into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [json!({"logs_state": "requested"}), json!({"logs_state": "completed"})]);
    agent.abort();
}

/// Returns the steps of the first host at a poll, from the discovery of the host to the preparation of an installation.
fn steps_of_poll(poll: usize, all: &[SimulatedMachine]) -> Answer {
    let id = all[0].id().to_string();
    let inventory = step("inventory", &[&id]);
    let checks = json!([
        connectivity_step(&all[1..]),
        inventory,
        step("free-network-addresses", &[r#"["192.168.1.0/24"]"#]),
        step("ntp-synchronizer", &[r#"{"ntp_source":""}"#]),
        step("domain-resolution", &[r#"{"domains":[{"domain_name":"api.c.example.com"}]}"#]),
        step("verify-vips", &[r#"[{"vip":"192.168.1.5","vip_type":"api"}]"#]),
    ]);
    let preparation = json!([
        step("installation-disk-speed-check", &[r#"{"path":"/dev/sda"}"#, "480.00"]),
        step("container-image-availability", &[r#"{"images":["quay.io/a:1"],"timeout":960}"#]),
    ]);
    match poll {
        0 | 5 => Answer::steps(60, "continue", json!([inventory])),
        1..=3 => Answer::steps(60, "continue", checks),
        // The host is bound to a cluster, so its agent must register again.
        4 => Answer::steps(0, "exit", Value::Null),
        6 => Answer::steps(60, "continue", preparation),
        _ => Answer::no_steps(),
    }
}

#[tokio::test(start_paused = true)]
async fn host_is_discovered_bound_and_prepared() {
    let all = machines("");
    let machine = all[0].clone();
    let id = machine.id();
    let script = move |request: &Received| {
        (request.purpose == Purpose::Poll).then(|| steps_of_poll(request.number, &all))
    };
    let service = ScriptedService::start(script).await;
    let agent = Agent::new(service.client(), service.infra_env, AGENT_VERSION, machine).unwrap();
    let agent = tokio::spawn(agent.run());
    let polls = service.wait_for(Purpose::Poll, 8).await;
    agent.abort();

    let hosts = format!("/api/assisted-install/v2/infra-envs/{}/hosts", service.infra_env);
    let registrations = service.received(Purpose::Register);
    assert_eq!(registrations.len(), 2);
    for registration in registrations {
        assert_eq!(registration.path, hosts);
        assert_eq!(registration.body, json!({"host_id": id, "discovery_agent_version": AGENT_VERSION}));
    }
    for poll in &polls {
        assert_eq!(
            (&poll.path, poll.version.as_str()),
            (&format!("{hosts}/{id}/instructions"), SERVICE_VERSION)
        );
        assert!(poll.query.strip_prefix("timestamp=").unwrap().parse::<i64>().unwrap() > 1_700_000_000);
    }
    let mut replies = service.received(Purpose::Reply);
    // The steps of one poll end in any order.
    replies.sort_by_key(|reply| (reply.at.as_secs(), reply.body["step_type"].to_string()));
    let reply_times: Vec<_> = replies
        .iter()
        .map(|reply| (reply.at.as_secs(), reply.body["step_type"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        (0, "inventory"),
        (60, "connectivity-check"),
        (60, "domain-resolution"),
        (60, "free-network-addresses"),
        (60, "ntp-synchronizer"),
        (60, "verify-vips"),
        // The latencies are the only change.
        (120, "connectivity-check"),
        (180, "connectivity-check"),
        // After the second registration, the agent sends all outputs again.
        (240, "inventory"),
        (300, "container-image-availability"),
        (300, "installation-disk-speed-check"),
    ];
    assert_eq!(reply_times, expected.map(|(at, step_type)| (at, step_type.to_owned())));
}
