"""The first calls of a host's agent: registers the host in an infra-env, and sends its inventory.

    agent.py INFRA_ENV_NAME HOST_ID
"""

import json
import os
import sys
import urllib.request

API = os.environ["KINDLING_URL"] + "/api/assisted-install/v2"

INVENTORY = {
    "hostname": "node-1",
    "cpu": {"count": 8, "architecture": "x86_64", "frequency": 2400, "flags": [], "model_name": "sim"},
    "memory": {"physical_bytes": 32 << 30, "usable_bytes": 32 << 30, "physical_bytes_method": "dmidecode"},
    "disks": [{
        "id": "/dev/sda", "name": "sda", "drive_type": "HDD", "size_bytes": 128_849_018_880, "bootable": True,
        "installation_eligibility": {"eligible": True, "not_eligible_reasons": []},
    }],
    "interfaces": [{
        "name": "eth0", "type": "physical", "mac_address": "52:54:00:00:00:01", "has_carrier": True, "speed_mbps": 1000,
        "ipv4_addresses": ["192.168.1.11/24"], "ipv6_addresses": [], "flags": ["up"], "mtu": 1500,
    }],
    "routes": [{"interface": "eth0", "gateway": "192.168.1.1", "destination": "0.0.0.0", "family": 2, "metric": 100}],
    "system_vendor": {"manufacturer": "Sim", "product_name": "Sim", "serial_number": "1", "virtual": True},
    "boot": {"current_boot_mode": "bios"},
}


def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {} if body is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(API + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        text = response.read()
    return json.loads(text) if text else None


def boot(infra_env_id, host_id):
    hosts = f"/infra-envs/{infra_env_id}/hosts"
    call("POST", hosts, {"host_id": host_id})
    reply = {
        "step_type": "inventory", "step_id": "inventory-1", "exit_code": 0, "error": "",
        "output": json.dumps(INVENTORY),
    }
    call("POST", f"{hosts}/{host_id}/instructions", reply)


if __name__ == "__main__":
    name, host_id = sys.argv[1:]
    [infra_env] = [found for found in call("GET", "/infra-envs") if found["name"] == name]
    boot(infra_env["id"], host_id)
