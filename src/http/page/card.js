// The card of an infra-env. An open card shows files, findings and readers, and refreshes the readers.

import { api } from "./api.js";
import { hasFailed } from "./base-images.js";
import {
  badge, cell, copyButton, definitions, element, finding, findingList, fromTemplate, humanBytes, plural, progressBar, renew,
  showProblem,
} from "./dom.js";
import { namesOf } from "./host-names.js";
import { Hosts } from "./hosts.js";
import { timeElement } from "./time.js";

const USES = {
  "full.iso": "Includes the root file system",
  "minimal.iso": "Downloads the root file system",
  "script.ipxe": "For iPXE: boots the files below",
  initrd: "With Ignition config and static networks",
  rootfs: "Root file system",
};

const WAITING = "The base image is not ready yet. Sizes appear as soon as it is; downloads wait for it.";
const FAILED = "The base image is not available: see Base images below. The service retries; downloads wait for it.";

/** The severities of findings, the worst first, with the nouns for their counts. */
const SEVERITIES = [["error", "error"], ["warning", "warning"], ["info", "note"]];

/** The files available for a single host. */
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
    this.hosts = new Hosts(this.slots);
    this.head(infraEnv);
    // A list may have hundreds of cards: request the findings and hosts only for cards on the screen.
    new IntersectionObserver((entries) => {
      this.isOnScreen = entries.at(-1).isIntersecting;
      this.countFindings();
      this.countHosts();
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
      // Ignore the error, which the open card shows. The next call tries again.
      this.countedAt = undefined;
    }
  }

  /** Shows the number of hosts by status on a closed card. */
  async countHosts() {
    if (!this.isOpen && this.isOnScreen) await this.hosts.countIfOutdated(this.infraEnv);
  }

  showCounts(findings) {
    const counts = SEVERITIES.map(([severity, noun]) => [severity, noun, findings.filter((it) => it.severity === severity).length]);
    const badges = counts.filter(([, , count]) => count > 0).map(([severity, noun, count]) => badge(severity, plural(count, noun)));
    this.slots.counts.replaceChildren(...badges);
  }

  async load() {
    this.slots.about.replaceChildren(about(this.infraEnv));
    this.machines = machinesOf(this.infraEnv);
    this.offerMachines();
    await this.attempt(async () => {
      await Promise.all([this.listFiles(), this.listFindings(), this.hosts.list(this.infraEnv), this.listReaders()]);
    });
  }

  async follow() {
    if (!this.root.isConnected) return;
    if (!this.isOpen) return this.countHosts();
    await this.attempt(async () => {
      // Once the list of files is complete, do not replace it: its links and buttons may be in use.
      if (!this.isReady) await this.listFiles();
      await this.hosts.follow(this.infraEnv);
      await this.listReaders();
    });
  }

  async attempt(work) {
    const problem = await work().then(() => null, (problem) => problem);
    // Show an error once, not every second.
    if (problem?.message !== this.said) showProblem(this.slots.problem, problem);
    this.said = problem?.message;
  }

  /** Shows a selection of the hosts with a static network. The images for one host contain only its network. */
  offerMachines() {
    const { choice, machine } = this.slots;
    const chosen = machine.value;
    const offered = this.machines.filter(({ addresses }) => addresses.length)
      .sort((one, other) => (one.position === other.position ? 0 : one.position - other.position));
    const options = offered.map(({ name, addresses }) =>
      element("option", { value: addresses[0] }, [name, addresses.join(", ")].filter(Boolean).join(" · ")));
    machine.replaceChildren(element("option", { value: "" }, "all machines"), ...options);
    machine.value = offered.some(({ addresses: [first] }) => first === chosen) ? chosen : "";
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

/** Returns the hosts with static networks, in their stored order, with the names that this browser has stored. */
function machinesOf({ id, static_network_config }) {
  const networks = JSON.parse(static_network_config || "[]");
  const names = namesOf(id, networks);
  const addressesOf = ({ mac_interface_map: map }) => (map ?? []).map(({ mac_address }) => mac_address);
  return networks.map((network, index) => ({ ...names[index], addresses: addressesOf(network), text: network.network_yaml }));
}

function about({ id, created_at, pull_secret_set, ssh_authorized_key, kernel_arguments }) {
  return definitions([
    ["Id", element("code", {}, id), " ", copyButton(id, "the id")],
    ["Created", timeElement(created_at)],
    ["Pull secret", pull_secret_set ? "set" : "none"],
    ["SSH keys", `${(ssh_authorized_key ?? "").split("\n").filter(Boolean).length}`],
    ["Kernel arguments", JSON.parse(kernel_arguments || "[]").map(argument).join(", ") || "none"],
  ]);
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

/** Creates a finding about a host's network. MAC addresses identify the host, because the API stores no names. */
function ofMachine({ severity, message, host, path, line }, machines) {
  const { name, addresses = [], text = "" } = machines[host] ?? {};
  const about = [name || `Host ${host + 1}`, addresses.length ? ` (${addresses.join(", ")})` : ""];
  const place = [...about, line === null ? "" : `, line ${line}`, path && `, ${path}`];
  return finding(severity, message, place.join(""), line === null ? undefined : text.split("\n")[line - 1]?.trim());
}

const ofOverride = ({ severity, message, pointer, line }) =>
  finding(severity, message, `Ignition override${line ? `, line ${line}` : ""}${pointer ? `, ${pointer}` : ""}`);

function readerRow({ client, machine, file, state, size, percent, bytes_sent, answers, last_range, last_at }) {
  const label = `Progress of ${client} reading ${file}`;
  const range = `${last_range.first.toLocaleString("en")}–${last_range.last.toLocaleString("en")}`;
  return element("tr", {},
    element("th", { scope: "row" }, client, machine ? element("span", { className: "hint" }, machine) : null),
    cell("File", file, element("span", { className: "hint" }, humanBytes(size))),
    cell("Read", element("span", { className: "meter" }, progressBar(label, percent, 100), element("span", { className: "percent" }, `${percent} %`)),
      element("span", { className: "hint" }, `${humanBytes(bytes_sent)} in ${plural(answers, "response")}`)),
    cell("State", badge(state), element("span", { className: "hint" }, timeElement(last_at))),
    cell("Last range", last_range.file ?? "", element("span", { className: "hint" }, range)),
  );
}
