// The details of a host: its hardware, disks, network interfaces and validations.

import { addressList, badge, cell, definitions, element, humanBytes, plural } from "./dom.js";

/** The statuses of validations, the most important first. */
const STATUSES = ["failure", "error", "pending", "success"];
/** The values of a BMC address if the host has no BMC. */
const NO_BMC = ["", "0.0.0.0", "::/0"];

/** Creates the details. They contain no controls, so `renew` can update them in place. */
export function hostDetails({ inventory, validations_info }) {
  const machine = JSON.parse(inventory || "null");
  const validations = Object.entries(JSON.parse(validations_info || "{}"))
    .flatMap(([category, list]) => list.map((validation) => ({ category, ...validation })));
  const ofMachine = machine
    ? [hardware(machine), ...disks(machine.disks ?? []), ...interfaces(machine.interfaces ?? [])]
    : [note("The host has not reported its hardware yet.")];
  return [...ofMachine, ...validationList(validations)];
}

const heading = (text) => element("h5", {}, text);
const note = (text) => element("p", { className: "empty" }, text);
const hint = (text) => element("span", { className: "hint" }, text);

const joined = (separator, ...parts) => parts.filter(Boolean).join(separator);

function hardware({ cpu, memory, system_vendor: vendor, bmc_address, bmc_v6address }) {
  const bmc = [bmc_address, bmc_v6address].filter((address) => address && !NO_BMC.includes(address));
  const product = joined(" ", vendor?.manufacturer, vendor?.product_name, vendor?.virtual && "(virtual)");
  return definitions([
    ["CPU", joined(", ", cpu?.count && plural(cpu.count, "CPU"), cpu?.model_name, cpu?.architecture)],
    ["Memory", memory?.physical_bytes ? humanBytes(memory.physical_bytes) : ""],
    ["Vendor", product],
    ["Serial number", vendor?.serial_number],
    ["BMC address", bmc.join(", ")],
  ].map(([name, value]) => [name, value || "unknown"]));
}

function table(caption, columns, rows) {
  const heads = columns.map((column) => element("th", { scope: "col" }, column));
  return element("table", { "aria-label": caption }, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
}

const row = (first, ...cells) => element("tr", {}, element("th", { scope: "row" }, ...first), ...cells);

function disks(list) {
  if (!list.length) return [heading("Disks"), note("The host has no disk.")];
  const columns = ["Disk", "Type", "Size", "Model", "Serial number", "Installation"];
  return [heading("Disks"), table("Disks", columns, list.map(diskRow))];
}

function diskRow({ name, by_id, by_path, drive_type, size_bytes, vendor, model, serial, installation_eligibility }) {
  const { eligible, not_eligible_reasons: reasons } = installation_eligibility ?? {};
  const state = eligible ? badge("success", "eligible") : badge("warning", "not eligible");
  return row([name, hint(by_id || by_path || "")],
    cell("Type", drive_type),
    // Vendors and the minimum size of disks use decimal units.
    cell("Size", `${((size_bytes ?? 0) / 1e9).toLocaleString("en", { maximumFractionDigits: 1 })} GB`),
    cell("Model", joined(" ", vendor, model)),
    cell("Serial number", serial),
    cell("Installation", state, ...(reasons ?? []).map((reason) => hint(reason))));
}

function interfaces(list) {
  if (!list.length) return [heading("Network interfaces"), note("The host has no network interface.")];
  const columns = ["Interface", "MAC address", "Addresses", "Speed", "Link"];
  return [heading("Network interfaces"), table("Network interfaces", columns, list.map(interfaceRow))];
}

function interfaceRow({ name, mac_address, ipv4_addresses, ipv6_addresses, speed_mbps, has_carrier, vendor, product }) {
  return row([name, hint(joined(" ", vendor, product))],
    cell("MAC address", mac_address),
    cell("Addresses", addressList([...(ipv4_addresses ?? []), ...(ipv6_addresses ?? [])])),
    cell("Speed", speed_mbps > 0 ? `${speed_mbps.toLocaleString("en")} Mb/s` : ""),
    cell("Link", has_carrier ? badge("success", "up") : badge("down")));
}

function validationList(validations) {
  if (!validations.length) return [heading("Validations"), note("No validation was run yet.")];
  const rank = ({ status }) => STATUSES.indexOf(status);
  const items = validations.sort((one, other) => rank(one) - rank(other)).map(({ category, id, status, message }) =>
    element("li", {}, badge(status), element("span", {}, message), hint(`${category}: ${id}`)));
  return [heading("Validations"), element("ul", { className: "findings", role: "list" }, ...items)];
}
