// Stores the names and the order of hosts with static networks in this browser. The API stores neither: it sorts the
// networks and has no names for them.

const PREFIX = "kindling-hosts/";
/** Maximum number of infra-envs whose names are stored. */
const MAX_KEPT = 200;

/** Stores the names and MAC addresses of an infra-env's hosts, in the order of the form. */
export function keepNames(id, hosts) {
  try {
    localStorage.setItem(PREFIX + id, JSON.stringify({ keptAt: Date.now(), hosts }));
    forgetOldest();
  } catch {
    // The storage is full or denied. Then the page shows only MAC addresses.
  }
}

/** Removes the names of an infra-env. */
export function forgetNames(id) {
  if (storedKeys().includes(PREFIX + id)) localStorage.removeItem(PREFIX + id);
}

/** Removes all names. */
export const forgetAll = () => storedKeys().forEach((key) => localStorage.removeItem(key));

/**
 * Removes the oldest names. Another service at the same address may have infra-envs that this service does not list, so
 * only the number of infra-envs limits the storage.
 */
function forgetOldest() {
  const entries = storedKeys().map((key) => ({ key, keptAt: read(key).keptAt }));
  entries.sort((one, other) => other.keptAt - one.keptAt);
  for (const { key } of entries.slice(MAX_KEPT)) localStorage.removeItem(key);
}

function storedKeys() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
  } catch {
    return [];
  }
}

/** Returns the stored names for networks, with their positions in the form. */
export function namesOf(id, networks) {
  const known = new Map();
  read(PREFIX + id).hosts.forEach(({ name, macs }, position) => {
    for (const mac of macs) known.set(mac.toLowerCase(), { name, position });
  });
  const find = ({ mac_interface_map: map }) =>
    (map ?? []).map(({ mac_address }) => known.get(mac_address.toLowerCase())).find(Boolean);
  return networks.map((network) => find(network) ?? { name: "", position: Infinity });
}

function read(key) {
  try {
    const { keptAt = 0, hosts = [] } = JSON.parse(localStorage.getItem(key)) ?? {};
    return { keptAt, hosts };
  } catch {
    return { keptAt: 0, hosts: [] };
  }
}
