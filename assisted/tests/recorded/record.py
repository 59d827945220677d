"""Records responses of the service for the round-trip tests, one file for each response, as the service sent them.

    record.py KINDLING

KINDLING is the program to run, such as target/debug/kindling.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).parent
HOST = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11"
AGENT = "quay.io/edge-infrastructure/assisted-installer-agent:latest"
SECRET = json.dumps({"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}})
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZ8SSEeQFGsUW8F0Xk3NxGWr0Y6nWn2oPkBQvIdVhjJ admin"

INVENTORY = {
    "hostname": "node-1",
    "cpu": {"count": 8, "architecture": "x86_64", "frequency": 2400, "flags": [], "model_name": "sim"},
    "memory": {"physical_bytes": 32 << 30, "usable_bytes": 32 << 30, "physical_bytes_method": "dmidecode"},
    "disks": [{
        "id": "/dev/disk/by-id/wwn-0x5000000000000001", "by_id": "/dev/disk/by-id/wwn-0x5000000000000001",
        "path": "/dev/sda", "name": "sda", "drive_type": "HDD", "size_bytes": 128_849_018_880, "bootable": True,
        "wwn": "0x5000000000000001", "serial": "s1",
        "installation_eligibility": {"eligible": True, "not_eligible_reasons": []},
    }],
    "interfaces": [{
        "name": "eth0", "type": "physical", "mac_address": "52:54:00:00:00:01", "mtu": 1500, "has_carrier": True,
        "speed_mbps": 1000, "flags": ["up", "broadcast", "multicast"], "ipv4_addresses": ["192.168.1.11/24"],
        "ipv6_addresses": [],
    }],
    "routes": [{"interface": "eth0", "gateway": "192.168.1.1", "destination": "0.0.0.0", "family": 2, "metric": 100}],
    "system_vendor": {"manufacturer": "Sim", "product_name": "Sim", "serial_number": "1", "virtual": True},
    "boot": {"current_boot_mode": "bios", "device_type": "ephemeral"},
    "bmc_address": "0.0.0.0", "bmc_v6address": "::/0", "tpm_version": "none",
}

CLUSTER = {
    "name": "edge", "openshift_version": "4.18", "pull_secret": SECRET, "base_dns_domain": "example.com",
    "ssh_public_key": KEY, "http_proxy": "http://proxy.example.com:3128", "no_proxy": "example.com",
    "additional_ntp_source": "ntp.example.com", "tags": "lab", "platform": {"type": "baremetal"},
    "api_vips": [{"ip": "192.168.1.5"}], "ingress_vips": [{"ip": "192.168.1.6"}],
    "machine_networks": [{"cidr": "192.168.1.0/24"}], "olm_operators": [{"name": "lvm", "properties": "{}"}],
    "disk_encryption": {"enable_on": "masters", "mode": "tpmv2"},
    "operator_bundles": [{"id": "virtualization", "optional_operators": []}],
}

INFRA_ENV = {
    "name": "edge", "openshift_version": "4.18", "pull_secret": SECRET, "ssh_authorized_key": KEY,
    "proxy": {"http_proxy": "http://proxy.example.com:3128"}, "additional_ntp_sources": "ntp.example.com",
    "image_type": "minimal-iso", "network_discovery_delay_seconds": 5,
    "kernel_arguments": [{"operation": "append", "value": "quiet"}],
    "ignition_config_override": json.dumps({"ignition": {"version": "3.1.0"}}),
    "static_network_config": [{
        "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}],
        "network_yaml": "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    dhcp: true\n",
    }],
}


class Service:
    def __init__(self, program, folder):
        image = {"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
                 "url": "http://127.0.0.1:9/base.iso"}
        release = {"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3", "default": True,
                   "url": "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64"}
        environment = dict(os.environ, OS_IMAGES=json.dumps([image]), RELEASE_IMAGES=json.dumps([release]), LOG_LEVEL="error")
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip().removeprefix("listening on ")

    def call(self, name, method, path, body=None, headers=()):
        """Makes a request, and records the response under a name."""
        data = None if body is None else json.dumps(body).encode()
        headers = dict(headers, **({} if body is None else {"Content-Type": "application/json"}))
        request = urllib.request.Request(f"{self.url}/api/assisted-install/v2{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                text = response.read().decode()
        except urllib.error.HTTPError as error:
            text = error.read().decode()
        if name:
            (HERE / f"{name}.json").write_text(text)
        return json.loads(text) if text else None


def record(service):
    call = service.call
    call("default_config", "GET", "/clusters/default-config")
    call("component_versions", "GET", "/component-versions")
    call("openshift_versions", "GET", "/openshift-versions")
    call("supported_architectures", "GET", "/support-levels/architectures?openshift_version=4.12")
    call("os_images", "GET", "/os-images")
    cluster = call("new_cluster", "POST", "/clusters", CLUSTER)["id"]
    call("imported_cluster", "POST", "/clusters/import", {
        "name": "day2", "api_vip_dnsname": "api.day2.example.com", "openshift_cluster_id": "b5b8d2d1-6f4b-4f29-8d0a-0e9f5c1f2a33",
        "openshift_version": "4.18"})
    call("disconnected_cluster", "POST", "/clusters/disconnected", {"name": "air-gap", "openshift_version": "4.18"})
    infra_env = call("infra_env", "POST", "/infra-envs", INFRA_ENV)["id"]
    call("image_url", "GET", f"/infra-envs/{infra_env}/downloads/image-url")
    hosts = f"/infra-envs/{infra_env}/hosts"
    agent = {"discovery_agent_version": AGENT}
    call("registered_host", "POST", hosts, {"host_id": HOST, "discovery_agent_version": AGENT}, agent)
    call("steps", "GET", f"{hosts}/{HOST}/instructions?timestamp=1700000000", headers=agent)
    replies = {
        "inventory": INVENTORY,
        "ntp-synchronizer": {"ntp_sources": [{"source_name": "ntp.example.com", "source_state": "synced"}]},
        "installation-disk-speed-check": {"path": "/dev/sda", "io_sync_duration": 5},
        "container-image-availability": {"images": [
            {"name": "quay.io/a", "size_bytes": 333_000_000, "time": 12.5, "download_rate": 25.6, "result": "success"}]},
        "connectivity-check": {"remote_hosts": [{
            "host_id": "0aa1aa6b-3ea4-4fcb-a7d4-5b3c1e2f0a11",
            "l2_connectivity": [{"outgoing_nic": "eth0", "remote_ip_address": "192.168.1.12", "successful": True}],
            "l3_connectivity": None}]},
        "domain-resolution": {"resolutions": [{"domain_name": "api.edge.example.com", "ipv4_addresses": ["192.168.1.5"]}]},
    }
    for kind, output in replies.items():
        reply = {"step_type": kind, "step_id": f"{kind}-00000001", "exit_code": 0, "output": json.dumps(output), "error": ""}
        call(None, "POST", f"{hosts}/{HOST}/instructions", reply, agent)
    call(None, "PATCH", f"{hosts}/{HOST}", {
        "host_role": "worker", "node_labels": [{"key": "a.example.com/b", "value": "c"}],
        "disks_skip_formatting": [{"disk_id": "/dev/disk/by-id/wwn-0x5000000000000001", "skip_formatting": True}]})
    call(None, "PATCH", f"{hosts}/{HOST}/installer-args", {"args": ["--append-karg", "quiet"]})
    call("bound_host", "POST", f"{hosts}/{HOST}/actions/bind", {"cluster_id": cluster})
    call("binding_steps", "GET", f"{hosts}/{HOST}/instructions?timestamp=1700000060", headers=agent)
    call(None, "POST", hosts, {"host_id": HOST, "discovery_agent_version": AGENT}, agent)
    for kind, output in replies.items():
        reply = {"step_type": kind, "step_id": f"{kind}-00000001", "exit_code": 0, "output": json.dumps(output), "error": ""}
        call(None, "POST", f"{hosts}/{HOST}/instructions", reply, agent)
    call("host_ignition", "GET", f"{hosts}/{HOST}/ignition")
    call("host", "GET", f"{hosts}/{HOST}")
    call("hosts", "GET", hosts)
    call("cluster", "GET", f"/clusters/{cluster}")
    call("clusters", "GET", "/clusters?with_hosts=true")
    call("infra_envs", "GET", "/infra-envs")
    call("events", "GET", f"/events?infra_env_id={infra_env}")
    call("operation_error", "GET", f"/infra-envs/{HOST}")
    call("infra_error", "PATCH", f"/infra-envs/{infra_env}", {"colour": 1})


def main():
    with tempfile.TemporaryDirectory() as folder:
        service = Service(os.path.abspath(sys.argv[1]), folder)
        try:
            record(service)
        finally:
            service.process.terminate()
            service.process.wait()


if __name__ == "__main__":
    main()
