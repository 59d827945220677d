//! Test documents, in the form that upstream services, agents and controllers write.

use assisted::cluster::{
    ClusterCreateParams, ClusterImportParams, ClusterProgressParams, ClusterUpdateParams, CompletionParams,
    DisconnectedClusterParams, OperatorReport,
};
use assisted::event::ReportedEvent;
use assisted::host::{
    BindHostParams, HostCreateParams, HostIgnitionParams, HostProgressParams, HostUpdateParams,
    InstallerArgsParams, LogsProgressParams,
};
use assisted::infra_env::{InfraEnvCreateParams, InfraEnvUpdateParams};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A cluster during its installation, with every key that an upstream service writes.
pub(crate) const UPSTREAM_CLUSTER: &str = r#"{
  "additional_ntp_source": "ntp.example.com", "ams_subscription_id": "11111111-2222-4333-8444-555555555555",
  "api_vip_dns_name": "api.edge.example.com",
  "api_vips": [{"cluster_id": "4f630ba3-0297-4d99-a7c7-f62e7bca1332", "ip": "192.168.1.5", "verification": "succeeded"}],
  "base_dns_domain": "example.com",
  "cluster_network_cidr": "10.128.0.0/14", "cluster_network_host_prefix": 23,
  "cluster_networks": [{"cidr": "10.128.0.0/14", "cluster_id": "4f630ba3-0297-4d99-a7c7-f62e7bca1332", "host_prefix": 23}],
  "connectivity_majority_groups": "{\"192.168.1.0/24\":[]}", "control_plane_count": 3,
  "controller_logs_collected_at": "0001-01-01T00:00:00.000Z", "controller_logs_started_at": "0001-01-01T00:00:00.000Z",
  "cpu_architecture": "x86_64", "created_at": "2026-08-21T10:00:00.123456Z", "deleted_at": null,
  "disk_encryption": {"enable_on": "none", "mode": "tpmv2"}, "email_domain": "Unknown",
  "enabled_host_count": 1, "feature_usage": "{}", "high_availability_mode": "Full",
  "host_networks": [{"cidr": "192.168.1.0/24", "host_ids": ["7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"]}],
  "hosts": [{"created_at": "2026-08-21T10:00:00Z", "checked_in_at": "0001-01-01T00:00:00.000Z", "deleted_at": null,
    "href": "/api/assisted-install/v2/infra-envs/4f630ba3-0297-4d99-a7c7-f62e7bca1332/hosts/7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11",
    "id": "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11", "infra_env_id": "4f630ba3-0297-4d99-a7c7-f62e7bca1332", "kind": "Host",
    "logs_collected_at": "0001-01-01T00:00:00.000Z", "logs_started_at": "0001-01-01T00:00:00.000Z",
    "progress": {"stage_started_at": "0001-01-01T00:00:00.000Z", "stage_updated_at": "0001-01-01T00:00:00.000Z"},
    "progress_stages": null, "registered_at": "2026-08-21T10:00:00.000Z", "role": "master", "stage_started_at": "0001-01-01T00:00:00.000Z",
    "stage_updated_at": "0001-01-01T00:00:00.000Z", "status": "installed", "status_info": "Done",
    "status_updated_at": "2026-08-21T10:00:00.000Z", "suggested_role": "master", "updated_at": "2026-08-21T10:00:00.5Z"}],
  "href": "/api/assisted-install/v2/clusters/4f630ba3-0297-4d99-a7c7-f62e7bca1332", "http_proxy": "http://proxy:3128",
  "https_proxy": "http://proxy:3128", "hyperthreading": "all", "id": "4f630ba3-0297-4d99-a7c7-f62e7bca1332",
  "ignition_endpoint": {"ca_certificate": "LS0t", "url": "https://ignition.example.com"},
  "ignored_cluster_validations": "[\"all\"]", "ignored_host_validations": "[\"no-ip-collisions-in-network\"]",
  "image_info": {"created_at": "0001-01-01T00:00:00Z", "expires_at": "0001-01-01T00:00:00.000Z"},
  "imported": true, "ingress_vips": [{"cluster_id": "4f630ba3-0297-4d99-a7c7-f62e7bca1332", "ip": "192.168.1.6", "verification": "unverified"}],
  "install_completed_at": "0001-01-01T00:00:00.000Z", "install_config_overrides": "{\"fips\":true}",
  "install_started_at": "2026-08-21T11:00:00.000Z", "ip_collisions": "{}", "kind": "Cluster",
  "last-installation-preparation": {"reason": "no reason", "status": "success"}, "load_balancer": {"type": "cluster-managed"},
  "logs_info": "collecting", "machine_network_cidr": "192.168.1.0/24",
  "machine_networks": [{"cidr": "192.168.1.0/24", "cluster_id": "4f630ba3-0297-4d99-a7c7-f62e7bca1332"}],
  "monitored_operators": [{"bundles": ["virtualization"], "cluster_id": "4f630ba3-0297-4d99-a7c7-f62e7bca1332", "dependency_only": true,
    "name": "console", "namespace": "openshift-console", "operator_type": "builtin", "properties": "{}", "source_bundles": [],
    "status": "progressing", "status_info": "starting", "status_updated_at": "2026-08-21T11:30:00.000Z",
    "subscription_name": "console", "timeout_seconds": 3600, "version": "4.18.3"}],
  "name": "edge", "network_type": "OVNKubernetes", "no_proxy": "example.com", "ntp_sources": "10.0.0.1",
  "ocp_release_image": "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64",
  "openshift_cluster_id": "b5b8d2d1-6f4b-4f29-8d0a-0e9f5c1f2a33", "openshift_version": "4.18.3",
  "operator_bundles": [{"id": "virtualization", "optional_operators": ["mtv"]}], "org_id": "1234", "org_soft_timeouts_enabled": true,
  "platform": {"external": {"cloud_controller_manager": "External", "platform_name": "oci"}, "type": "external"},
  "progress": {"finalizing_stage": "Waiting for cluster operators", "finalizing_stage_percentage": 50,
    "finalizing_stage_started_at": "2026-08-21T11:30:00.000Z", "finalizing_stage_timed_out": true,
    "installing_stage_percentage": 100, "preparing_for_installation_stage_percentage": 100, "total_percentage": 90},
  "pull_secret_set": true, "ready_host_count": 1, "schedulable_masters": false, "schedulable_masters_forced_true": true,
  "service_network_cidr": "172.30.0.0/16",
  "service_networks": [{"cidr": "172.30.0.0/16", "cluster_id": "4f630ba3-0297-4d99-a7c7-f62e7bca1332"}],
  "ssh_public_key": "ssh-ed25519 AAAA", "status": "finalizing", "status_info": "Finalizing cluster installation",
  "status_updated_at": "2026-08-21T11:30:00.000Z", "tags": "lab,edge", "total_host_count": 1,
  "updated_at": "2026-08-21T11:30:00.1Z", "user_managed_networking": false, "user_name": "admin",
  "validations_info": "{\"network\":[]}", "vip_dhcp_allocation": false
}"#;

/// An infra-env, as an upstream service writes it.
pub(crate) const UPSTREAM_INFRA_ENV: &str = r#"{"cpu_architecture":"x86_64","created_at":"2026-08-21T10:00:00.123456Z",
 "download_url":"http://127.0.0.1:8888/byid/4f630ba3-0297-4d99-a7c7-f62e7bca1332/4.14/x86_64/full.iso",
 "email_domain":"Unknown","expires_at":"0001-01-01T00:00:00.000Z",
 "href":"/api/assisted-install/v2/infra-envs/4f630ba3-0297-4d99-a7c7-f62e7bca1332",
 "id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","kind":"InfraEnv","name":"demo","org_id":"1234","size_bytes":1024,
 "generator_version":"1","openshift_version":"4.14","proxy":{},"pull_secret_set":true,"type":"full-iso",
 "updated_at":"2026-08-21T10:00:00.130001Z","user_name":"admin"}"#;

/// A host during its installation, as an upstream service writes it.
pub(crate) const UPSTREAM_HOST: &str = r#"{
  "api_vip_connectivity": "{\"is_success\":true}", "bootstrap": true, "checked_in_at": "2026-08-21T10:10:00.000Z",
  "cluster_id": "4f630ba3-0297-4d99-a7c7-f62e7bca1332", "connection_timed_out": true, "connectivity": "{\"remote_hosts\":[]}",
  "created_at": "2026-08-21T10:00:00.123456Z", "deleted_at": null, "discovery_agent_version": "quay.io/a:latest",
  "disks_info": "{}", "disks_to_be_formatted": "/dev/sda,/dev/sdb", "domain_name_resolutions": "{\"resolutions\":[]}",
  "fencing_credentials": "{\"address\":\"192.168.1.200\"}",
  "href": "/api/assisted-install/v2/infra-envs/4f630ba3-0297-4d99-a7c7-f62e7bca1332/hosts/7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11",
  "id": "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11", "ignition_config_overrides": "{}", "ignition_endpoint_token_set": true,
  "images_status": "{}", "infra_env_id": "4f630ba3-0297-4d99-a7c7-f62e7bca1332", "installation_disk_id": "/dev/sda",
  "installation_disk_path": "/dev/sda", "installer_args": "[\"-n\"]", "installer_version": "quay.io/b:latest", "inventory": "{}",
  "kind": "AddToExistingClusterHost", "logs_collected_at": "2026-08-21T10:10:00.000Z", "logs_info": "timeout",
  "logs_started_at": "2026-08-21T10:10:00.000Z", "machine_config_pool_name": "worker", "media_status": "disconnected",
  "node_labels": "{\"a\":\"b\"}", "ntp_sources": "[{\"source_name\":\"10.0.0.1\",\"source_state\":\"synced\"}]",
  "progress": {"current_stage": "Writing image to disk", "installation_percentage": 40, "progress_info": "50%",
    "stage_started_at": "2026-08-21T10:10:00.000Z", "stage_timed_out": true, "stage_updated_at": "2026-08-21T10:11:00.000Z"},
  "progress_stages": ["Starting installation", "Installing", "Writing image to disk", "Rebooting"],
  "registered_at": "2026-08-21T10:00:00.000Z", "requested_hostname": "node-1", "role": "arbiter", "skip_formatting_disks": "/dev/sdb",
  "stage_started_at": "2026-08-21T10:10:00.000Z", "stage_updated_at": "2026-08-21T10:11:00.000Z", "status": "installing-in-progress",
  "status_info": "Writing image to disk", "status_updated_at": "2026-08-21T10:11:00.000Z", "suggested_role": "arbiter",
  "tang_connectivity": "{\"is_success\":true}", "timestamp": 1700000000, "updated_at": "2026-08-21T10:11:00Z", "user_name": "admin",
  "validations_info": "{}"
}"#;

/// An item of the event list, as an upstream service writes it.
pub(crate) const UPSTREAM_EVENT: &str = r#"{"cluster_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","event_time":"2026-08-21T10:00:00.000Z",
 "host_id":"7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11","infra_env_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332",
 "message":"Host node-1: Successfully registered","name":"host_registration_succeeded","props":"{\"a\":1}","severity":"info"}"#;

/// Steps, as an upstream service writes them.
pub(crate) const UPSTREAM_STEPS: &str = r#"{"next_instruction_seconds":60,"post_step_action":"continue","instructions":[
 {"step_type":"inventory","step_id":"inventory-1f0a9c3e","args":["7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"]},
 {"step_type":"connectivity-check","step_id":"connectivity-check-77aa01bc","args":["[{\"host_id\":\"0aa1aa6b-3ea4-4fcb-a7d4-5b3c1e2f0a11\"}]"]}]}"#;

/// Replies, as agents write them.
pub(crate) const UPSTREAM_REPLIES: [&str; 3] = [
    r#"{"step_type":"inventory","step_id":"inventory-1f0a9c3e","output":"{}"}"#,
    r#"{"step_type":"tang-connectivity-check","step_id":"a","exit_code":-1,"output":"{\"tang_server_response\":null}","error":"no route"}"#,
    r#"{"step_type":"install","step_id":"a","exit_code":125,"error":"the container name \"assisted-installer\" is already in use"}"#,
];

/// Arguments of each type of step.
pub(crate) const ARGUMENTS: &[(&str, &[&str])] = &[
    ("inventory", &["7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"]),
    (
        "inventory",
        &["7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11", "--output-max-size=65536", "--disk-min-size=1024"],
    ),
    (
        "connectivity-check",
        &[
            r#"[{"host_id":"0aa1aa6b-3ea4-4fcb-a7d4-5b3c1e2f0a11","nics":[{"ip_addresses":["192.168.1.11","fd00::11"],"mac":"52:54:00:00:00:02","name":"eth0"}]}]"#,
        ],
    ),
    ("free-network-addresses", &[r#"["192.168.1.0/24"]"#]),
    (
        "dhcp-lease-allocate",
        &[
            r#"{"api_vip_mac":"00:1a:4a:01:02:03","ingress_vip_mac":"00:1a:4a:04:05:06","interface":"eth0","api_vip_lease":"lease {}","ingress_vip_lease":"lease {}"}"#,
        ],
    ),
    (
        "dhcp-lease-allocate",
        &[r#"{"api_vip_mac":"00:1a:4a:01:02:03","ingress_vip_mac":"00:1a:4a:04:05:06","interface":"eth0"}"#],
    ),
    ("ntp-synchronizer", &[r#"{"ntp_source":"ntp1.example.com,192.168.1.1"}"#]),
    ("ntp-synchronizer", &[r#"{"ntp_source":""}"#]),
    (
        "domain-resolution",
        &[r#"{"domains":[{"domain_name":"api.n.d"},{"domain_name":"validateNoWildcardDNS.n.d."}]}"#],
    ),
    (
        "api-vip-connectivity-check",
        &[
            r#"{"url":"https://api-int.c.example.com:22623/config/worker","ca_certificate":"LS0t","ignition_endpoint_token":"t","verify_cidr":true,"request_headers":[{"key":"Authorization","value":"Bearer t"},{"key":"X-Any","value":"v"}]}"#,
        ],
    ),
    ("api-vip-connectivity-check", &[r#"{"url":"http://api.c.example.com:22624/config/worker"}"#]),
    (
        "tang-connectivity-check",
        &[r#"{"tang_servers":"[{\"url\":\"http://tang:7500\",\"thumbprint\":\"abc\"}]"}"#],
    ),
    (
        "verify-vips",
        &[r#"[{"vip":"192.168.1.5","vip_type":"api"},{"vip":"192.168.1.6","vip_type":"ingress"}]"#],
    ),
    ("installation-disk-speed-check", &[r#"{"path":"/dev/disk/by-id/wwn-0x5"}"#, "480.00"]),
    ("container-image-availability", &[r#"{"images":["quay.io/a","quay.io/b@sha256:0123"],"timeout":960}"#]),
    (
        "install",
        &[
            r#"{"boot_device":"/dev/disk/by-id/wwn-0x5","check_cvo":false,"cluster_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","control_plane_count":3,"controller_image":"quay.io/c","disks_to_format":[],"enable_skip_mco_reboot":true,"host_id":"7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11","infra_env_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","installer_args":"[\"--append-karg\",\"ip=52-54-00-00-00-01:dhcp\"]","installer_image":"quay.io/i","mco_image":"quay.io/m","must_gather_image":"quay.io/g","notify_num_reboots":true,"openshift_version":"4.20.1","role":"master","service_ips":null}"#,
        ],
    ),
    (
        "install",
        &[
            r#"{"boot_device":"/dev/sda","cluster_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","controller_image":"quay.io/c","coreos_image":"quay.io/o","disks_to_format":["/dev/sdb"],"host_id":"7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11","infra_env_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","installer_image":"quay.io/i","proxy":{"http_proxy":"http://proxy:3128","https_proxy":"","no_proxy":"*"},"role":"bootstrap","service_ips":["10.0.0.1"],"skip_installation_disk_cleanup":true}"#,
        ],
    ),
    (
        "logs-gather",
        &[
            r#"{"bootstrap":true,"cluster_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","host_id":"7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11","infra_env_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","installer_gather":true,"master_ips":["192.168.1.12"]}"#,
        ],
    ),
    (
        "logs-gather",
        &[
            r#"{"bootstrap":false,"cluster_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","host_id":"7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11","infra_env_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","installer_gather":false,"master_ips":null}"#,
        ],
    ),
    ("stop-installation", &[]),
    ("upgrade-agent", &[r#"{"agent_image":"quay.io/a:2"}"#]),
    (
        "download-boot-artifacts",
        &[
            r#"{"host_fs_mount_dir":"/host","initrd_url":"http://s/initrd","kernel_url":"http://s/kernel","rootfs_url":"http://s/rootfs"}"#,
        ],
    ),
    ("reboot-for-reclaim", &[r#"{"host_fs_mount_dir":"/host"}"#]),
];

/// Outputs of steps. The output of a step without a report is plain text.
pub(crate) const OUTPUTS: &[(&str, &str)] = &[
    (
        "inventory",
        r#"{"bmc_address":"0.0.0.0","bmc_v6address":"::/0",
 "boot":{"command_line":"ignition.firstboot","current_boot_mode":"uefi","device_type":"ephemeral","pxe_interface":"52:54:00:00:00:01","secure_boot_state":"Disabled"},
 "cpu":{"architecture":"x86_64","count":8,"flags":["vmx","sse4_2"],"frequency":2400.5,"model_name":"m"},
 "disks":[{"bootable":true,"by_id":"/dev/disk/by-id/wwn-0x5000c500a1b2c3d4",
   "by_path":"/dev/disk/by-path/pci-0000:00:1f.2-ata-1","drive_type":"SSD","has_uuid":true,"hctl":"0:0:0:0",
   "holders":"dm-0","id":"/dev/disk/by-id/wwn-0x5000c500a1b2c3d4",
   "installation_eligibility":{"eligible":true,"not_eligible_reasons":null},
   "io_perf":{"sync_duration":4},"is_installation_media":true,"iscsi":{"host_ip_address":"192.168.1.1"},"model":"m",
   "name":"sda","partitionTypes":"ext4","path":"/dev/sda","removable":true,"serial":"s","size_bytes":480103981056,
   "smart":"{}","vendor":"ATA","wwn":"0x5000c500a1b2c3d4"}],
 "gpus":[{"address":"0000:3b:00.0","device_id":"20b5","name":"n","vendor":"NVIDIA Corporation","vendor_id":"10de"}],
 "hostname":"node-0",
 "interfaces":[{"biosdevname":"em1","client_id":"c","flags":["up","broadcast","multicast","running"],"has_carrier":true,
   "ipv4_addresses":["192.168.1.10/24"],"ipv6_addresses":[],"mac_address":"52:54:00:00:00:01","mtu":1500,
   "name":"eth0","product":"0x0001","speed_mbps":-1,"type":"physical","vendor":"0x1af4"}],
 "memory":{"physical_bytes":34359738368,"physical_bytes_method":"dmidecode","usable_bytes":33568481280},
 "routes":[{"destination":"0.0.0.0","family":2,"gateway":"192.168.1.1","interface":"eth0","metric":100}],
 "system_vendor":{"manufacturer":"QEMU","product_name":"KVM","serial_number":"1","virtual":true},
 "tpm_version":"2.0","truncation":{"reasons":[],"type":"partial"}}"#,
    ),
    (
        "inventory",
        r#"{"cpu":{"flags":null},"disks":[{"installation_eligibility":{"not_eligible_reasons":["Disk is an LVM logical volume"]}}],
 "gpus":null,"interfaces":[],"routes":null}"#,
    ),
    (
        "connectivity-check",
        r#"{"remote_hosts":[{"host_id":"0aa1aa6b-3ea4-4fcb-a7d4-5b3c1e2f0a11",
  "l2_connectivity":[{"outgoing_ip_address":"192.168.1.10","outgoing_nic":"eth0",
    "remote_ip_address":"192.168.1.11","remote_mac":"52:54:00:00:00:02","successful":true}],
  "l3_connectivity":[{"average_rtt_ms":0.5,"remote_ip_address":"192.168.1.11","successful":true},
    {"outgoing_nic":"eth0","packet_loss_percentage":100,"remote_ip_address":"192.168.1.13"}],
  "mtu_report":[{"mtu_successful":true,"outgoing_nic":"eth0","remote_ip_address":"192.168.1.11"}]},
  {"host_id":"1aa1aa6b-3ea4-4fcb-a7d4-5b3c1e2f0a11","l2_connectivity":null,"l3_connectivity":null,"mtu_report":null}]}"#,
    ),
    ("free-network-addresses", r#"[{"free_addresses":["192.168.1.100"],"network":"192.168.1.0/24"}]"#),
    (
        "dhcp-lease-allocate",
        r#"{"api_vip_address":"192.168.1.5","ingress_vip_address":"192.168.1.6","api_vip_lease":"lease {}","ingress_vip_lease":"lease {}"}"#,
    ),
    ("ntp-synchronizer", r#"{"ntp_sources":[{"source_name":"ntp1.example.com","source_state":"synced"}]}"#),
    (
        "domain-resolution",
        r#"{"resolutions":[{"cnames":["api.n.d."],"domain_name":"api.n.d","ipv4_addresses":["192.168.1.5"],"ipv6_addresses":[]},
  {"cnames":null,"domain_name":"validateNoWildcardDNS.n.d.","ipv4_addresses":[],"ipv6_addresses":[]}]}"#,
    ),
    (
        "api-vip-connectivity-check",
        r#"{"ignition":"{\"ignition\":{\"version\":\"3.2.0\"}}","is_success":true,"url":"https://a"}"#,
    ),
    (
        "api-vip-connectivity-check",
        r#"{"download_error":"ignition file download failed: request failed","url":"https://a"}"#,
    ),
    (
        "tang-connectivity-check",
        r#"{"is_success":true,"tang_server_response":[{"payload":"p","signatures":[{"protected":"a","signature":"b"}],"tang_url":"http://tang:7500/adv/abc"}]}"#,
    ),
    ("tang-connectivity-check", r#"{"tang_server_response":null}"#),
    ("verify-vips", r#"[{"verification":"succeeded","vip":"192.168.1.5","vip_type":"api"}]"#),
    ("installation-disk-speed-check", r#"{"io_sync_duration":5,"path":"/dev/disk/by-id/wwn-0x5"}"#),
    ("installation-disk-speed-check", r#"{"path":"/dev/disk/by-id/wwn-0x5"}"#),
    (
        "container-image-availability",
        r#"{"images":[{"download_rate":25.6,"name":"a","result":"success","size_bytes":333000000,"time":12.4},
  {"name":"b","result":"success"}]}"#,
    ),
    ("upgrade-agent", r#"{"agent_image":"quay.io/a:2","result":"success"}"#),
    ("upgrade-agent", r#"{"agent_image":"quay.io/a:2"}"#),
    ("download-boot-artifacts", "Successfully downloaded boot artifacts"),
    ("install", "writing image"),
];

/// Request bodies with every key that upstream services accept, and the name of upstream's model.
pub(crate) const BODIES: &[(&str, &str)] = &[
    (
        "ClusterCreateParams",
        r#"{"name":"edge","openshift_version":"4.18","pull_secret":"{}","ocp_release_image":"quay.io/r","cpu_architecture":"multi",
 "high_availability_mode":"Full","control_plane_count":3,"base_dns_domain":"example.com","cluster_network_cidr":"10.128.0.0/14",
 "cluster_network_host_prefix":23,"service_network_cidr":"172.30.0.0/16","cluster_networks":[{"cidr":"10.128.0.0/14","host_prefix":23}],
 "service_networks":[{"cidr":"172.30.0.0/16"}],"machine_networks":[{"cidr":"192.168.1.0/24"}],
 "api_vips":[{"ip":"192.168.1.5","verification":"unverified"}],"ingress_vips":[{"ip":"192.168.1.6","verification":"unverified"}],
 "vip_dhcp_allocation":false,"network_type":"OVNKubernetes","platform":{"type":"external","external":{"platform_name":"oci","cloud_controller_manager":""}},
 "user_managed_networking":true,"hyperthreading":"masters,workers","schedulable_masters":true,
 "disk_encryption":{"enable_on":"all","mode":"tang","tang_servers":"[]"},"ignition_endpoint":{"url":"https://a","ca_certificate":"LS0t"},
 "load_balancer":{"type":"user-managed"},"olm_operators":[{"name":"lvm","properties":"{}"}],
 "operator_bundles":[{"id":"virtualization","optional_operators":["mtv"]}],"tags":"a,b","ssh_public_key":"ssh-ed25519 AAAA",
 "http_proxy":"http://p","https_proxy":"http://p","no_proxy":"a","additional_ntp_source":"a","ntp_sources":""}"#,
    ),
    (
        "V2ClusterUpdateParams",
        r#"{"name":"edge","pull_secret":"{}","control_plane_count":3,"base_dns_domain":"example.com","api_vip_dns_name":"api.a.b",
 "cluster_network_cidr":"10.128.0.0/14","cluster_network_host_prefix":23,"service_network_cidr":"172.30.0.0/16",
 "machine_network_cidr":"192.168.1.0/24","cluster_networks":[{"cidr":"10.128.0.0/14","host_prefix":23}],
 "service_networks":[],"machine_networks":[{"cidr":"192.168.1.0/24"}],"api_vips":[],"ingress_vips":[],"vip_dhcp_allocation":true,
 "network_type":"Cilium","platform":{"type":"none"},"user_managed_networking":false,"hyperthreading":"none","schedulable_masters":false,
 "disk_encryption":{},"ignition_endpoint":{"url":""},"load_balancer":{"type":"cluster-managed"},"olm_operators":[],"operator_bundles":[],
 "tags":"","ssh_public_key":"","http_proxy":"","https_proxy":"","no_proxy":"","additional_ntp_source":"","ntp_sources":""}"#,
    ),
    (
        "ImportClusterParams",
        r#"{"name":"a","api_vip_dnsname":"api.a.b","openshift_cluster_id":"b5b8d2d1-6f4b-4f29-8d0a-0e9f5c1f2a33","openshift_version":"4.18"}"#,
    ),
    ("DisconnectedClusterCreateParams", r#"{"name":"a","openshift_version":"4.18"}"#),
    (
        "InfraEnvCreateParams",
        r#"{"name":"a","pull_secret":"{}","proxy":{"http_proxy":"http://p","https_proxy":"http://p","no_proxy":"*"},
 "additional_ntp_sources":"a","ntp_sources":"","ssh_authorized_key":"ssh-ed25519 AAAA",
 "static_network_config":[{"mac_interface_map":[{"logical_nic_name":"eth0","mac_address":"52:54:00:00:00:01"}],"network_yaml":"interfaces: []"}],
 "rendezvous_ip":"192.168.1.9","image_type":"disconnected-iso","ignition_config_override":"{}","cluster_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332",
 "openshift_version":"4.18","cpu_architecture":"s390x","kernel_arguments":[{"operation":"append","value":"quiet"}],
 "additional_trust_bundle":"PEM","network_discovery_delay_seconds":5}"#,
    ),
    (
        "InfraEnvUpdateParams",
        r#"{"proxy":{"http_proxy":""},"additional_ntp_sources":"","ntp_sources":"","ssh_authorized_key":"","pull_secret":"{}","static_network_config":[],
 "rendezvous_ip":"","image_type":"minimal-iso","ignition_config_override":"{}","kernel_arguments":[{"operation":"delete","value":"a"}],
 "additional_trust_bundle":"","openshift_version":"4.19","network_discovery_delay_seconds":0}"#,
    ),
    (
        "HostCreateParams",
        r#"{"host_id":"7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11","discovery_agent_version":"quay.io/a"}"#,
    ),
    (
        "HostUpdateParams",
        r#"{"host_role":"arbiter","host_name":"node-1","disks_selected_config":[{"id":"/dev/sda","role":"install"},{"id":"/dev/sdb","role":"none"}],
 "disks_skip_formatting":[{"disk_id":"/dev/sdb","skip_formatting":true}],"machine_config_pool_name":"worker","ignition_endpoint_token":"t",
 "ignition_endpoint_http_headers":[{"key":"X-A","value":"b"}],"node_labels":[{"key":"a","value":"b"}],
 "fencing_credentials":{"address":"a","username":"u","password":"p","certificate_verification":"Disabled","mac_address":"52:54:00:00:00:01"}}"#,
    ),
    ("BindHostParams", r#"{"cluster_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332"}"#),
    ("InstallerArgsParams", r#"{"args":["--append-karg","quiet"]}"#),
    ("HostIgnitionParams", r#"{"config":"{}"}"#),
    ("HostProgress", r#"{"current_stage":"Waiting for bootkube","progress_info":"a"}"#),
    ("LogsProgressParams", r#"{"logs_state":"completed"}"#),
    (
        "Event",
        r#"{"name":"a","cluster_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","host_id":"7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11",
 "infra_env_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332","severity":"critical","category":"metrics","message":"m",
 "event_time":"2026-08-21T10:00:00.000Z","request_id":"0aa1aa6b-3ea4-4fcb-a7d4-5b3c1e2f0a11","props":"{}"}"#,
    ),
    ("ClusterFinalizingProgress", r#"{"finalizing_stage":"Adding router ca"}"#),
    (
        "OperatorMonitorReport",
        r#"{"name":"console","version":"4.18.3","status":"available","status_info":"ok"}"#,
    ),
    (
        "CompletionParams",
        r#"{"is_success":true,"error_info":"e","data":{"CLUSTER_OPERATORS_REPORT":[{"name":"console"}]}}"#,
    ),
];

/// Parses a request body, and returns it serialized again.
pub(crate) fn rewritten_body(model: &str, body: &str) -> String {
    fn rewritten<T: DeserializeOwned + Serialize>(body: &str) -> String {
        let read: T = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
        serde_json::to_string(&read).unwrap()
    }
    match model {
        "ClusterCreateParams" => rewritten::<ClusterCreateParams>(body),
        "V2ClusterUpdateParams" => rewritten::<ClusterUpdateParams>(body),
        "ImportClusterParams" => rewritten::<ClusterImportParams>(body),
        "DisconnectedClusterCreateParams" => rewritten::<DisconnectedClusterParams>(body),
        "InfraEnvCreateParams" => rewritten::<InfraEnvCreateParams>(body),
        "InfraEnvUpdateParams" => rewritten::<InfraEnvUpdateParams>(body),
        "HostCreateParams" => rewritten::<HostCreateParams>(body),
        "HostUpdateParams" => rewritten::<HostUpdateParams>(body),
        "BindHostParams" => rewritten::<BindHostParams>(body),
        "InstallerArgsParams" => rewritten::<InstallerArgsParams>(body),
        "HostIgnitionParams" => rewritten::<HostIgnitionParams>(body),
        "HostProgress" => rewritten::<HostProgressParams>(body),
        "LogsProgressParams" => rewritten::<LogsProgressParams>(body),
        "Event" => rewritten::<ReportedEvent>(body),
        "ClusterFinalizingProgress" => rewritten::<ClusterProgressParams>(body),
        "OperatorMonitorReport" => rewritten::<OperatorReport>(body),
        "CompletionParams" => rewritten::<CompletionParams>(body),
        _ => panic!("no type for {model}"),
    }
}
