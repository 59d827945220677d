// What the page does from its beginning on.

import { token } from "./api.js";
import * as creation from "./creation.js";
import { byId, showProblem, tell } from "./dom.js";
import * as infraEnvs from "./infra-envs.js";
import * as liveImages from "./live-images.js";

/** How often readers and downloads are asked for, in milliseconds, */
const OFTEN = 1000;
/** and what does not move. */
const SELDOM = 5000;

const signIn = byId("sign-in");

/** Reads all there is, or asks who is there. */
async function load() {
  try {
    await infraEnvs.refresh();
    showContent();
    showProblem(byId("problem"), null);
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
  tell("The token is good.");
  byId("infra-envs-heading").closest("main").focus();
});

byId("forget").addEventListener("click", () => {
  token.forget();
  location.reload();
});
byId("refresh").addEventListener("click", async () => (await load()) && tell("The list is up to date."));
// Others may have made some meanwhile.
document.addEventListener("visibilitychange", () => !document.hidden && signIn.hidden && load());
byId("filter").addEventListener("input", infraEnvs.show);
creation.begin();

/** Does something again and again, as long as the page is seen. */
async function forever(work) {
  for (;;) {
    const pause = document.hidden ? OFTEN : await work();
    await new Promise((resume) => setTimeout(resume, pause));
  }
}

forever(async () => {
  return (await liveImages.refresh()) ? OFTEN : SELDOM;
});

if (await load()) await infraEnvs.open(location.hash.slice(1));

forever(async () => {
  if (!byId("content").hidden) await infraEnvs.follow();
  return OFTEN;
});
