// The status of a host or cluster, with the reasons for it.

import { badge, element } from "./dom.js";

/** The statuses of validations that can be the reason for the status of a host or cluster. */
const FAILING = ["failure", "error"];

/**
 * Creates the badge of a status, the text of the service, and the messages of failing validations. A text longer than
 * `limit` is cut, and a tooltip has the full text. With a limit, another part of the page must show the messages, too.
 */
export function statusWithReasons({ status, status_info, validations_info }, limit = Infinity) {
  const messages = failingMessages(validations_info);
  const reasons = messages.length ? limited("hint reason", messages.join("; "), limit) : null;
  return [badge(status), limited("hint", withoutMessages(status_info ?? "", messages), limit), reasons];
}

/** Returns the distinct messages of failing validations. */
function failingMessages(validations) {
  const all = Object.values(JSON.parse(validations || "{}")).flatMap((list) => list ?? []);
  return [...new Set(all.filter(({ status }) => FAILING.includes(status)).map(({ message }) => message))];
}

/** Removes messages from the end of a text, because the page shows them separately. */
function withoutMessages(text, messages) {
  const start = Math.min(...messages.map((message) => text.indexOf(message)).filter((index) => index > 0));
  return Number.isFinite(start) ? text.slice(0, start).replace(/[\s:;]+$/, "") : text;
}

function limited(className, text, limit) {
  const characters = [...text];
  if (characters.length <= limit) return element("span", { className }, text);
  return element("span", { className, title: text }, `${characters.slice(0, limit - 1).join("").trimEnd()}…`);
}
