// Helpers that create and change elements. No function of this page parses a string as HTML.

/** Maximum number of findings to show. Users fix these before they need to see more. */
const MAX_FINDINGS = 100;

export const byId = (id) => document.getElementById(id);

/** Creates an element with properties and children. Strings become text nodes. */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

/** Returns a copy of a template and its slots by name. */
export function fromTemplate(id) {
  const copy = byId(id).content.firstElementChild.cloneNode(true);
  const slots = {};
  for (const slot of copy.querySelectorAll("[data-slot]")) slots[slot.dataset.slot] = slot;
  return [copy, slots];
}

/**
 * Updates the children of an element. Existing children stay and get the new attributes and texts, because the user may
 * be using them. Do not use this for buttons, because the listeners of the new elements are lost.
 */
export function renew(place, children) {
  children.forEach((wanted, index) => {
    const there = place.childNodes[index];
    if (!there) place.append(wanted);
    else if (there.isEqualNode(wanted)) return;
    else if (there.attributes && there.nodeName === wanted.nodeName) takeOver(there, wanted);
    else there.replaceWith(wanted);
  });
  while (place.childNodes.length > children.length) place.lastChild.remove();
}

function takeOver(there, wanted) {
  for (const { name } of [...there.attributes]) if (!wanted.hasAttribute(name)) there.removeAttribute(name);
  for (const { name, value } of wanted.attributes) there.setAttribute(name, value);
  renew(there, [...wanted.childNodes]);
}

/** Sets the children of a list. Children that stay are moved only if necessary, because they may have the focus. */
export function arrange(list, wanted) {
  const stays = new Set(wanted);
  for (const child of [...list.children]) if (!stays.has(child)) child.remove();
  wanted.forEach((child, index) => {
    if (list.children[index] !== child) list.insertBefore(child, list.children[index] ?? null);
  });
}

/** Announces a message to users of screen readers. */
export function tell(news) {
  const region = byId("news");
  // Screen readers do not announce a text that stays the same, so clear it first.
  region.textContent = "";
  requestAnimationFrame(() => (region.textContent = news));
}

/** Shows an error in `place`, or clears it. */
export function showProblem(place, problem) {
  place.hidden = !problem;
  place.replaceChildren(...(problem ? [problem.message ?? problem] : []));
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Formats a number of bytes with a unit. */
export function humanBytes(bytes) {
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** Creates a progress bar. Without a value, it is indeterminate. */
export function progressBar(label, value, max) {
  const properties = { max, "aria-label": label };
  if (value !== undefined) properties.value = value;
  return element("progress", properties);
}

export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Creates a table cell with the name of its column. Narrow screens show the name instead of the table head. */
export const cell = (column, ...children) => element("td", { "data-column": column }, ...children);

/** Creates a list of IP addresses. Lines may break inside IPv6 addresses, because they are too long for a table. */
export function addressList(addresses) {
  const parts = addresses.join(", ").split(":");
  return element("span", {}, ...parts.flatMap((part, index) => (index ? [element("wbr"), `:${part}`] : [part])));
}

/** Creates a list of names with their values. */
export const definitions = (pairs) => element("dl", { className: "about" }, ...pairs.map(definition));

const definition = ([name, ...value]) => element("div", {}, element("dt", {}, name), element("dd", {}, ...value));

/** Creates a badge for a state. */
export const badge = (state, text = state) => element("span", { className: `badge ${state}` }, text);

/** Creates a list item for a finding. `text` is the line in question. */
export function finding(severity, message, place, text) {
  return element("li", {},
    badge(severity), element("span", {}, message),
    element("span", { className: "hint" }, place),
    text ? element("code", {}, text) : null);
}

/** Creates a list of the first findings, with the number of the remaining ones. */
export function findingList(findings, toItem) {
  const more = findings.length - MAX_FINDINGS;
  const items = findings.slice(0, MAX_FINDINGS).map(toItem);
  return element("ul", { className: "findings" }, ...items, more > 0 ? element("li", {}, `and ${more} more`) : null);
}

/** Creates a button that copies a text. `name` describes the text. */
export function copyButton(text, name) {
  const button = element("button", { type: "button", className: "small", "aria-label": `Copy ${name}` }, "Copy");
  button.addEventListener("click", async () => {
    const word = (await copied(text)) ? "Copied" : "Not copied";
    button.textContent = word;
    tell(`${word} ${name}`);
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}

async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  // Over plain HTTP from another machine, browsers deny access to the clipboard, but they can copy the selection.
  const area = element("textarea", { value: text, className: "unseen" });
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return done;
}
