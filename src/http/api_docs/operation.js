// The details of an operation: parameters, access, body, responses, and an example request.

import { copyButton, element } from "../page/dom.js";
import { curlCommand, valueKey, variable, variablesIn } from "./curl.js";
import { facts, inline, opened, prose, schemaView, typeName } from "./schema.js";

/** Creates the details of an operation. */
export function details(api, operation) {
  const values = new Map();
  const hint = element("p", { className: "hint" });
  const example = element("div", { className: "example" });
  const showExample = () => {
    const text = curlCommand(api, operation, values);
    hint.replaceChildren(...variablesHint(text));
    example.replaceChildren(element("pre", { tabIndex: 0 }, element("code", {}, text)), copyButton(text, "the example"));
  };
  showExample();
  const onValue = (parameter, value) => {
    values.set(valueKey(parameter), value);
    showExample();
  };
  return [
    about(operation),
    heading("Access"), access(api, operation),
    ...parameters(api, operation, onValue),
    ...requestBody(api, operation),
    heading("Responses"), ...responses(api, operation),
    heading("Example"), hint, example,
  ];
}

const heading = (text) => element("h4", {}, text);
const requiredMark = () => element("span", { className: "required" }, "required");

function about(operation) {
  const link = element("a", { href: `#${encodeURIComponent(operation.id)}` }, operation.id);
  const mark = operation.isImplemented ? null
    : element("p", { className: "notice" }, "This service does not implement the operation: it returns 501.");
  return element("div", { className: "prose" }, ...prose(operation.description), mark,
    element("p", { className: "hint" }, "Operation ", link));
}

function access(api, { security }) {
  if (security.length === 0) return element("p", {}, "No token is needed.");
  const named = security.flatMap((alternative) => Object.keys(alternative));
  const items = named.map((name) => {
    const scheme = api.scheme(name);
    const place = scheme.in === "query" ? "Query parameter " : "Header ";
    return element("li", {}, place, element("code", {}, scheme.name ?? name), ": ", ...inline(scheme.description ?? name));
  });
  if (security.some((alternative) => Object.keys(alternative).length === 0)) {
    items.push(element("li", {}, "Or a token in the path"));
  }
  return element("ul", { className: "access", role: "list" }, ...items);
}

function parameters(api, operation, onValue) {
  if (operation.parameters.length === 0) return [];
  const head = ["Name", "In", "Description", "Value in the example"];
  const table = element("table", { className: "values" },
    element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...operation.parameters.map((parameter) => parameterRow(api, parameter, onValue))));
  return [heading("Parameters"), table];
}

function parameterRow(api, parameter, onValue) {
  const value = element("input", { "aria-label": `Value of ${parameter.name}`, autocomplete: "off", spellcheck: false });
  value.placeholder = parameter.required ? variable(parameter.name) : "";
  value.addEventListener("input", () => onValue(parameter, value.value));
  return element("tr", {},
    element("th", { scope: "row" }, element("code", {}, parameter.name), " ",
      parameter.required ? requiredMark() : null),
    element("td", { "data-column": "In" }, parameter.in),
    element("td", { "data-column": "" }, element("span", { className: "type" }, typeName(api, parameter.schema ?? {})),
      ...prose(parameter.description), facts(api, parameter.schema ?? {})),
    element("td", { className: "narrow-column", "data-column": "" }, value));
}

function requestBody(api, operation) {
  if (!operation.requestBody) return [];
  const body = api.resolve(operation.requestBody);
  const contents = Object.entries(body.content ?? {}).flatMap(([type, content]) => [
    element("p", {}, element("code", {}, type), " ", body.required ? requiredMark() : null),
    ...schemaView(api, content.schema ?? {}),
  ]);
  return [heading("Request body"), ...prose(body.description), ...contents];
}

function responses(api, operation) {
  return Object.entries(operation.responses ?? {}).map(([status, described]) => {
    const response = api.resolve(described);
    const title = [element("span", { className: "status" }, status), ...inline(response.description || "Success.")];
    const contents = Object.entries(response.content ?? {});
    if (contents.length === 0) return element("p", { className: "response plain" }, ...title);
    return opened(title, () => contents.flatMap(([type, content]) => [
      element("p", {}, element("code", {}, type)), ...schemaView(api, content.schema ?? {}),
    ]), "response");
  });
}

function variablesHint(command) {
  const names = variablesIn(command);
  if (names.length === 0) return [];
  const codes = names.flatMap((name) => [", ", element("code", {}, name)]).slice(1);
  const token = names.includes("$TOKEN") ? " A token is needed only under the policy `local`." : "";
  return ["Replace or set ", ...codes, ".", ...inline(token)];
}
