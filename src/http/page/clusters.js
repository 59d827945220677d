// The names and statuses of clusters. One request reads all of them, and later calls use its result.

import { api } from "./api.js";
import * as changes from "./changes.js";

/** The statuses of responses to a token that may not read clusters. */
const DENIED = [401, 403];
/** The maximum age of the clusters in milliseconds if there is no stream of changes. */
const MAX_AGE = 10_000;

/** The clusters by id; without a status and with an empty name if they cannot be read. */
let clusters = new Map();
/** The pending request for `clusters`. */
let pending = null;
let readAt = 0;

/** Returns clusters by id: their names, statuses and validations. */
export async function clustersById(ids) {
  if (!changes.isOpen() && !pending && Date.now() - readAt > MAX_AGE) forget();
  const known = clusters;
  if (ids.every((id) => known.has(id))) return known;
  const request = (pending ??= api.clusters());
  try {
    for (const { id, name, status, status_info, validations_info } of await request) {
      known.set(id, { name, status, status_info, validations_info });
    }
    readAt = Date.now();
  } catch (refusal) {
    // After other errors, the next call sends a request again.
    if (!DENIED.includes(refusal.status)) return known;
    readAt = Date.now();
  } finally {
    if (pending === request) pending = null;
  }
  // Do not ask again for clusters that do not exist any more, or that cannot be read.
  for (const id of ids) if (!known.has(id)) known.set(id, { name: "" });
  return known;
}

/** Forgets the clusters, because one may have changed. The response of a pending request is for the old ones. */
export function forget() {
  clusters = new Map();
  pending = null;
}
