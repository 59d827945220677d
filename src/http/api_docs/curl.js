// Example requests as curl commands for a POSIX shell.

import { ROOT } from "./document.js";

/** The security schemes that an example may use, the preferred one first. */
const TOKENS = ["userAuth", "agentAuth"];

/** Quotes a text for the shell, if necessary. */
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Escapes a text inside double quotes. */
const escaped = (text) => text.replace(/["\\$`]/g, "\\$&");

/** Returns the shell variable for the value of a parameter. */
export const variable = (name) => `$${name.replace(/\W/g, "_").toUpperCase()}`;

/** Returns the key of a parameter in the map of values. */
export const valueKey = (parameter) => `${parameter.in} ${parameter.name}`;

/** Returns the variables in a command. */
export const variablesIn = (command) => [...new Set(command.match(/\$[A-Z][A-Z0-9_]*/g))];

/** Returns the command for an operation. `values` contains the parameter values that the user entered. */
export function curlCommand(api, operation, values) {
  const used = operation.parameters.filter((parameter) => parameter.required || values.get(valueKey(parameter)));
  const options = [
    ...method(operation), ...download(api, operation), ...token(api, operation), ...headers(used, values), ...body(api, operation),
  ];
  return `curl ${[...options, `"${address(operation, used, values)}"`].join(" \\\n  ")}`;
}

function address(operation, used, values) {
  const valueOf = (parameter) => {
    const value = values.get(valueKey(parameter));
    return value ? escaped(encodeURIComponent(value)) : variable(parameter.name);
  };
  const path = escaped(operation.path).replace(/\{([^}]*)\}/g, (whole, name) => {
    const parameter = operation.parameters.find((one) => one.in === "path" && one.name === name);
    return parameter ? valueOf(parameter) : whole;
  });
  const query = used.filter((parameter) => parameter.in === "query");
  const pairs = query.map((parameter) => `${encodeURIComponent(parameter.name)}=${valueOf(parameter)}`);
  return escaped(ROOT.href).replace(/\/$/, "") + path + (pairs.length > 0 ? `?${pairs.join("&")}` : "");
}

/** Returns the options for the method, and for an exit code after an error response. */
function method({ method: name, requestBody }) {
  const implied = requestBody ? "post" : "get";
  return name === implied ? ["--fail-with-body"] : ["--fail-with-body", `-X ${name.toUpperCase()}`];
}

/** Returns the options for a response that is a file or an endless stream. */
function download(api, { responses = {} }) {
  const types = Object.keys(api.resolve(responses["200"]).content ?? {});
  if (types.includes("text/event-stream")) return ["-N"];
  return types.some((type) => /octet-stream|iso9660/.test(type)) ? ["-OJ"] : [];
}

function token(api, { security }) {
  const name = TOKENS.find((scheme) => security.some((alternative) => Object.hasOwn(alternative, scheme)));
  return name ? [`-H "${escaped(api.scheme(name).name)}: ${name === "userAuth" ? "Bearer " : ""}$TOKEN"`] : [];
}

function headers(used, values) {
  const ofRequest = used.filter((parameter) => parameter.in === "header");
  return ofRequest.map((parameter) => {
    const value = values.get(valueKey(parameter));
    return `-H "${escaped(parameter.name)}: ${value ? escaped(value) : variable(parameter.name)}"`;
  });
}

function body(api, { requestBody }) {
  const [type, content] = Object.entries(api.resolve(requestBody).content ?? {})[0] ?? [];
  if (type === undefined) return [];
  if (type === "multipart/form-data") {
    const fields = Object.keys(api.resolve(content.schema).properties ?? {});
    return fields.map((field) => `-F ${quoted(`${field}=@${field}`)}`);
  }
  const contentType = `-H ${quoted(`Content-Type: ${type}`)}`;
  if (content.example === undefined) return [contentType, "--data-binary @body"];
  const text = typeof content.example === "string" ? content.example : JSON.stringify(content.example, null, 2);
  return [contentType, `--data-binary ${quoted(text)}`];
}
