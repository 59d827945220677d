// The list of infra-envs.

import { api } from "./api.js";
import { Card } from "./card.js";
import { byId, showProblem, tell } from "./dom.js";

/** More are not shown at once: whoever has thousands looks for one. */
const MOST_SHOWN = 200;

let infraEnvs = [];
/** Cards that were made, by id: what is open stays open when the list is read again. */
const cards = new Map();

/** Reads the list again. */
export async function refresh() {
  infraEnvs = await api.infraEnvs();
  infraEnvs.sort((one, other) => other.created_at.localeCompare(one.created_at));
  const ids = new Set(infraEnvs.map((infraEnv) => infraEnv.id));
  for (const id of cards.keys()) if (!ids.has(id)) cards.delete(id);
  await Promise.all(infraEnvs.map((infraEnv) => cards.get(infraEnv.id)?.update(infraEnv)));
  show();
}

/** Shows the part of the list that the filter names. */
export function show() {
  const wanted = byId("filter").value.trim().toLowerCase();
  const fits = ({ name, id }) => name.toLowerCase().includes(wanted) || id.includes(wanted);
  const found = infraEnvs.filter(fits);
  const shown = found.slice(0, MOST_SHOWN);
  place(byId("infra-envs"), shown.map((infraEnv) => cardOf(infraEnv).root));
  byId("count").textContent = infraEnvs.length;
  const nothing = byId("nothing");
  nothing.hidden = found.length > 0 && shown.length === found.length;
  nothing.textContent =
    infraEnvs.length === 0 ? "There are no infra-envs yet."
    : found.length === 0 ? "No infra-env has this in its name or id."
    : `The newest ${shown.length} of ${found.length} are shown. The filter finds the others.`;
}

/** Puts elements into a list. What is there already is not touched: it may be in use. */
function place(list, wanted) {
  const isThere = list.children.length === wanted.length && wanted.every((element, index) => list.children[index] === element);
  if (!isThere) list.replaceChildren(...wanted);
}

/** Opens the card of an infra-env, wherever it is, and goes to it. */
export async function open(id) {
  const infraEnv = infraEnvs.find((infraEnv) => infraEnv.id === id);
  if (!infraEnv) return;
  const card = cardOf(infraEnv);
  if (!card.root.isConnected) byId("infra-envs").prepend(card.root);
  await card.open();
  card.opener.focus();
}

/** Asks again for what changes by itself. */
export async function follow() {
  await Promise.all([...cards.values()].map((card) => card.follow()));
}

function cardOf(infraEnv) {
  if (!cards.has(infraEnv.id)) cards.set(infraEnv.id, new Card(infraEnv, confirmDeletion));
  return cards.get(infraEnv.id);
}

/** Asks whether an infra-env shall go, and lets it go. */
function confirmDeletion(infraEnv) {
  const dialog = byId("deletion");
  const problem = dialog.querySelector(".problem");
  dialog.querySelector("[data-slot=name]").textContent = infraEnv.name;
  showProblem(problem, null);
  byId("keep").onclick = () => dialog.close();
  byId("delete").onclick = async () => {
    try {
      await api.delete(infraEnv);
      dialog.close();
      history.replaceState(null, "", location.pathname);
      await refresh();
      byId("new").focus();
      tell(`${infraEnv.name} was deleted.`);
    } catch (refusal) {
      showProblem(problem, refusal);
    }
  };
  dialog.showModal();
}
