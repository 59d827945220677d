// The list of infra-envs.

import { api } from "./api.js";
import { Card } from "./card.js";
import * as changes from "./changes.js";
import * as clusters from "./clusters.js";
import { confirmDeletion } from "./deletion.js";
import { arrange, byId } from "./dom.js";
import { forgetNames } from "./host-names.js";

/** Maximum number of cards to show. Users with thousands of infra-envs use the filter. */
const MAX_SHOWN = 200;

let infraEnvs = [];
/** The cards by infra-env id. Open cards stay open when the list is refreshed. */
const cards = new Map();

/** Whether an infra-env may have changed since the list was requested. */
let outdated = false;
export const isOutdated = () => outdated;

/** Requests the list and updates the cards. */
export async function refresh() {
  outdated = false;
  try {
    infraEnvs = await api.infraEnvs();
  } catch (problem) {
    outdated = true;
    throw problem;
  }
  infraEnvs.sort((one, other) => other.created_at.localeCompare(one.created_at));
  const ids = new Set(infraEnvs.map((infraEnv) => infraEnv.id));
  for (const id of cards.keys()) if (!ids.has(id)) cards.delete(id);
  await Promise.all(infraEnvs.map((infraEnv) => cards.get(infraEnv.id)?.update(infraEnv)));
  show();
}

/** Shows the infra-envs that match the filter. */
export function show() {
  const text = byId("filter").value.trim().toLowerCase();
  const fits = ({ name, id }) => name.toLowerCase().includes(text) || id.includes(text);
  const matches = infraEnvs.filter(fits);
  const newest = matches.slice(0, MAX_SHOWN);
  arrange(byId("infra-envs"), newest.map((infraEnv) => cardOf(infraEnv).root));
  byId("count").textContent = infraEnvs.length;
  const nothing = byId("nothing");
  nothing.hidden = matches.length > 0 && newest.length === matches.length;
  nothing.textContent =
    infraEnvs.length === 0 ? "No infra-envs yet."
    : matches.length === 0 ? "No infra-env matches this name or id."
    : `Showing the newest ${newest.length} of ${matches.length}. Use the filter to find others.`;
}

/** Opens the card of an infra-env, even if the filter hides it, and focuses it. */
export async function open(id) {
  const infraEnv = infraEnvs.find((infraEnv) => infraEnv.id === id);
  if (!infraEnv) return;
  const card = cardOf(infraEnv);
  if (!card.root.isConnected) byId("infra-envs").prepend(card.root);
  await card.open();
  card.opener.focus();
}

/** Marks the parts of the page that a change makes outdated. Without an argument, marks all parts. */
function note(change) {
  if (!change || change.resource === "infra-env") outdated = true;
  if (!change || change.resource === "cluster") clusters.forget();
  for (const [id, card] of cards) {
    if (!change || change.infra_env_id === id || card.hosts.clusterIds.has(change.id)) card.hosts.invalidate();
  }
}

/** Starts to follow the stream of changes. */
export const listen = () => changes.follow(note);

/** Refreshes the parts of cards that have changed without user action. */
export const followCards = () => Promise.all([...cards.values()].map((card) => card.follow()));

function cardOf(infraEnv) {
  const onDelete = (current) => confirmDeletion(current, () => afterDeletion(current));
  if (!cards.has(infraEnv.id)) cards.set(infraEnv.id, new Card(infraEnv, onDelete));
  return cards.get(infraEnv.id);
}

async function afterDeletion({ id }) {
  forgetNames(id);
  // Remove the card, which would otherwise request data about the deleted infra-env.
  cards.delete(id);
  history.replaceState(null, "", location.pathname);
  await refresh();
  byId("new").focus();
}
