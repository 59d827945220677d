// Shows times relative to now, and updates them while the page is open.

import { element } from "./dom.js";

/** The interval between updates of the texts, in milliseconds. */
const INTERVAL = 5000;
/** The units with their lengths in seconds. */
const UNITS = [["day", 86_400], ["hour", 3600], ["minute", 60]];

const words = new Intl.RelativeTimeFormat("en");

/** Creates a time element: a relative text, with the absolute time as its title. */
export function timeElement(timestamp) {
  const date = new Date(timestamp);
  // The API writes the year 1 for times that are not set.
  if (!(date.getFullYear() > 1)) return element("span", {}, "never");
  const properties = { dateTime: date.toISOString(), title: date.toLocaleString(), className: "relative" };
  return element("time", properties, relativeText(date));
}

function relativeText(date) {
  const seconds = (date - Date.now()) / 1000;
  const unit = UNITS.find(([, length]) => Math.abs(seconds) >= length);
  // The clocks of the service and of the browser may differ by seconds.
  return unit ? words.format(Math.trunc(seconds / unit[1]), unit[0]) : "just now";
}

function updateAll() {
  if (document.hidden) return;
  for (const node of document.querySelectorAll("time.relative")) {
    const text = relativeText(new Date(node.dateTime));
    if (node.textContent !== text) node.textContent = text;
  }
}

/** Starts to update the texts. */
export function begin() {
  setInterval(updateAll, INTERVAL);
  document.addEventListener("visibilitychange", updateAll);
}
