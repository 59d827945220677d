// The stream of changes. It tells the page which records to read again.

import { api, token } from "./api.js";

/** The pause before a stream is opened again that the service has refused or ended, in milliseconds. */
const PAUSE = 5000;

let source = null;
/** The id of the last event. The next stream continues after it. */
let last;

/** Returns whether the stream is open. If it is not, the page must look for changes itself. */
export const isOpen = () => source?.readyState === EventSource.OPEN;

let isFollowed = false;

/**
 * Opens the stream whenever the page is visible, because a browser opens few connections to a server and each tab would
 * keep one. Calls `onChange` with each change, or with nothing if any record may have changed. Only the first call does
 * something.
 */
export function follow(onChange) {
  if (isFollowed) return;
  isFollowed = true;
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open(onChange)));
  open(onChange);
}

async function open(onChange) {
  close();
  // A new source before the first request: if the page is hidden meanwhile, this call is out of date.
  const own = (source = {});
  const ticket = token.get() ? await api.streamTicket().catch(() => null) : "";
  if (source !== own) return;
  if (ticket === null) return retry(own, onChange);
  const stream = (source = new EventSource(api.streamUrl(ticket, last)));
  const receive = (event) => {
    last = event.lastEventId;
    onChange(event.type === "change" ? JSON.parse(event.data) : undefined);
  };
  stream.addEventListener("change", receive);
  stream.addEventListener("resync", receive);
  stream.addEventListener("error", () => {
    // The browser connects again, unless the service refused: then the ticket has expired.
    if (stream.readyState === EventSource.CLOSED) retry(stream, onChange);
  });
}

function retry(of, onChange) {
  setTimeout(() => source === of && open(onChange), PAUSE);
}

function close() {
  source?.close?.();
  source = null;
}
