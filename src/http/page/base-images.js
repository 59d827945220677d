// The base images and the state of their downloads.

import { api } from "./api.js";
import { badge, byId, cell, element, humanBytes, progressBar, renew } from "./dom.js";

/** The last response shown, as text. The page is updated only if the response changes. */
let current;
/** The base images in the last response. */
let images = [];

/** Requests and shows the state of the service. Returns `true` if the state will change soon. */
export async function refresh() {
  const health = await api.health().catch(() => null);
  if (!health) {
    current = null;
    byId("health").replaceChildren(badge("silent"), " The service does not respond.");
    return true;
  }
  show(health);
  return !health.ready || health.images.some(({ state }) => state === "downloading" || state === "verifying");
}

/** Returns `true` if the last download of an infra-env's base image failed. */
export const hasFailed = ({ openshift_version, cpu_architecture }) => images.some((image) =>
  image.openshift_version === openshift_version && image.cpu_architecture === cpu_architecture && image.state === "failed");

function show(health) {
  const text = JSON.stringify(health);
  if (text === current) return;
  current = text;
  images = health.images;
  showUnreachable(health.addresses ?? []);
  const hasNone = images.length === 0;
  byId("no-base-images").hidden = !hasNone;
  byId("base-images").closest("table").hidden = hasNone;
  byId("health").replaceChildren(...overall(health));
  renew(byId("base-images"), images.map(row));
}

/** Shows the base URLs that machines cannot reach. */
function showUnreachable(findings) {
  byId("unreachable").hidden = findings.length === 0;
  const urls = findings.flatMap(({ url }) => [" and ", element("code", {}, url)]).slice(1);
  byId("unreachable-urls").replaceChildren(...urls);
}

function overall({ ready, database }) {
  if (database === "failed") return [badge("waiting"), " The database does not respond."];
  if (images.length === 0) return [badge("warning", "no base images")];
  const failed = images.filter(({ state }) => state === "failed").length;
  const news = failed ? ` ${failed} of ${images.length} base images ${failed === 1 ? "is" : "are"} not available.` : "";
  return [badge(ready ? "ready" : "waiting"), news];
}

function row(image) {
  return element("tr", {},
    element("th", { scope: "row" }, image.openshift_version),
    cell("Base image", image.version, element("span", { className: "hint" }, image.name)),
    cell("Architecture", image.cpu_architecture),
    cell("State", badge(image.state), state(image), removal(image)),
  );
}

/** Returns the button that removes an image, if a user added it. */
function removal({ added, openshift_version: version, cpu_architecture: architecture }) {
  if (!added) return undefined;
  const button = element("button", { type: "button", className: "small" }, "Remove");
  button.setAttribute("aria-label", `Remove the base image for ${version}, ${architecture}`);
  button.dataset.version = version;
  button.dataset.architecture = architecture;
  return button;
}

function state({ state, name, have, total, len, reason, retry_at }) {
  switch (state) {
    case "downloading":
    case "verifying": {
      const word = `${humanBytes(have)} of ${total ? humanBytes(total) : "an unknown total"}`;
      return element("span", { className: "meter" }, progressBar(`${name}: ${state}`, total ? have : undefined, total || 1), word);
    }
    case "ready":
      return element("span", { className: "hint" }, humanBytes(len));
    case "failed":
      return element("span", { className: "hint reason" }, `${reason}. Next attempt at ${new Date(retry_at).toLocaleString()}.`);
    default:
      return element("span", { className: "hint" }, "Not downloaded yet. The download starts on the first request, or when its turn comes.");
  }
}
