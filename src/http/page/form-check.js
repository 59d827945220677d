// Checks the static networks in the form before it is sent. The service checks the documents and maps. The page itself
// reports each entry without a MAC address.

import { api } from "./api.js";

const SEVERITIES = ["error", "warning", "info"];

/** Returns the findings in the hosts of the form, errors first. The numbers of hosts are the same as in the form. */
export async function findingsIn(hosts) {
  if (hosts.length === 0) return [];
  // Send each host in a separate list, so that an invalid document does not hide findings in other hosts.
  // The service limits the length of file names, so the titles of the hosts are not sent.
  const files = hosts.map(({ network }, index) => ({ name: `Host ${index + 1}`, text: JSON.stringify([network]) }));
  const { network } = await api.readNetworkFiles(files, true);
  const own = hosts.flatMap(({ network: { mac_interface_map: map } }, host) => map.flatMap(missingMac(host)));
  const isNew = (finding) => !own.some(({ host, path }) => host === finding.host && path === finding.path);
  const rank = ({ severity }) => SEVERITIES.indexOf(severity);
  return [...own, ...network.filter(isNew)].sort((one, other) => rank(one) - rank(other) || one.host - other.host);
}

/** Returns a function that returns an error if an entry of the host's map has no MAC address. */
const missingMac = (host) => ({ mac_address, logical_nic_name: name }, index) => {
  if (mac_address) return [];
  const message = `${name || "the interface"} has no MAC address`;
  return [{ severity: "error", message, host, line: null, path: `mac_interface_map[${index}].mac_address` }];
};
