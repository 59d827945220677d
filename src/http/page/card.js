// An infra-env. Once it is open, its files, findings and readers are shown, and the latter move.

import { api } from "./api.js";
import { badge, copyButton, element, finding, findingList, fromTemplate, humanBytes, progressBar, renew, showProblem } from "./dom.js";
import { hasFailed } from "./live-images.js";

const USES = {
  "full.iso": "With the root file system",
  "minimal.iso": "Fetches the root file system",
  "script.ipxe": "For iPXE: boots the files below",
  initrd: "With config and networks",
  rootfs: "Root file system",
};

const WAITING = "The base image is not ready yet. Sizes appear once it is, and downloads wait for it.";
const FAILED = "The base image is not available: see Base images below. The service tries again, and downloads wait for it.";

/** Severities of findings, the worst first, and the nouns for their number. */
const SEVERITIES = [["error", "error"], ["warning", "warning"], ["info", "note"]];

/** What there is for a machine alone. */
const OF_MACHINES = ["full.iso", "minimal.iso", "initrd"];

export class Card {
  /** A card that is closed, with what is done when its infra-env shall go. */
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
    // A list may have hundreds of cards: only those on the screen are checked.
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

  /** Takes over how the infra-env is now. */
  async update(infraEnv) {
    this.head(infraEnv);
    if (this.isOpen) await this.load();
    else await this.countFindings();
  }

  /** Shows on a closed card how many findings there are. */
  async countFindings() {
    const { updated_at, static_network_config, ignition_config_override } = this.infraEnv;
    if (this.isOpen || !this.isOnScreen || this.countedAt === updated_at) return;
    this.countedAt = updated_at;
    if (!ignition_config_override && JSON.parse(static_network_config || "[]").length === 0) return this.showCounts([]);
    try {
      const { network, ignition } = await api.preflight(this.infraEnv);
      this.showCounts([...network, ...ignition]);
    } catch {
      // The open card says what went wrong.
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
      await Promise.all([this.listFiles(), this.listFindings(), this.listReaders()]);
    });
  }

  async follow() {
    if (!this.isOpen || !this.root.isConnected) return;
    await this.attempt(async () => {
      // What has links and buttons is left alone once it is complete.
      if (!this.isReady) await this.listFiles();
      await this.listReaders();
    });
  }

  async attempt(work) {
    const problem = await work().then(() => null, (problem) => problem);
    // Said once, not each second.
    if (problem?.message !== this.said) showProblem(this.slots.problem, problem);
    this.said = problem?.message;
  }

  /** Each machine that has a static network has images with no other network in them. */
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

  async listReaders() {
    const { readers } = await api.bootTrace(this.infraEnv);
    this.slots.nobody.hidden = readers.length > 0;
    this.slots.trace.hidden = readers.length === 0;
    renew(this.slots.readers, readers.map(readerRow));
  }
}

/** The files as people look for them. */
function inOrder({ files, script_url }) {
  const isImage = ({ name }) => name.endsWith(".iso");
  const script = { name: "script.ipxe", url: script_url };
  return [...files.filter(isImage), script, ...files.filter((file) => !isImage(file))];
}

const addressesOf = (machine) => (machine?.mac_interface_map ?? []).map((map) => map.mac_address);

const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** A cell that knows what column it is in, for narrow screens, where columns are not seen. */
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

/** A finding in the network of a machine: machines are named by their addresses, as their files are not kept. */
function ofMachine({ severity, message, host, path, line }, machines) {
  const machine = machines[host];
  const addresses = addressesOf(machine).join(", ");
  const text = line === null ? undefined : machine?.network_yaml.split("\n")[line - 1]?.trim();
  const place = [`Host ${host + 1}`, addresses && ` (${addresses})`, line === null ? "" : `, line ${line}`, path && `, ${path}`];
  return finding(severity, message, place.join(""), text);
}

const ofOverride = ({ severity, message, pointer, line }) =>
  finding(severity, message, `Ignition override${line ? `, line ${line}` : ""}${pointer ? `, ${pointer}` : ""}`);

function readerRow({ client, machine, file, state, size, percent, bytes_sent, answers, last_range, last_at }) {
  const label = `How much of ${file} ${client} has read`;
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
