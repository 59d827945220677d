// The form that creates an infra-env.

import { api, Refusal } from "./api.js";
import { byId, element, finding, findingList, fromTemplate, showProblem, tell } from "./dom.js";
import { open, refresh } from "./infra-envs.js";

/** Fields that are copied into the request as typed, unless they are empty. */
const TEXTS = [
  "name", "openshift_version", "cpu_architecture", "image_type", "pull_secret", "ssh_authorized_key",
  "additional_ntp_sources", "additional_trust_bundle", "ignition_config_override",
];
const PROXIES = ["http_proxy", "https_proxy", "no_proxy"];
/** Patterns that find the field in the text of an error. */
const ABOUT = {
  pull_secret: /pull.secret/i,
  ssh_authorized_key: /ssh.(authorized.)?key/i,
  no_proxy: /no.proxy/i,
  https_proxy: /https.proxy/i,
  http_proxy: /http.proxy/i,
  additional_ntp_sources: /ntp/i,
  additional_trust_bundle: /trust.bundle|certificate/i,
  ignition_config_override: /ignition/i,
  openshift_version: /version/i,
};

const form = byId("creation");
/** The errors in uploaded files, by file name. The form is not sent until these files are replaced or removed. */
const rejected = new Map();
/** The base images that infra-envs can be created for. */
let osImages = [];

export function begin() {
  byId("new").addEventListener("click", () => (form.hidden ? unfold() : fold()));
  byId("cancel").addEventListener("click", () => fold());
  byId("add-argument").addEventListener("click", ({ target }) => goInto(addRow("argument", byId("arguments"), target)));
  byId("add-machine").addEventListener("click", () => goInto(addMachines([{}])));
  byId("nmstate").addEventListener("change", readFiles);
  form.elements.openshift_version.addEventListener("change", offerArchitectures);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    create();
  });
}

async function unfold() {
  form.hidden = false;
  byId("new").setAttribute("aria-expanded", "true");
  form.elements.name.focus();
  try {
    osImages = (await api.osImages()).filter((image) => image.type !== "disconnected-iso");
    offerVersions();
    if (osImages.length === 0) throw new Refusal(0, "This service has no base image, so no infra-env can be created.");
  } catch (refusal) {
    showRefusal(refusal);
  }
}

function fold() {
  form.hidden = true;
  form.reset();
  byId("arguments").replaceChildren();
  byId("machines").replaceChildren();
  rejected.clear();
  showRefusal(null);
  byId("new").setAttribute("aria-expanded", "false");
  byId("new").focus();
}

/** Offers the OpenShift versions, the newest first. */
function offerVersions() {
  const versions = new Set(osImages.map((image) => image.openshift_version));
  const sorted = [...versions].sort((one, other) => other.localeCompare(one, "en", { numeric: true }));
  offer("openshift_version", sorted);
  offerArchitectures();
}

function offerArchitectures() {
  const version = form.elements.openshift_version.value;
  const images = osImages.filter((image) => image.openshift_version === version);
  offer("cpu_architecture", images.map((image) => image.cpu_architecture));
}

function offer(name, values) {
  form.elements[name].replaceChildren(...values.map((value) => element("option", { value }, value)));
}

const goInto = (part) => part?.querySelector("input, textarea").focus();

/** Adds a removable row. When it is removed, `adder` gets the focus. */
function addRow(template, list, adder, values = {}) {
  const [row, slots] = fromTemplate(template);
  for (const [name, value] of Object.entries(values)) row.querySelector(`[name=${name}]`).value = value;
  slots.remove.addEventListener("click", () => {
    row.remove();
    adder.focus();
  });
  list.append(row);
  return row;
}

/** Adds hosts to the form, and returns the first. */
function addMachines(networks) {
  const [first] = networks.map(addMachine);
  countMachines();
  return first;
}

function addMachine({ file, title, network_yaml = "", mac_interface_map = [{}] }) {
  const [machine, slots] = fromTemplate("machine");
  machine.dataset.file = file ?? "";
  machine.dataset.title = title ?? "";
  machine.querySelector("textarea").value = network_yaml;
  const addMac = (map) => addRow("mac", slots.macs, slots.add, map);
  byId("machines").append(machine);
  mac_interface_map.forEach(addMac);
  slots.add.addEventListener("click", () => goInto(addMac({})));
  slots.remove.addEventListener("click", () => {
    machine.remove();
    countMachines();
    byId("add-machine").focus();
  });
  return machine;
}

const machines = () => [...byId("machines").children];

function countMachines() {
  machines().forEach((machine, index) => {
    const title = machine.dataset.title;
    machine.querySelector("legend").textContent = `Host ${index + 1}${title ? `: ${title}` : ""}`;
  });
}

/** Adds a host for each document or manifest in files. The service parses them, so the page needs no YAML parser. */
async function readFiles({ target }) {
  const files = [...target.files];
  target.value = "";
  showRefusal(null);
  try {
    const texts = await Promise.all(files.map((file) => file.text()));
    const { hosts, findings } = await api.readNetworkFiles(files.map(({ name }, index) => ({ name, text: texts[index] })));
    const names = files.map((file) => file.name);
    names.filter((name) => rejected.has(name)).forEach(removeFile);
    // Hosts in a list are numbered by their position in the form.
    const first = addMachines(hosts.map((host) => ({ ...host, file: names[host.file], title: withoutIndex(host.name) })));
    for (const name of names) {
      const errors = findings.filter(({ severity, file }) => severity === "error" && withoutIndex(file) === name);
      if (errors.length) rejected.set(name, errors);
    }
    emptyField(first)?.focus();
    const others = findings.filter(({ severity }) => severity !== "error");
    if (rejected.size || others.length) showFileFindings("Some content of the files cannot be used.", others);
    const count = machines().length;
    tell(`${names.join(", ")}: ${count} host${count === 1 ? "" : "s"} in total.`);
  } catch (refusal) {
    showRefusal(refusal);
  }
}

const withoutIndex = (name) => name.replace(/\[\d+\]$/, "");

/** Removes an uploaded file with its hosts. */
function removeFile(name) {
  machines().filter((machine) => machine.dataset.file === name).forEach((machine) => machine.remove());
  rejected.delete(name);
  countMachines();
}

/** Returns the field that gets the focus after an upload: the first missing MAC address, else the first field. */
function emptyField(machine) {
  const fields = [...(machine?.querySelectorAll("input") ?? [])];
  return fields.find((field) => !field.value) ?? fields[0];
}

/** Shows the findings about uploaded files, with a button to remove each rejected file. */
function showFileFindings(title, others = []) {
  const place = byId("creation-problem");
  showProblem(place, title);
  const findings = [...rejected.values(), others].flat();
  place.append(findingList(findings, ({ severity, message, file, line, path }) =>
    finding(severity, message, [file, line ? `line ${line}` : "", path].filter(Boolean).join(", "))));
  place.append(...[...rejected.keys()].map((name) => {
    const button = element("button", { type: "button", className: "small" }, `Remove ${name}`);
    button.addEventListener("click", () => {
      removeFile(name);
      if (rejected.size) showFileFindings(title);
      else showRefusal(null);
      tell(`${name} was removed.`);
      byId("nmstate").focus();
    });
    return button;
  }));
}

/** Rejects invalid maps with a finding for each field: the service would report only the host. */
function checkMaps(networks) {
  const findings = networks.flatMap(({ mac_interface_map: map }, host) => (
    faultsOf(map).map(([path, message]) => (
      { severity: "error", message, host, line: null, path: `mac_interface_map${path}` }))));
  if (findings.length) throw new Refusal(0, "", findings);
}

/** Returns the errors of a map. */
function faultsOf(map) {
  if (!map.length) return [["", "the host has no MAC address, so no machine can match it"]];
  return map.flatMap(({ mac_address, logical_nic_name: name }, index) => {
    const isFirst = (key, value) => map.findIndex((entry) => entry[key].toLowerCase() === value.toLowerCase()) === index;
    const faults = [];
    if (!mac_address) faults.push([`[${index}].mac_address`, `${name || "the interface"} has no MAC address`]);
    else if (!isFirst("mac_address", mac_address)) faults.push([`[${index}].mac_address`, `${mac_address} is in the map twice`]);
    if (!isFirst("logical_nic_name", name)) faults.push([`[${index}].logical_nic_name`, `${name} is in the map twice`]);
    return faults;
  });
}

/** Returns the body of the request, without empty fields. */
function body() {
  const written = (names) => {
    const pairs = names.map((name) => [name, form.elements[name].value.trim()]);
    return Object.fromEntries(pairs.filter(([, value]) => value));
  };
  const rows = (list, names) => [...list.children]
    .map((row) => Object.fromEntries(names.map((name) => [name, row.querySelector(`[name=${name}]`).value.trim()])));
  const params = { name: form.elements.name.value, pull_secret: form.elements.pull_secret.value, ...written(TEXTS) };
  const [proxy, kernelArguments] = [written(PROXIES), rows(byId("arguments"), ["value"])];
  if (Object.keys(proxy).length) params.proxy = proxy;
  // The form only appends arguments.
  if (kernelArguments.length) params.kernel_arguments = kernelArguments.map((row) => ({ operation: "append", ...row }));
  if (machines().length) {
    params.static_network_config = machines().map((machine) => ({
      network_yaml: machine.querySelector("textarea").value,
      mac_interface_map: rows(machine.querySelector("ul"), ["mac_address", "logical_nic_name"]),
    }));
  }
  return params;
}

async function create() {
  const button = form.querySelector("button.primary");
  showRefusal(null);
  if (rejected.size) {
    showFileFindings("Nothing was created: some network files cannot be used. Replace them, or remove them.");
    byId("creation-problem").focus();
    return;
  }
  button.disabled = true;
  try {
    const params = body();
    if (params.static_network_config) checkMaps(params.static_network_config);
    const made = await api.create(params);
    await refresh();
    fold();
    await open(made.id);
    tell(`${made.name} was created.`);
  } catch (refusal) {
    showRefusal(refusal);
  } finally {
    button.disabled = false;
  }
}

/** Shows an error next to the submit button, with a button to go to each finding in a document. */
function showRefusal(refusal) {
  const place = byId("creation-problem");
  showProblem(place, refusal && (refusal.findings.length ? "Nothing was created: the static networks have errors." : refusal));
  for (const field of form.elements) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
  if (!refusal) return;
  if (refusal.findings.length) {
    place.append(findingList(refusal.findings, ofDocument));
  } else {
    mark(refusal.message);
  }
  place.focus();
}

/** Marks the field that an error is about. */
function mark(message) {
  const name = Object.keys(ABOUT).find((name) => ABOUT[name].test(message));
  if (!name) return;
  const field = form.elements[name];
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", "creation-problem");
  const folded = field.closest("details");
  if (folded) folded.open = true;
}

function ofDocument({ severity, message, host, path, line }) {
  const machine = machines()[host];
  const document = machine?.querySelector("textarea");
  const title = machine?.querySelector("legend").textContent ?? `Host ${host + 1}`;
  const text = line === null ? undefined : document?.value.split("\n")[line - 1]?.trim();
  const item = finding(severity, message, [title, line === null ? "" : `line ${line}`, path].filter(Boolean).join(", "), text);
  if (!document) return item;
  document.setAttribute("aria-invalid", "true");
  const show = element("button", { type: "button", className: "small" }, "Go there");
  show.addEventListener("click", () => select(document, line));
  item.append(show);
  return item;
}

/** Selects a line in a text area. */
function select(area, line) {
  const before = area.value.split("\n").slice(0, (line ?? 1) - 1);
  const start = before.reduce((sum, text) => sum + text.length + 1, 0);
  const end = area.value.indexOf("\n", start);
  area.focus();
  area.setSelectionRange(start, line === null || end < 0 ? area.value.length : end);
}
