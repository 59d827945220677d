// The entry point of the page at /docs.

import { byId, element, showProblem, tell } from "../page/dom.js";
import { load } from "./document.js";
import { details } from "./operation.js";
import { prose } from "./schema.js";

/** The time from the last key to the announcement of the number of matches, in milliseconds. */
const PAUSE = 600;

/** The cards of the operations, by id. */
const cards = new Map();

/** An operation in the list. Its details are created when the user first opens it. */
class Card {
  constructor(api, operation) {
    this.api = api;
    this.operation = operation;
    const { method, path, summary, id, tag, isImplemented } = operation;
    this.words = [method, path, summary ?? "", id, tag].join(" ").toLowerCase();
    this.inside = element("div", { className: "inside", hidden: true, id: `details-${cards.size}` });
    this.opener = element("button", { type: "button", className: "opener", "aria-expanded": "false", "aria-controls": this.inside.id },
      element("span", { className: `method ${method}` }, method.toUpperCase()),
      element("span", { className: "name" }, ...breakable(path)),
      isImplemented ? null : element("span", { className: "badge warning" }, "501"),
      element("span", { className: "summary" }, summary ?? id));
    this.opener.addEventListener("click", () => this.toggle());
    this.item = element("li", { className: `operation card panel${isImplemented ? "" : " lacking"}` },
      element("h3", {}, this.opener), this.inside);
  }

  toggle() {
    const isOpen = this.inside.hidden;
    if (isOpen) {
      this.open();
      history.replaceState(null, "", `#${encodeURIComponent(this.operation.id)}`);
    } else {
      this.inside.hidden = true;
      this.opener.setAttribute("aria-expanded", "false");
    }
  }

  open() {
    if (this.inside.childElementCount === 0) {
      this.inside.append(...details(this.api, this.operation).filter((node) => node !== null));
    }
    this.inside.hidden = false;
    this.opener.setAttribute("aria-expanded", "true");
  }
}

/** Allows line breaks before each slash of a path. */
const breakable = (path) => path.split("/").flatMap((part) => [element("wbr"), "/", part]).slice(2);

function section(api, tag, index) {
  const list = element("ul", { className: "cards", role: "list" });
  for (const operation of tag.operations) {
    const card = new Card(api, operation);
    cards.set(operation.id, card);
    list.append(card.item);
  }
  const heading = element("h2", { id: `tag-${index}` }, tag.name);
  const description = tag.description ? element("p", { className: "hint" }, tag.description) : null;
  return element("section", { className: "tag", "aria-labelledby": heading.id }, heading, description, list);
}

/** Shows the operations that contain all words of the filter. */
function filter() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const card of cards.values()) {
    card.item.hidden = !words.every((word) => card.words.includes(word));
    if (!card.item.hidden) count += 1;
  }
  for (const part of document.querySelectorAll(".tag")) part.hidden = !part.querySelector(".operation:not([hidden])");
  byId("count").textContent = `${count} ${count === 1 ? "operation" : "operations"}`;
  byId("nothing").hidden = count > 0;
}

let announcement;
byId("filter").addEventListener("input", () => {
  filter();
  clearTimeout(announcement);
  announcement = setTimeout(() => tell(byId("count").textContent), PAUSE);
});

/** Opens the operation in the fragment of the URL. */
function followHash() {
  const card = cards.get(decoded(location.hash.slice(1)));
  if (!card) return;
  if (card.item.hidden) {
    byId("filter").value = "";
    filter();
  }
  card.open();
  card.item.scrollIntoView();
  card.opener.focus({ preventScroll: true });
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

try {
  const api = await load();
  const { title, version, description } = api.json.info ?? {};
  byId("about").append(element("p", { className: "hint" }, `${title ?? ""} ${version ?? ""}`), ...prose(description));
  byId("operations").append(...api.tags().map((tag, index) => section(api, tag, index)));
  filter();
  followHash();
  addEventListener("hashchange", followHash);
} catch (problem) {
  showProblem(byId("problem"), problem);
}
