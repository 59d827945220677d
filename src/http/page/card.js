// The card of an infra-env. An open card shows files, findings and readers, and refreshes the readers.

import { api } from "./api.js";
import { badge, copyButton, element, finding, findingList, fromTemplate, humanBytes, plural, progressBar, renew, showProblem } from "./dom.js";
import { hasFailed } from "./base-images.js";
import * as changes from "./changes.js";

const USES = {
  "full.iso": "Includes the root file system",
  "minimal.iso": "Downloads the root file system",
  "script.ipxe": "For iPXE: boots the files below",
  initrd: "With Ignition config and static networks",
  rootfs: "Root file system",
};

const WAITING = "The base image is not ready yet. Sizes appear as soon as it is; downloads wait for it.";
const FAILED = "The base image is not available: see Base images below. The service retries; downloads wait for it.";

/** The maximum number of hosts that are shown. Each comes with its inventory report, which has tens of kilobytes. */
const MAX_HOSTS = 50;
/**
 * The refresh interval of the hosts in milliseconds, while the stream tells what changes and otherwise. It does not tell
 * of check-ins: agents poll once a minute.
 */
const HOSTS_INTERVAL = { withStream: 30_000, alone: 3000 };

/** The severities of findings, the worst first, with the nouns for their counts. */
const SEVERITIES = [["error", "error"], ["warning", "warning"], ["info", "note"]];

/** The files that are available for a single host. */
const OF_MACHINES = ["full.iso", "minimal.iso", "initrd"];

export class Card {
  /** Creates a closed card. `onDelete` is called when the user deletes the infra-env. */
  constructor(infraEnv, onDelete) {
    [this.root, this.slots] = fromTemplate("infra-env");
    this.opener = this.root.querySelector(".opener");
    this.inside = this.root.querySelector(".inside");
    this.inside.id = `inside-${infraEnv.id}`;
    this.opener.setAttribute("aria-controls", this.inside.id);
    this.opener.addEventListener("click", () => (this.isOpen ? this.close() : this.open()));
    this.slots.delete.addEventListener("click", () => onDelete(this.infraEnv));
    this.slots.machine.addEventListener("change", () => this.attempt(() => this.listFiles()));
    this.head(infraEnv);
    // A list may have hundreds of cards: request the findings only for cards on the screen.
    new IntersectionObserver((entries) => {
      this.isOnScreen = entries.at(-1).isIntersecting;
      this.countFindings();
    }).observe(this.root);
  }

  get isOpen() {
    return !this.inside.hidden;
  }

  head(infraEnv) {
    this.infraEnv = infraEnv;
    this.slots.name.textContent = infraEnv.name;
    this.slots.delete.setAttribute("aria-label", `Delete ${infraEnv.name}`);
    this.slots.facts.textContent =
      [infraEnv.openshift_version, infraEnv.cpu_architecture, infraEnv.type].filter(Boolean).join(" · ");
  }

  async open() {
    this.inside.hidden = false;
    this.opener.setAttribute("aria-expanded", "true");
    history.replaceState(null, "", `#${this.infraEnv.id}`);
    await this.load();
  }

  close() {
    this.inside.hidden = true;
    this.opener.setAttribute("aria-expanded", "false");
    history.replaceState(null, "", location.pathname);
  }

  /** Updates the card to the current state of the infra-env. */
  async update(infraEnv) {
    const isSame = infraEnv.updated_at === this.infraEnv.updated_at;
    this.head(infraEnv);
    // Do not replace what a user may be reading, unless it has changed.
    if (this.isOpen && isSame) return;
    if (this.isOpen) await this.load();
    else await this.countFindings();
  }

  /** Shows the number of findings on a closed card. */
  async countFindings() {
    const { updated_at, static_network_config, ignition_config_override } = this.infraEnv;
    if (this.isOpen || !this.isOnScreen || this.countedAt === updated_at) return;
    this.countedAt = updated_at;
    if (!ignition_config_override && JSON.parse(static_network_config || "[]").length === 0) return this.showCounts([]);
    try {
      const { network, ignition } = await api.preflight(this.infraEnv);
      this.showCounts([...network, ...ignition]);
    } catch {
      // The open card shows the error.
      this.countedAt = undefined;
    }
  }

  showCounts(findings) {
    const counts = SEVERITIES.map(([severity, noun]) => [severity, noun, findings.filter((it) => it.severity === severity).length]);
    const badges = counts.filter(([, , count]) => count > 0).map(([severity, noun, count]) => badge(severity, plural(count, noun)));
    this.slots.counts.replaceChildren(...badges);
  }

  async load() {
    this.slots.about.replaceChildren(...about(this.infraEnv));
    this.machines = JSON.parse(this.infraEnv.static_network_config || "[]");
    this.offerMachines();
    await this.attempt(async () => {
      await Promise.all([this.listFiles(), this.listFindings(), this.listHosts(), this.listReaders()]);
    });
  }

  async follow() {
    if (!this.isOpen || !this.root.isConnected) return;
    await this.attempt(async () => {
      // Once the list of files is complete, do not replace it: its links and buttons may be in use.
      if (!this.isReady) await this.listFiles();
      const interval = changes.isOpen() ? HOSTS_INTERVAL.withStream : HOSTS_INTERVAL.alone;
      if (Date.now() - this.hostsAt >= interval) await this.listHosts();
      await this.listReaders();
    });
  }

  async attempt(work) {
    const problem = await work().then(() => null, (problem) => problem);
    // Show an error once, not every second.
    if (problem?.message !== this.said) showProblem(this.slots.problem, problem);
    this.said = problem?.message;
  }

  /** Offers the hosts with a static network. The images of one host contain only its own network. */
  offerMachines() {
    const { choice, machine } = this.slots;
    const chosen = machine.value;
    const addresses = this.machines.map(addressesOf).filter((addresses) => addresses.length);
    const options = addresses.map((addresses) => element("option", { value: addresses[0] }, addresses.join(", ")));
    machine.replaceChildren(element("option", { value: "" }, "all machines"), ...options);
    machine.value = addresses.some(([first]) => first === chosen) ? chosen : "";
    choice.hidden = options.length === 0;
  }

  async listFiles() {
    const listing = await api.files(this.infraEnv);
    this.isReady = listing.ready;
    this.slots.waiting.hidden = listing.ready;
    const waiting = hasFailed(this.infraEnv) ? FAILED : WAITING;
    if (this.slots.waiting.textContent !== waiting) this.slots.waiting.textContent = waiting;
    const mac = this.slots.machine.value;
    const files = mac ? await this.filesFor(mac, listing) : inOrder(listing);
    this.slots.files.replaceChildren(...files.map(fileRow));
  }

  filesFor(mac, { ready, files }) {
    const own = files.filter(({ name, error }) => OF_MACHINES.includes(name) && !error);
    const withMac = (url, name) => url.replace(`/${name}`, `/${mac}/${name}`);
    return Promise.all(own.map(async ({ name, url, sha256_url }) => ({
      name,
      url: withMac(url, name),
      sha256_url: withMac(sha256_url, name),
      size: ready ? await api.sizeFor(this.infraEnv, mac, name) : undefined,
    })));
  }

  async listFindings() {
    const { network, ignition } = await api.preflight(this.infraEnv);
    this.showCounts([...network, ...ignition]);
    const all = [
      ...network.map((finding) => () => ofMachine(finding, this.machines)),
      ...ignition.map((finding) => () => ofOverride(finding)),
    ];
    const none = this.machines.length ? `None, in ${plural(this.machines.length, "machine")}.` : "None. There are no static networks.";
    const list = all.length ? findingList(all, (toItem) => toItem()) : element("p", { className: "empty" }, none);
    this.slots.findings.replaceChildren(list);
  }

  async listHosts() {
    this.hostsAt = Date.now();
    const hosts = await api.hosts(this.infraEnv, MAX_HOSTS + 1);
    const { noHosts, hostTable, moreHosts } = this.slots;
    noHosts.hidden = hosts.length > 0;
    hostTable.hidden = hosts.length === 0;
    moreHosts.hidden = hosts.length <= MAX_HOSTS;
    moreHosts.textContent = `Showing the first ${MAX_HOSTS} hosts. The API lists all of them.`;
    renew(this.slots.hosts, hosts.slice(0, MAX_HOSTS).map(hostRow));
  }

  async listReaders() {
    const { readers } = await api.bootTrace(this.infraEnv);
    this.slots.nobody.hidden = readers.length > 0;
    this.slots.trace.hidden = readers.length === 0;
    renew(this.slots.readers, readers.map(readerRow));
  }
}

/** Returns the files in the order of their importance to users. */
function inOrder({ files, script_url }) {
  const isImage = ({ name }) => name.endsWith(".iso");
  const script = { name: "script.ipxe", url: script_url };
  return [...files.filter(isImage), script, ...files.filter((file) => !isImage(file))];
}

const addressesOf = (machine) => (machine?.mac_interface_map ?? []).map((map) => map.mac_address);

/** Creates a cell with the name of its column, which narrow screens show instead of a table head. */
const cell = (column, ...children) => element("td", { "data-column": column }, ...children);

function about({ id, created_at, pull_secret_set, ssh_authorized_key, kernel_arguments }) {
  const facts = [
    ["Id", element("code", {}, id), " ", copyButton(id, "the id")],
    ["Created", new Date(created_at).toLocaleString()],
    ["Pull secret", pull_secret_set ? "set" : "none"],
    ["SSH keys", `${(ssh_authorized_key ?? "").split("\n").filter(Boolean).length}`],
    ["Kernel arguments", JSON.parse(kernel_arguments || "[]").map(argument).join(", ") || "none"],
  ];
  return facts.map(([name, ...value]) => element("div", {}, element("dt", {}, name), element("dd", {}, ...value)));
}

const argument = ({ operation, value }) => (operation === "append" ? value : `${operation} ${value}`);

function fileRow({ name, url, sha256_url, size, error }) {
  const link = error ? name : element("a", { href: url, download: "" }, name);
  const digest = sha256_url && !error && element("a", { href: sha256_url, className: "small", "aria-label": `SHA-256 of ${name}` }, "SHA-256");
  return element("tr", {},
    element("th", { scope: "row" }, link, element("span", { className: error ? "error-text" : "hint" }, error ?? USES[name] ?? "")),
    cell("Size", size === undefined ? "" : sizeOf(size)),
    cell("URL", element("code", { className: "url" }, url)),
    cell("", element("span", { className: "tools" }, digest, copyButton(url, `the URL of ${name}`))),
  );
}

const sizeOf = (bytes) => element("span", {},
  element("data", { value: bytes }, humanBytes(bytes)),
  element("span", { className: "hint exact" }, `${bytes.toLocaleString("en")} B`));

/** Creates a finding about a host's network. MAC addresses identify the host, because file names are not stored. */
function ofMachine({ severity, message, host, path, line }, machines) {
  const machine = machines[host];
  const addresses = addressesOf(machine).join(", ");
  const text = line === null ? undefined : machine?.network_yaml.split("\n")[line - 1]?.trim();
  const place = [`Host ${host + 1}`, addresses && ` (${addresses})`, line === null ? "" : `, line ${line}`, path && `, ${path}`];
  return finding(severity, message, place.join(""), text);
}

const ofOverride = ({ severity, message, pointer, line }) =>
  finding(severity, message, `Ignition override${line ? `, line ${line}` : ""}${pointer ? `, ${pointer}` : ""}`);

function hostRow({ id, requested_hostname, status, status_info, role, inventory, checked_in_at }) {
  const hasName = requested_hostname && requested_hostname !== id;
  return element("tr", {},
    element("th", { scope: "row" }, hasName ? requested_hostname : id, hasName ? element("span", { className: "hint" }, id) : null),
    cell("Status", badge(status), element("span", { className: "hint" }, status_info)),
    cell("Role", role),
    cell("Address", addressesOfHost(inventory).join(", ")),
    cell("Last check-in", element("time", { dateTime: checked_in_at }, new Date(checked_in_at).toLocaleTimeString())),
  );
}

/** Returns the IP addresses in an inventory report, without the lengths of their prefixes. */
function addressesOfHost(inventory) {
  const { interfaces } = JSON.parse(inventory || "{}");
  const ofInterface = ({ ipv4_addresses, ipv6_addresses }) => [...(ipv4_addresses ?? []), ...(ipv6_addresses ?? [])];
  return (interfaces ?? []).flatMap(ofInterface).map((address) => address.split("/")[0]);
}

function readerRow({ client, machine, file, state, size, percent, bytes_sent, answers, last_range, last_at }) {
  const label = `Progress of ${client} reading ${file}`;
  const range = `${last_range.first.toLocaleString("en")}–${last_range.last.toLocaleString("en")}`;
  return element("tr", {},
    element("th", { scope: "row" }, client, machine ? element("span", { className: "hint" }, machine) : null),
    cell("File", file, element("span", { className: "hint" }, humanBytes(size))),
    cell("Read", element("span", { className: "meter" }, progressBar(label, percent, 100), element("span", { className: "percent" }, `${percent} %`)),
      element("span", { className: "hint" }, `${humanBytes(bytes_sent)} in ${plural(answers, "answer")}`)),
    cell("State", badge(state), element("span", { className: "hint" }, new Date(last_at).toLocaleTimeString())),
    cell("Last range", last_range.file ?? "", element("span", { className: "hint" }, range)),
  );
}
