"""Calls the service through the client that is generated from the Assisted Service's API document, one line per call.

    generated.py HOST_ID
"""

import os
import sys
import time

import yaml
from assisted_service_client import ApiClient, Configuration, api, models
from assisted_service_client.rest import ApiException

import agent

# Calls that fail because the service does not implement them. Remove a call from this list once it works.
NOT_IMPLEMENTED = [
    ("v2_list_supported_operators", []),
    ("get_supported_features", ["4.18"]),
    ("v2_list_managed_domains", []),
]

configuration = Configuration()
configuration.host = os.environ["KINDLING_URL"] + "/api/assisted-install"
client = ApiClient(configuration=configuration)
installer = api.InstallerApi(api_client=client)
events = api.EventsApi(api_client=client)
versions = api.VersionsApi(api_client=client)
operators = api.OperatorsApi(api_client=client)
domains = api.ManagedDomainsApi(api_client=client)
PULL_SECRET = open("pull-secret.json").read()


def call(function, *arguments, **options):
    answer = function(*arguments, **options)
    print(function.__name__)
    return answer


def expect(condition, what):
    if not condition:
        sys.exit(f"not as expected: {what}")


assert "4.18.3" in call(versions.v2_list_supported_openshift_versions)
call(versions.v2_list_component_versions)

cluster = call(installer.v2_register_cluster, models.ClusterCreateParams(
    name="edge", openshift_version="4.18", pull_secret=PULL_SECRET, base_dns_domain="example.com"))
expect(cluster.status == "insufficient", cluster.status)
expect(cluster.validations_info == "{}", cluster.validations_info)
expect([operator.name for operator in cluster.monitored_operators] == ["console"], cluster.monitored_operators)
cluster_id = cluster.id
call(installer.v2_update_cluster, cluster_id, models.V2ClusterUpdateParams(name="renamed"))
expect(call(installer.v2_get_cluster, cluster_id).name == "renamed", "the name of the cluster")
expect([found["id"] for found in call(installer.v2_list_clusters)] == [cluster_id], "the list of clusters")
call(installer.v2_get_cluster_default_config)

infra_env = call(installer.register_infra_env, models.InfraEnvCreateParams(
    name="lone", openshift_version="4.18", pull_secret=PULL_SECRET, image_type="full-iso"))
infra_env_id = infra_env.id
# A MAC address without quotes, as Python's YAML reads it.
racks = call(installer.register_infra_env, models.InfraEnvCreateParams(
    name="racks", openshift_version="4.18", pull_secret=PULL_SECRET, static_network_config=[models.HostStaticNetworkConfig(
        network_yaml="interfaces:\n- {name: eth0, type: ethernet, state: up}\n",
        mac_interface_map=[{"mac_address": yaml.safe_load("52:54:00:00:00:01"), "logical_nic_name": "eth0"}])]))
expect('"52:54:00:00:00:01"' in racks.static_network_config, racks.static_network_config)
call(installer.deregister_infra_env, racks.id)
call(installer.update_infra_env, infra_env_id, models.InfraEnvUpdateParams(additional_ntp_sources="ntp.example.com"))
expect(call(installer.get_infra_env, infra_env_id).additional_ntp_sources == "ntp.example.com", "its NTP sources")
expect(len(call(installer.list_infra_envs)) == 1, "the list of infra-envs")
url = call(installer.get_infra_env_download_url, infra_env_id).url
expect(url == call(installer.get_infra_env, infra_env_id).download_url, url)
expect(url != infra_env.download_url, "the URL of a changed image")
config = call(installer.v2_download_infra_env_files, infra_env_id, "discovery.ign", _preload_content=False)
expect(b'"ignition"' in config.data, "the discovery config")

agent.boot(infra_env_id, sys.argv[1])
host_id = sys.argv[1]
hosts = call(installer.v2_list_hosts, infra_env_id)
expect([host["status"] for host in hosts] == ["known-unbound"], hosts)
host = call(installer.v2_get_host, infra_env_id, host_id)
expect(host.installation_disk_path == "/dev/sda", host.installation_disk_path)
call(installer.v2_update_host, infra_env_id, host_id, models.HostUpdateParams(
    host_name="worker-1", host_role="worker", disks_selected_config=[models.DiskConfigParams(id="/dev/sda", role="install")]))
call(installer.bind_host, infra_env_id, host_id, models.BindHostParams(cluster_id=cluster_id))
host = call(installer.v2_get_host, infra_env_id, host_id)
expect((host.status, host.requested_hostname) == ("binding", "worker-1"), host.status)
# After the binding, the host registers again.
agent.boot(infra_env_id, host_id)
# The service computes the status after reports. The cluster has no virtual IP addresses, and so no machine network.
end = time.monotonic() + 30
while (host := call(installer.v2_get_host, infra_env_id, host_id)).status == "discovering" and time.monotonic() < end:
    time.sleep(0.1)
expect(host.status == "pending-for-input", host.status)
call(installer.unbind_host, infra_env_id, host_id)
expect(call(installer.v2_get_host, infra_env_id, host_id).status == "unbinding", "a host that was unbound")
expect(len(call(events.v2_list_events, infra_env_id=infra_env_id)) > 0, "events")

apis = [operators, installer, domains]
for name, arguments in NOT_IMPLEMENTED:
    function = next(getattr(one, name) for one in apis if hasattr(one, name))
    try:
        function(*arguments)
        expect(False, f"{name} is implemented: remove it from the list")
    except ApiException as error:
        expect(error.status == 501, f"{name}: {error}")

call(installer.v2_deregister_host, infra_env_id, host_id)
call(installer.deregister_infra_env, infra_env_id)
call(installer.v2_deregister_cluster, cluster_id)
expect(call(installer.v2_list_clusters) == [], "no clusters are left")
# The host has no cluster: it was deleted while it was unbound.
deleted = call(installer.v2_list_clusters, get_unregistered_clusters=True, with_hosts=True)
expect([(found["id"], found["hosts"]) for found in deleted] == [(cluster_id, [])], deleted)
