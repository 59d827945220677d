// The names of clusters. One request reads all of them, and later calls use its result.

import { api } from "./api.js";

/** The names by id; empty for ids that the list does not contain. */
const names = new Map();
let request = null;

/** Returns the names of clusters by id. */
export async function clusterNames(ids) {
  if (ids.every((id) => names.has(id))) return names;
  request ??= api.clusters().finally(() => (request = null));
  const clusters = await request.catch(() => []);
  for (const { id, name } of clusters) names.set(id, name);
  // Do not ask again for clusters that do not exist any more, or whose names cannot be read.
  for (const id of ids) if (!names.has(id)) names.set(id, "");
  return names;
}

/** Forgets the names, because a cluster may have changed. */
export const forget = () => names.clear();
