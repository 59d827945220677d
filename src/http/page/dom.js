// What is put into the document is text. Nothing here, and nothing that uses it, reads a string as HTML.

/** Whoever has more of them repairs these first. */
const MOST_FINDINGS = 100;

/** The element with an id. */
export const byId = (id) => document.getElementById(id);

/** A new element with properties and children; texts become text nodes. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

/** A copy of a template, and its slots by name. */
export function fromTemplate(id) {
  const copy = byId(id).content.firstElementChild.cloneNode(true);
  const slots = {};
  for (const slot of copy.querySelectorAll("[data-slot]")) slots[slot.dataset.slot] = slot;
  return [copy, slots];
}

/**
 * Gives an element the children that were made for it. Those that are there stay, and say what the new ones say:
 * somebody may be at them. Not for buttons: what a new one would do is not taken over.
 */
export function renew(place, made) {
  made.forEach((wanted, index) => {
    const there = place.childNodes[index];
    if (!there) place.append(wanted);
    else if (there.isEqualNode(wanted)) return;
    else if (there.attributes && there.nodeName === wanted.nodeName) takeOver(there, wanted);
    else there.replaceWith(wanted);
  });
  while (place.childNodes.length > made.length) place.lastChild.remove();
}

function takeOver(there, wanted) {
  for (const { name } of [...there.attributes]) if (!wanted.hasAttribute(name)) there.removeAttribute(name);
  for (const { name, value } of wanted.attributes) there.setAttribute(name, value);
  renew(there, [...wanted.childNodes]);
}

/** Tells whoever listens to the page rather than looks at it. */
export function tell(news) {
  const region = byId("news");
  // A region that says the same again says nothing.
  region.textContent = "";
  requestAnimationFrame(() => (region.textContent = news));
}

/** Shows what went wrong in the place for it, or takes that away. */
export function showProblem(place, problem) {
  place.hidden = !problem;
  place.replaceChildren(...(problem ? [problem.message ?? problem] : []));
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** A number of bytes as people read it. */
export function humanBytes(bytes) {
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** A bar that says how much of something there is. */
export function progressBar(label, value, max) {
  const properties = { max, "aria-label": label };
  if (value !== undefined) properties.value = value;
  return element("progress", properties);
}

/** A state in a word, or in another text. */
export const badge = (state, text = state) => element("span", { className: `badge ${state}` }, text);

/** A finding, with the line that it is about. */
export function finding(severity, message, place, text) {
  return element("li", {},
    badge(severity), element("span", {}, message),
    element("span", { className: "hint" }, place),
    text ? element("code", {}, text) : null);
}

/** The first findings of a list, and how many more there are. */
export function findingList(findings, toItem) {
  const more = findings.length - MOST_FINDINGS;
  const items = findings.slice(0, MOST_FINDINGS).map(toItem);
  return element("ul", { className: "findings" }, ...items, more > 0 ? element("li", {}, `and ${more} more`) : null);
}

/** A button that copies a text, which is called something. */
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
  // Over plain HTTP from another machine, browsers have no clipboard for pages; they copy what is selected.
  const area = element("textarea", { value: text, className: "unseen" });
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return done;
}
