// The form that adds a base image, and the buttons that remove added images.

import { api } from "./api.js";
import * as baseImages from "./base-images.js";
import { byId, showProblem, tell } from "./dom.js";

const FIELDS = ["url", "openshift_version", "version", "cpu_architecture", "sha256"];

const form = byId("image-form");

/** Characters that the service rejects in URLs. */
const FORBIDDEN = /[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]/u;
const MAX_URL_LEN = 1000;

export function begin() {
  form.elements.url.addEventListener("input", ({ target }) => target.setCustomValidity(urlProblem(target.value.trim())));
  byId("new-image").addEventListener("click", () => (form.hidden ? unfold() : fold()));
  byId("cancel-image").addEventListener("click", fold);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    add();
  });
  // The rows are replaced every second, so listen on the list itself.
  byId("base-images").addEventListener("click", ({ target }) => target.matches("button[data-version]") && remove(target));
}

/** Returns why a URL is invalid. The service also rejects URLs of servers that are not allowed. */
function urlProblem(text) {
  if (!text) return "";
  if (!/^https?:\/\//i.test(text)) return "The URL must begin with http:// or https://.";
  if (text.length > MAX_URL_LEN) return `The URL is longer than ${MAX_URL_LEN} characters.`;
  const forbidden = text.match(FORBIDDEN)?.[0];
  if (forbidden) return `The URL contains ${JSON.stringify(forbidden)}. Write it percent-encoded.`;
  return URL.canParse(text) ? "" : "The URL has no valid host or port.";
}

function unfold() {
  form.hidden = false;
  byId("new-image").setAttribute("aria-expanded", "true");
  form.elements.url.focus();
}

function fold() {
  form.hidden = true;
  form.reset();
  form.elements.url.setCustomValidity("");
  showProblem(byId("image-problem"), null);
  byId("new-image").setAttribute("aria-expanded", "false");
  byId("new-image").focus();
}

async function add() {
  const values = FIELDS.map((name) => [name, form.elements[name].value.trim()]);
  const params = Object.fromEntries(values.filter(([, value]) => value));
  const button = form.querySelector("button.primary");
  button.disabled = true;
  try {
    const image = await api.addOsImage(params);
    await baseImages.refresh();
    fold();
    tell(`The base image for ${image.openshift_version} was added. Its download has started.`);
  } catch (refusal) {
    showProblem(byId("image-problem"), refusal);
    byId("image-problem").focus();
  } finally {
    button.disabled = false;
  }
}

async function remove({ dataset: { version, architecture } }) {
  const problem = byId("image-list-problem");
  showProblem(problem, null);
  try {
    await api.removeOsImage(version, architecture);
    await baseImages.refresh();
    byId("new-image").focus();
    tell(`The base image for ${version} was removed.`);
  } catch (refusal) {
    showProblem(problem, refusal);
  }
}
