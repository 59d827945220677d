// The form that creates an infra-env.

import { api, Refusal } from "./api.js";
import { byId, element, finding, findingList, showProblem, tell } from "./dom.js";
import { findingsIn } from "./form-check.js";
import * as formHosts from "./form-hosts.js";
import { addRow, goInto, rowValues } from "./form-hosts.js";
import { keepNames } from "./host-names.js";
import { open, refresh } from "./infra-envs.js";

/** Fields whose text is copied into the request unchanged, unless it is empty. */
const TEXTS = [
  "name", "openshift_version", "cpu_architecture", "image_type", "pull_secret", "ssh_authorized_key",
  "additional_ntp_sources", "additional_trust_bundle", "ignition_config_override",
];
const PROXIES = ["http_proxy", "https_proxy", "no_proxy"];
/** The fields of the form, each with a pattern for the error messages about this field. */
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
/** The base images available for infra-envs. */
let osImages = [];

export function begin() {
  byId("new").addEventListener("click", () => (form.hidden ? unfold() : fold()));
  byId("cancel").addEventListener("click", () => fold());
  byId("add-argument").addEventListener("click", ({ target }) => goInto(addRow("argument", byId("arguments"), target)));
  formHosts.begin(show);
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
    show(refusal);
  }
}

function fold() {
  form.hidden = true;
  form.reset();
  byId("arguments").replaceChildren();
  formHosts.clear();
  show(null);
  byId("new").setAttribute("aria-expanded", "false");
  byId("new").focus();
}

/** Fills the selection of OpenShift versions, the newest first. */
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

/** Returns the body of the request, without empty fields. */
function body(networks) {
  const values = (names) => {
    const pairs = names.map((name) => [name, form.elements[name].value.trim()]);
    return Object.fromEntries(pairs.filter(([, value]) => value));
  };
  const params = { name: form.elements.name.value, pull_secret: form.elements.pull_secret.value, ...values(TEXTS) };
  const [proxy, kernelArguments] = [values(PROXIES), rowValues(byId("arguments"), ["value"])];
  if (Object.keys(proxy).length) params.proxy = proxy;
  // The form can only append arguments.
  if (kernelArguments.length) params.kernel_arguments = kernelArguments.map((row) => ({ operation: "append", ...row }));
  if (networks.length) params.static_network_config = networks;
  return params;
}

async function create() {
  const button = form.querySelector("button.primary");
  show(null);
  button.disabled = true;
  try {
    const hosts = formHosts.hosts();
    const findings = await findingsIn(hosts);
    const hasErrors = findings.some(({ severity }) => severity === "error");
    if (formHosts.hasRejected() || hasErrors) return showReasons(findings.map(ofDocument(hosts)), hasErrors);
    const infraEnv = await api.create(body(hosts.map(({ network }) => network)));
    if (hosts.length) keepNames(infraEnv.id, hosts.map(named));
    await refresh();
    fold();
    await open(infraEnv.id);
    tell(`${infraEnv.name} was created.`);
  } catch (refusal) {
    showRefusal(refusal);
  } finally {
    button.disabled = false;
  }
}

const named = ({ title, network }) => ({ name: title, macs: network.mac_interface_map.map(({ mac_address }) => mac_address) });

/** Shows why the form was not sent: errors in uploaded files, and findings in the networks. */
function showReasons(findings, hasErrors) {
  const files = "some network files cannot be used. Replace them, or remove them.";
  const networks = "the static networks have errors.";
  const reasons = formHosts.hasRejected() ? (hasErrors ? `${files} Also, ${networks}` : files) : networks;
  formHosts.showFileFindings(`Nothing was created: ${reasons}`, findings);
  byId("creation-problem").focus();
}

/** Shows why the service refused to create the infra-env. */
function showRefusal(refusal) {
  if (!refusal.findings?.length) return show(refusal);
  const findings = refusal.findings.map(ofDocument(formHosts.hosts()));
  show("Nothing was created: the static networks have errors.", findings);
  byId("creation-problem").focus();
}

/** Shows a title or an error next to the submit button, with findings and buttons below it. Or clears all of them. */
function show(problem, findings = [], buttons = []) {
  const place = byId("creation-problem");
  showProblem(place, problem);
  for (const field of form.elements) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
  if (!problem) return;
  if (findings.length) place.append(findingList(findings, (toItem) => toItem()));
  place.append(...buttons);
  if (!problem.message) return;
  mark(problem.message);
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

/** Returns a function that creates a finding about one of the hosts, with a button to go to its document. */
const ofDocument = (hosts) => ({ severity, message, host, path, line }) => () => {
  const { machine, title = `Host ${host + 1}`, network } = hosts[host] ?? {};
  const text = line === null ? undefined : network?.network_yaml.split("\n")[line - 1]?.trim();
  const item = finding(severity, message, [title, line === null ? "" : `line ${line}`, path].filter(Boolean).join(", "), text);
  if (!machine) return item;
  const document = machine.querySelector("textarea");
  if (severity === "error") document.setAttribute("aria-invalid", "true");
  const go = element("button", { type: "button", className: "small" }, "Go there");
  go.addEventListener("click", () => select(document, line));
  item.append(go);
  return item;
};

/** Selects a line in a text area. */
function select(area, line) {
  const before = area.value.split("\n").slice(0, (line ?? 1) - 1);
  const start = before.reduce((sum, text) => sum + text.length + 1, 0);
  const end = area.value.indexOf("\n", start);
  area.focus();
  area.setSelectionRange(start, line === null || end < 0 ? area.value.length : end);
}
