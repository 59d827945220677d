// The hosts on the card of an infra-env. A closed card shows their number by status. An open one lists them and their
// clusters.

import { api } from "./api.js";
import * as changes from "./changes.js";
import { clustersById } from "./clusters.js";
import { arrange, badge, element, renew } from "./dom.js";
import { HostRow } from "./host-row.js";
import { statusWithReasons } from "./status.js";

/** Maximum number of hosts to list. Each includes an inventory report of tens of kilobytes. */
const MAX_LISTED = 50;
/** Maximum number of hosts to count. Each takes 2 KB of the response. */
const MAX_COUNTED = 500;
/**
 * The refresh interval of the list in milliseconds, with and without the stream of changes. The list is refreshed even
 * with the stream, because the stream does not report check-ins. Agents check in once a minute.
 */
const LIST_INTERVAL = { withStream: 30_000, alone: 3000 };
/** The minimum time between two counts in milliseconds: a constant, plus a time for each host. */
const COUNT_INTERVAL = { least: 3000, perHost: 50 };

export class Hosts {
  /** `slots` are the slots of a card. */
  constructor(slots) {
    this.slots = slots;
    this.rows = new Map();
    this.clusterIds = new Set();
    this.listedAt = 0;
    this.countedAt = 0;
    this.count = 0;
    this.isOutdated = true;
  }

  /** Records that the hosts may have changed. */
  invalidate() {
    this.listedAt = 0;
    this.isOutdated = true;
  }

  /** Lists the hosts if they may have changed since the last time. */
  async follow(infraEnv) {
    const interval = changes.isOpen() ? LIST_INTERVAL.withStream : LIST_INTERVAL.alone;
    if (Date.now() - this.listedAt >= interval) await this.list(infraEnv);
  }

  async list(infraEnv) {
    this.listedAt = Date.now();
    const hosts = await api.hosts(infraEnv, MAX_LISTED + 1);
    this.clusterIds = new Set([infraEnv, ...hosts].map(({ cluster_id }) => cluster_id).filter(Boolean));
    const clusters = await clustersById([...this.clusterIds]);
    this.showClusters(clusters);
    const { hosts: body, noHosts, hostTable, moreHosts } = this.slots;
    noHosts.hidden = hosts.length > 0;
    hostTable.hidden = hosts.length === 0;
    moreHosts.hidden = hosts.length <= MAX_LISTED;
    moreHosts.textContent = `Showing the first ${MAX_LISTED} hosts. The API lists all of them.`;
    const page = hosts.slice(0, MAX_LISTED);
    const ids = new Set(page.map(({ id }) => id));
    for (const id of this.rows.keys()) if (!ids.has(id)) this.rows.delete(id);
    const rows = page.map((host) => this.rowOf(host));
    page.forEach((host, index) => rows[index].update(host, clusters));
    arrange(body, rows.flatMap(({ summary, details }) => [summary, details]));
    if (hosts.length <= MAX_LISTED) this.showCounts(hosts);
    else await this.countIfOutdated(infraEnv);
  }

  /** Shows the clusters of the infra-env and of the listed hosts. */
  showClusters(clusters) {
    const items = [...this.clusterIds].map((id) => clusterItem(id, clusters.get(id)));
    this.slots.clusterPart.hidden = items.length === 0;
    renew(this.slots.clusters, items);
  }

  rowOf(host) {
    if (!this.rows.has(host.id)) this.rows.set(host.id, new HostRow(host));
    return this.rows.get(host.id);
  }

  /** Counts the hosts if they may have changed. After an error, the previous counts stay. */
  async countIfOutdated(infraEnv) {
    const pause = COUNT_INTERVAL.least + this.count * COUNT_INTERVAL.perHost;
    const age = Date.now() - this.countedAt;
    if (age < pause || (changes.isOpen() && !this.isOutdated)) return;
    this.countedAt = Date.now();
    this.isOutdated = false;
    try {
      this.showCounts(await api.hostsWithoutReports(infraEnv, MAX_COUNTED + 1));
    } catch {
      this.isOutdated = true;
    }
  }

  showCounts(hosts) {
    this.count = hosts.length;
    const counts = new Map();
    for (const { status } of hosts.slice(0, MAX_COUNTED)) counts.set(status, (counts.get(status) ?? 0) + 1);
    const sorted = [...counts].sort(([one, many], [other, more]) => more - many || one.localeCompare(other));
    const badges = sorted.map(([status, count]) => badge(status, `${count} ${status}`));
    if (hosts.length > MAX_COUNTED) badges.push(`of the first ${MAX_COUNTED} hosts`);
    this.slots.hostCounts.replaceChildren(...badges);
  }
}

/** Creates the item of a cluster. It has no status if the cluster cannot be read. */
function clusterItem(id, cluster) {
  const hint = element("span", { className: "hint" }, id);
  if (!cluster?.status) return element("li", {}, hint, element("span", { className: "hint" }, "cannot be read"));
  return element("li", {}, element("span", {}, cluster.name), ...statusWithReasons(cluster), hint);
}
