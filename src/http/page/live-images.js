// The live images, and how far they are on their way here.

import { api } from "./api.js";
import { badge, byId, element, humanBytes, progressBar, renew } from "./dom.js";

/** What was shown last: all is left alone until something changes. */
let shown;

/** Reads how the service is, and shows it. Gives whether that is going to change soon. */
export async function refresh() {
  const health = await api.health().catch(() => null);
  if (!health) {
    shown = null;
    byId("health").replaceChildren(badge("silent"), " The service does not answer.");
    return true;
  }
  show(health);
  return !health.ready || health.images.some(({ state }) => state === "downloading" || state === "verifying");
}

function show(health) {
  const text = JSON.stringify(health);
  if (text === shown) return;
  shown = text;
  const overall = byId("health");
  overall.replaceChildren(badge(health.ready ? "ready" : "waiting"), health.database === "failed" ? " The database does not answer." : "");
  renew(byId("live-images"), health.images.map(row));
}

function row(image) {
  const cell = (column, ...children) => element("td", { "data-column": column }, ...children);
  return element("tr", {},
    element("th", { scope: "row" }, image.openshift_version),
    cell("Live image", image.version, element("span", { className: "hint" }, image.name)),
    cell("Machines", image.cpu_architecture),
    cell("State", badge(image.state), state(image)),
  );
}

function state({ state, name, have, total, len, reason, retry_at }) {
  switch (state) {
    case "downloading":
    case "verifying": {
      const word = `${humanBytes(have)} of ${total ? humanBytes(total) : "what is not known"}`;
      return element("span", { className: "meter" }, progressBar(`${name}: ${state}`, total ? have : undefined, total || 1), word);
    }
    case "ready":
      return element("span", { className: "hint" }, humanBytes(len));
    case "failed":
      return element("span", { className: "hint" }, `${reason} Tried again at ${new Date(retry_at).toLocaleTimeString()}.`);
    default:
      return element("span", { className: "hint" }, "Fetched when somebody asks for it, or when its turn comes.");
  }
}
