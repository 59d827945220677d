// The stream of changes, which reports the records that the page must read again.

import { api, token } from "./api.js";

/** The pause before a refused or ended stream is opened again, in milliseconds. */
const PAUSE = 5000;

let source = null;
/** The id of the last event. The next stream continues after it. */
let last;

/** Returns `true` if the stream is open. Otherwise, the page must look for changes itself. */
export const isOpen = () => source?.readyState === EventSource.OPEN;

let isFollowed = false;

/**
 * Keeps the stream open while the page is visible. A hidden page closes it, because browsers limit the connections to a
 * server. Calls `onChange` with each change, or with nothing if any record may have changed. Later calls of `follow`
 * have no effect.
 */
export function follow(onChange) {
  if (isFollowed) return;
  isFollowed = true;
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open(onChange)));
  open(onChange);
}

async function open(onChange) {
  close();
  // If the page is hidden during the request, `source` changes, and this call must stop.
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
    // The browser reconnects, unless the service has refused an expired ticket.
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
