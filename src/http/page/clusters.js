// The names of clusters. One request reads all of them, and later calls use its result.

import { api } from "./api.js";

/** The statuses of responses to a token that may not read clusters. */
const DENIED = [401, 403];

/** The names by id; empty for clusters whose names cannot be read. */
let names = new Map();
/** The pending request for `names`. */
let pending = null;

/** Returns the names of clusters by id. */
export async function clusterNames(ids) {
  const known = names;
  if (ids.every((id) => known.has(id))) return known;
  const request = (pending ??= api.clusters());
  try {
    for (const { id, name } of await request) known.set(id, name);
  } catch (refusal) {
    // After other errors, the next call sends a request again.
    if (!DENIED.includes(refusal.status)) return known;
  } finally {
    if (pending === request) pending = null;
  }
  // Do not ask again for clusters that do not exist any more, or whose names cannot be read.
  for (const id of ids) if (!known.has(id)) known.set(id, "");
  return known;
}

/** Forgets the names, because a cluster may have changed. The response of a pending request is for the old names. */
export function forget() {
  names = new Map();
  pending = null;
}
