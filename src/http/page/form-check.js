// The check of the static networks in the form before it is sent. The service checks the documents and maps. The page
// rejects entries without a MAC address, with a finding for each field.

import { api } from "./api.js";

const SEVERITIES = ["error", "warning", "info"];

/** Returns the findings in hosts of the form, the errors first. Hosts are numbered as in the form. */
export async function findingsIn(hosts) {
  if (hosts.length === 0) return [];
  // A list of one host for each, so that an invalid document is a finding and does not hide the other hosts.
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
