// The names and the order of hosts with static networks, as they were in the form. The API sorts the networks and has
// no names for them, so this browser keeps both.

const PREFIX = "kindling-hosts/";

/** Keeps the names and MAC addresses of an infra-env's hosts, in the order of the form. */
export function keepNames(id, hosts) {
  try {
    localStorage.setItem(PREFIX + id, JSON.stringify(hosts));
  } catch {
    // The storage is full or not allowed: the page then shows MAC addresses only.
  }
}

/** Removes the names of infra-envs that do not exist any more. */
export function forgetOthers(ids) {
  for (const key of storedKeys()) if (!ids.has(key.slice(PREFIX.length))) localStorage.removeItem(key);
}

/** Removes all names. */
export const forgetAll = () => forgetOthers(new Set());

function storedKeys() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
  } catch {
    return [];
  }
}

/** Returns the names that are known for networks, with their positions in the form. */
export function namesOf(id, networks) {
  const known = new Map();
  read(id).forEach(({ name, macs }, position) => macs.forEach((mac) => known.set(mac.toLowerCase(), { name, position })));
  const find = ({ mac_interface_map: map }) =>
    (map ?? []).map(({ mac_address }) => known.get(mac_address.toLowerCase())).find(Boolean);
  return networks.map((network) => find(network) ?? { name: "", position: Infinity });
}

function read(id) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + id)) ?? [];
  } catch {
    return [];
  }
}
