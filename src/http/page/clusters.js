// The names and statuses of clusters. One request reads all clusters, and later calls use the result.

import { api } from "./api.js";
import * as changes from "./changes.js";

/** The response statuses for a token without access to clusters. */
const DENIED = [401, 403];
/** Maximum age of the result in milliseconds, if there is no stream of changes. */
const MAX_AGE = 10_000;

/** The clusters by id. A cluster that cannot be read has an empty name and no status. */
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
  // Do not request clusters again that no longer exist or cannot be read.
  for (const id of ids) if (!known.has(id)) known.set(id, { name: "" });
  return known;
}

/** Drops the result and any pending request, because a cluster may have changed. */
export function forget() {
  clusters = new Map();
  pending = null;
}
