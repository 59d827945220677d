// The API of the service that this page came from. The page knows nothing that the API does not tell.

/** Where the service is: the page may be behind a path of a proxy. */
const ROOT = new URL("../", import.meta.url);
const V2 = "api/assisted-install/v2/";
/** The token of this tab; other tabs have their own. */
const TOKEN = "kindling-token";

/** The service said no, or said nothing. */
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

/** What the service answers to a request. */
function send(path, method, body) {
  const headers = {};
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  if (body) headers["Content-Type"] = "application/json";
  const request = { method, headers, body: body && JSON.stringify(body), cache: "no-store" };
  return fetch(new URL(path, ROOT), request).catch(() => {
    throw new Refusal(0, "The service does not answer.");
  });
}

async function ask(path, { method = "GET", body, accepts = [] } = {}) {
  const response = await send(path, method, body);
  const answer = await response.json().catch(() => null);
  if (response.ok || accepts.includes(response.status)) return answer;
  throw new Refusal(response.status, reason(response, answer), answer?.findings);
}

/** Refusals have two shapes, and what is in front of the service has others. */
function reason(response, answer) {
  return answer?.reason ?? answer?.message ?? `The service answers ${response.status} ${response.statusText}.`;
}

/** What names an infra-env in the URLs of its images: the token that it has for them, or its id where none is needed. */
function nameInUrls(infraEnv) {
  const path = infraEnv.download_url?.split("/byapikey/")[1];
  return path ? path.split("/")[0] : infraEnv.id;
}

const ofInfraEnv = (infraEnv) => `${V2}infra-envs/${infraEnv.id}`;

export const api = {
  /** Whether and how far live images are there; a service that is not ready says so with a 503. */
  health: () => ask("health", { accepts: [503] }),
  osImages: () => ask(`${V2}os-images`),
  infraEnvs: () => ask(`${V2}infra-envs`),
  /** The hosts of files, each with its text: documents, addresses and the interfaces that they declare. */
  readNetworkFiles: (files) => ask(`${V2}network-files`, { method: "POST", body: { files } }),
  create: (body) => ask(`${V2}infra-envs`, { method: "POST", body }),
  delete: (infraEnv) => ask(ofInfraEnv(infraEnv), { method: "DELETE" }),
  preflight: (infraEnv) => ask(`${ofInfraEnv(infraEnv)}/preflight`),
  files: (infraEnv) => ask(`i/${nameInUrls(infraEnv)}`),
  /** The length of a file for one machine, where it has one: only asking tells. */
  async sizeFor(infraEnv, mac, name) {
    const response = await send(`i/${nameInUrls(infraEnv)}/${mac}/${name}`, "HEAD");
    return response.ok ? Number(response.headers.get("Content-Length")) : undefined;
  },
  bootTrace: (infraEnv) => ask(`i/${nameInUrls(infraEnv)}/boot-trace`),
};
