// The hosts with static networks in the form that creates an infra-env. Uploaded files can fill their fields.

import { api } from "./api.js";
import { byId, element, finding, fromTemplate, plural, tell } from "./dom.js";

/** Detects a host manifest. If one is pasted into the field for a document, it replaces the host. */
const MANIFEST = /^\s*["']?kind["']?\s*:\s*["']?NMStateConfig\b/m;
const PASTED = "pasted text";

/** The errors in uploaded files, by file name. The form is not sent until these files are replaced or removed. */
const rejected = new Map();
/** Shows a title or an error, with findings and buttons below it. Or clears all of them. */
let show;

/** Adds the event listeners. */
export function begin(showFindings) {
  show = showFindings;
  byId("add-machine").addEventListener("click", () => goInto(addMachines([{}])));
  byId("nmstate").addEventListener("change", ({ target }) => {
    const files = [...target.files];
    target.value = "";
    readFiles(files);
  });
  const area = byId("static-networks");
  area.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
  area.addEventListener("drop", (event) => {
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    readFiles([...event.dataTransfer.files]);
  });
  byId("machines").addEventListener("input", readPasted);
}

/** Removes all hosts. */
export function clear() {
  byId("machines").replaceChildren();
  rejected.clear();
}

export const goInto = (part) => part?.querySelector("input, textarea").focus();

/** Adds a row that the user can remove. The button `adder` then gets the focus. */
export function addRow(template, list, adder, values = {}) {
  const [row, slots] = fromTemplate(template);
  for (const [name, value] of Object.entries(values)) row.querySelector(`[name=${name}]`).value = value;
  slots.remove.addEventListener("click", () => {
    row.remove();
    adder.focus();
  });
  list.append(row);
  return row;
}

/** Returns the values of the fields with these names in each row of a list. */
export const rowValues = (list, names) => [...list.children]
  .map((row) => Object.fromEntries(names.map((name) => [name, row.querySelector(`[name=${name}]`).value.trim()])));

/** Adds hosts before `next`, or at the end. Returns the first one. */
function addMachines(networks, next = null) {
  const [first] = networks.map((network) => addMachine(network, next));
  numberMachines();
  return first;
}

function addMachine({ file, title, network_yaml = "", mac_interface_map = [{}] }, next) {
  const [machine, slots] = fromTemplate("machine");
  machine.dataset.file = file ?? "";
  machine.dataset.title = title ?? "";
  machine.querySelector("textarea").value = network_yaml;
  const addMac = (map) => addRow("mac", slots.macs, slots.add, map);
  byId("machines").insertBefore(machine, next);
  mac_interface_map.forEach(addMac);
  slots.add.addEventListener("click", () => goInto(addMac({})));
  slots.remove.addEventListener("click", () => {
    machine.remove();
    numberMachines();
    byId("add-machine").focus();
  });
  return machine;
}

const machines = () => [...byId("machines").children];

export const titleOf = (machine) => machine.querySelector("legend").textContent;

function numberMachines() {
  machines().forEach((machine, index) => {
    const title = machine.dataset.title;
    machine.querySelector("legend").textContent = `Host ${index + 1}${title ? `: ${title}` : ""}`;
  });
}

/** Returns the hosts: their fields, titles and networks as in the API. */
export const hosts = () => machines().map((machine) => ({
  machine,
  title: titleOf(machine),
  network: {
    network_yaml: machine.querySelector("textarea").value,
    mac_interface_map: rowValues(machine.querySelector("ul"), ["mac_address", "logical_nic_name"]),
  },
}));

/** Adds a host for each document or manifest in the files. */
async function readFiles(files) {
  const texts = await Promise.all(files.map((file) => file.text()));
  await addFiles(files.map(({ name }, index) => ({ name, text: texts[index] })));
}

/** Replaces a host if manifests were pasted or dropped into the field for its document. */
async function readPasted({ inputType, target }) {
  const isInserted = inputType === "insertFromPaste" || inputType === "insertFromDrop";
  if (!isInserted || target.name !== "network_yaml" || !MANIFEST.test(target.value)) return;
  await addFiles([{ name: PASTED, text: target.value }], target.closest("fieldset"));
}

/**
 * Adds the hosts of files. They replace the host into whose field they were pasted, or the hosts of rejected files with
 * the same names. The service parses the files, so the page needs no YAML parser.
 */
async function addFiles(files, pasted) {
  show(null);
  try {
    const { hosts, findings } = await api.readNetworkFiles(files);
    const names = files.map(({ name }) => name);
    if (!pasted || hosts.length) {
      const isReplaced = ({ dataset: { file } }) => names.includes(file) && rejected.has(file);
      const old = pasted ? [pasted] : machines().filter(isReplaced);
      // In lists, the number of a host is its position in the form.
      const networks = hosts.map((host) => ({ ...host, file: names[host.file], title: withoutIndex(host.name) }));
      const first = addMachines(networks, old[0]);
      for (const machine of old) machine.remove();
      numberMachines();
      for (const name of names) noteErrors(name, findings);
      emptyField(first)?.focus();
    }
    const others = findings.filter(({ severity, file }) => severity !== "error" || !rejected.has(withoutIndex(file)));
    if (rejected.size || others.length) showFileFindings("Some content of the files cannot be used.", others.map(fileFinding));
    tell(`${names.join(", ")}: ${plural(machines().length, "host")} in total.`);
  } catch (refusal) {
    show(refusal);
  }
}

const withoutIndex = (name) => name.replace(/\[\d+\]$/, "");

function noteErrors(name, findings) {
  const errors = findings.filter(({ severity, file }) => severity === "error" && withoutIndex(file) === name);
  if (errors.length) rejected.set(name, errors);
  else rejected.delete(name);
}

/** Returns the field to focus after an upload: the first missing MAC address, or the first field. */
function emptyField(machine) {
  const fields = [...(machine?.querySelectorAll("input") ?? [])];
  return fields.find((field) => !field.value) ?? fields[0];
}

/** Returns `true` if files were rejected. */
export const hasRejected = () => rejected.size > 0;

/** Shows the errors in rejected files and other findings, with a button to remove each of these files. */
export function showFileFindings(title, others = []) {
  show(title, [...[...rejected.values()].flat().map(fileFinding), ...others], [...rejected.keys()].map((name) => {
    const button = element("button", { type: "button", className: "small" }, `Remove ${name}`);
    button.addEventListener("click", () => {
      removeFile(name);
      if (rejected.size) showFileFindings(title);
      else show(null);
      tell(`${name} was removed.`);
      byId("nmstate").focus();
    });
    return button;
  }));
}

const fileFinding = ({ severity, message, file, line, path }) => () =>
  finding(severity, message, [file, line ? `line ${line}` : "", path].filter(Boolean).join(", "));

/** Removes an uploaded file with its hosts. */
function removeFile(name) {
  machines().filter((machine) => machine.dataset.file === name).forEach((machine) => machine.remove());
  rejected.delete(name);
  numberMachines();
}
