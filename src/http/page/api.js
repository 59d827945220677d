// Calls to the API of the service that serves this page. The page has no other source of data.

/** The base URL of the service. A proxy may serve the page under a path. */
const ROOT = new URL("../", import.meta.url);
const V2 = "api/assisted-install/v2/";
/** The storage key of the token. Each tab has its own token. */
const TOKEN = "kindling-token";

/** The error for an error response of the service, or for a missing response. */
export class Refusal extends Error {
  constructor(status, message, findings = []) {
    super(message);
    this.status = status;
    this.findings = findings;
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (text) => sessionStorage.setItem(TOKEN, text),
  forget: () => sessionStorage.removeItem(TOKEN),
};

/** Sends a request and returns the response. */
function send(path, method, body) {
  const headers = {};
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  if (body) headers["Content-Type"] = "application/json";
  const request = { method, headers, body: body && JSON.stringify(body), cache: "no-store" };
  return fetch(new URL(path, ROOT), request).catch(() => {
    throw new Refusal(0, "The service does not respond.");
  });
}

async function ask(path, { method = "GET", body, accepts = [] } = {}) {
  const response = await send(path, method, body);
  const answer = await response.json().catch(() => null);
  if (response.ok || accepts.includes(response.status)) return answer;
  throw new Refusal(response.status, reason(response, answer), answer?.findings);
}

/** Returns the reason from an error response. The API has two error formats, and proxies have others. */
function reason(response, answer) {
  return answer?.reason ?? answer?.message ?? `The service returned ${response.status} ${response.statusText}.`;
}

/** Returns the part of image URLs that identifies an infra-env: its token, or its id if no token is needed. */
function nameInUrls(infraEnv) {
  const path = infraEnv.download_url?.split("/byapikey/")[1];
  return path ? path.split("/")[0] : infraEnv.id;
}

const ofInfraEnv = (infraEnv) => `${V2}infra-envs/${infraEnv.id}`;

export const api = {
  /** Returns the state of the service and its base images. The status is 503 if the service is not ready. */
  health: () => ask("health", { accepts: [503] }),
  componentVersions: () => ask(`${V2}component-versions`),
  osImages: () => ask(`${V2}os-images`),
  addOsImage: (body) => ask(`${V2}os-images`, { method: "POST", body }),
  removeOsImage: (version, architecture) =>
    ask(`${V2}os-images/${encodeURIComponent(version)}/${architecture}`, { method: "DELETE" }),
  infraEnvs: () => ask(`${V2}infra-envs`),
  /**
   * Returns the hosts in files: their documents, MAC addresses, and the interfaces that the documents declare. With
   * `check`, it also returns the findings in their networks.
   */
  readNetworkFiles: (files, check = false) => ask(`${V2}network-files`, { method: "POST", body: { files, check } }),
  create: (body) => ask(`${V2}infra-envs`, { method: "POST", body }),
  delete: (infraEnv) => ask(ofInfraEnv(infraEnv), { method: "DELETE" }),
  deleteHost: (infraEnv, id) => ask(`${ofInfraEnv(infraEnv)}/hosts/${id}`, { method: "DELETE" }),
  /** Returns the first `limit` hosts of an infra-env, with the inventory reports of their agents. */
  hosts: (infraEnv, limit) => ask(`${ofInfraEnv(infraEnv)}/hosts?with-connectivity=false&limit=${limit}`),
  hostsWithoutReports: (infraEnv, limit, offset = 0) =>
    ask(`${ofInfraEnv(infraEnv)}/hosts?with-inventory=false&with-connectivity=false&limit=${limit}&offset=${offset}`),
  clusters: () => ask(`${V2}clusters`),
  preflight: (infraEnv) => ask(`${ofInfraEnv(infraEnv)}/preflight`),
  files: (infraEnv) => ask(`i/${nameInUrls(infraEnv)}`),
  /** Returns the size of a file for one host, if the file exists. The list of files does not contain such sizes. */
  async sizeFor(infraEnv, mac, name) {
    const response = await send(`i/${nameInUrls(infraEnv)}/${mac}/${name}`, "HEAD");
    return response.ok ? Number(response.headers.get("Content-Length")) : undefined;
  },
  streamTicket: async () => (await ask(`${V2}events/tickets`, { method: "POST" })).ticket,
  /** Returns the URL of the stream of changes. With `last`, the stream continues after this event. */
  streamUrl(ticket, last) {
    const url = new URL(`${V2}events/stream`, ROOT);
    if (ticket) url.searchParams.set("ticket", ticket);
    if (last) url.searchParams.set("last_event_id", last);
    return url;
  },
  bootTrace: (infraEnv) => ask(`i/${nameInUrls(infraEnv)}/boot-trace`),
};
