// The entry point of the page.

import { api, token } from "./api.js";
import * as baseImageForm from "./base-image-form.js";
import * as creation from "./creation.js";
import { byId, showProblem, tell } from "./dom.js";
import { forgetAll } from "./host-names.js";
import * as infraEnvs from "./infra-envs.js";
import * as baseImages from "./base-images.js";
import * as time from "./time.js";

/** The refresh interval of readers and downloads, in milliseconds. */
const OFTEN = 1000;
/** The refresh interval of a state that will not change soon, in milliseconds. */
const SELDOM = 5000;

const signIn = byId("sign-in");

/** Loads the list, or asks for a token. Returns `true` if the list was loaded. */
async function load() {
  try {
    await infraEnvs.refresh();
    infraEnvs.listen();
    showContent();
    showProblem(byId("problem"), null);
    showVersion();
    return true;
  } catch (refusal) {
    if (refusal.status === 401) askForToken(refusal);
    else {
      showContent();
      showProblem(byId("problem"), refusal);
    }
    return false;
  }
}

/** Shows the version of the service, once. Like the list, it may need a token. */
async function showVersion() {
  if (byId("version").textContent) return;
  const { versions } = await api.componentVersions().catch(() => ({}));
  if (versions) byId("version").textContent = versions["assisted-installer-service"];
}

function showContent() {
  signIn.hidden = true;
  byId("content").hidden = false;
  byId("forget").hidden = !token.get();
}

function askForToken(refusal) {
  const hadOne = token.get() !== null;
  token.forget();
  byId("content").hidden = true;
  byId("forget").hidden = true;
  signIn.hidden = false;
  showProblem(signIn.querySelector(".problem"), hadOne ? refusal : null);
  signIn.elements.token.focus();
}

signIn.addEventListener("submit", async (event) => {
  event.preventDefault();
  token.set(signIn.elements.token.value.trim());
  signIn.reset();
  if (!(await load())) return;
  tell("Signed in.");
  byId("infra-envs-heading").closest("main").focus();
});

byId("forget").addEventListener("click", () => {
  token.forget();
  forgetAll();
  location.reload();
});
byId("refresh").addEventListener("click", async () => (await load()) && tell("The list is up to date."));
// Other clients may have changed the list while the page was hidden.
document.addEventListener("visibilitychange", () => !document.hidden && signIn.hidden && load());
byId("filter").addEventListener("input", infraEnvs.show);
creation.begin();
baseImageForm.begin();
time.begin();

/** Repeats `work`, which returns the pause in milliseconds. Pauses while the page is hidden. */
async function forever(work) {
  for (;;) {
    const pause = document.hidden ? OFTEN : await work();
    await new Promise((resume) => setTimeout(resume, pause));
  }
}

forever(async () => {
  return (await baseImages.refresh()) ? OFTEN : SELDOM;
});

if (await load()) await infraEnvs.open(location.hash.slice(1));

forever(async () => {
  if (byId("content").hidden) return OFTEN;
  if (infraEnvs.isOutdated() && !(await load())) return SELDOM;
  await infraEnvs.followCards();
  return OFTEN;
});
