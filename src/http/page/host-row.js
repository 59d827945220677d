// The row of a host, and the row with its details below it.

import { addressList, cell, element, renew } from "./dom.js";
import { hostDetails } from "./host-details.js";
import { statusWithReasons } from "./status.js";
import { timeElement } from "./time.js";

const COLUMNS = 6;
/** Maximum length of the text about the status. The details show all messages. */
const MAX_REASON = 160;

export class HostRow {
  constructor({ id, infra_env_id }) {
    // Include the id of the infra-env, because a machine has the same host id in every infra-env.
    const detailsId = `host-${infra_env_id}-${id}`;
    this.button = element("button", { type: "button", className: "expander", "aria-expanded": "false", "aria-controls": detailsId });
    this.button.addEventListener("click", () => this.toggle());
    this.id = element("span", { className: "hint" });
    this.name = element("th", { scope: "row" }, this.button, this.id);
    this.summary = element("tr", {}, this.name);
    this.inside = element("td", { colSpan: COLUMNS });
    this.details = element("tr", { id: detailsId, className: "details", hidden: true }, this.inside);
  }

  /** Updates the row to the current state of the host. `clusters` are the clusters by id. */
  update(host, clusters) {
    this.host = host;
    const { id, requested_hostname, role, inventory, cluster_id, checked_in_at } = host;
    const hasName = requested_hostname && requested_hostname !== id;
    const name = hasName ? requested_hostname : id;
    if (this.button.textContent !== name) this.button.textContent = name;
    this.id.textContent = hasName ? id : "";
    renew(this.summary, [this.name,
      cell("Status", ...statusWithReasons(host, MAX_REASON)),
      cell("Role", role),
      cell("Address", addressList(addressesOf(inventory))),
      cell("Cluster", ...ofCluster(cluster_id, clusters)),
      cell("Last check-in", timeElement(checked_in_at)),
    ]);
    this.showDetails();
  }

  toggle() {
    this.details.hidden = !this.details.hidden;
    this.button.setAttribute("aria-expanded", `${!this.details.hidden}`);
    this.showDetails();
  }

  showDetails() {
    if (!this.details.hidden) renew(this.inside, hostDetails(this.host));
  }
}

function ofCluster(id, clusters) {
  if (!id) return ["no cluster"];
  const name = clusters.get(id)?.name;
  return name ? [name, element("span", { className: "hint" }, id)] : [id];
}

/** Returns the IP addresses in an inventory report, without their prefix lengths. */
function addressesOf(inventory) {
  const { interfaces } = JSON.parse(inventory || "{}");
  const ofInterface = ({ ipv4_addresses, ipv6_addresses }) => [...(ipv4_addresses ?? []), ...(ipv6_addresses ?? [])];
  return (interfaces ?? []).flatMap(ofInterface).map((address) => address.split("/")[0]);
}
