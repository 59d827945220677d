// Shows schemas as lists of parts. The list of a nested schema is created when the user opens it. So a schema that
// contains itself is not a problem.

import { element } from "../page/dom.js";

/** Maximum depth of nested arrays and combined schemas, because they may be circular. */
const MAX_DEPTH = 8;

/** Creates the paragraphs of a description. Blank lines separate paragraphs, and backticks enclose code. */
export function prose(text) {
  const paragraphs = (text ?? "").split(/\n\s*\n/).filter((paragraph) => paragraph.trim());
  return paragraphs.map((paragraph) => element("p", {}, ...inline(paragraph)));
}

/** Creates the nodes of a text in which backticks enclose code. */
export function inline(text) {
  const parts = text.split("`");
  // An odd number of backticks: show them as characters.
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, index) => (index % 2 ? element("code", {}, part) : part)).filter((part) => part !== "");
}

const variants = (schema) => schema.oneOf ?? schema.anyOf;
const types = (schema) => [schema.type].flat().filter((name) => name && name !== "null");
const isArray = (schema) => types(schema).includes("array");

/** Splits a nullable schema into the schema itself and a flag for `null`. */
function withoutNull(api, schema) {
  const options = variants(schema) ?? [];
  const others = options.filter((option) => api.resolve(option).type !== "null");
  if (others.length === 1 && others.length < options.length) return [others[0], true];
  return [schema, others.length < options.length || [schema.type].flat().includes("null")];
}

/** Returns the name of the type of a schema. */
export function typeName(api, schema, depth = 0) {
  const [bare, isNullable] = withoutNull(api, schema);
  const name = bareTypeName(api, bare, depth);
  return isNullable ? `${name} or null` : name;
}

function bareTypeName(api, schema, depth) {
  const target = api.resolve(schema);
  if (isArray(target)) return depth < MAX_DEPTH ? `array of ${typeName(api, target.items ?? {}, depth + 1)}` : "array";
  if (schema.$ref && parts(api, schema).length > 0) return schema.$ref.split("/").pop();
  if (variants(target)) return "one of several types";
  const name = types(target).join(" or ") || (target.allOf ? "object" : "any value");
  return target.format ? `${name} (${target.format})` : name;
}

/** Returns the schemas inside a schema or inside the items of an array, each with its key or a label. */
function parts(api, schema, depth = 0) {
  if (depth > MAX_DEPTH) return [];
  const target = api.resolve(withoutNull(api, schema)[0]);
  if (isArray(target)) return parts(api, target.items ?? {}, depth + 1);
  const properties = Object.entries(target.properties ?? {}).map(([key, inner]) => ({
    key, schema: inner, isRequired: target.required?.includes(key) ?? false,
  }));
  const others = typeof target.additionalProperties === "object"
    ? [{ label: "any other key", schema: target.additionalProperties }] : [];
  const combined = (target.allOf ?? []).flatMap((inner) => parts(api, inner, depth + 1));
  const options = (variants(target) ?? []).map((inner, index) => ({ label: `variant ${index + 1}`, schema: inner }));
  return [...properties, ...others, ...combined, ...options];
}

/** Creates the view of a schema: its type, description and parts. */
export function schemaView(api, schema) {
  const inside = parts(api, schema);
  const view = [
    element("p", { className: "type" }, typeName(api, schema)),
    ...prose(api.resolve(schema).description), facts(api, schema),
    inside.length > 0 ? partList(api, inside) : null,
  ];
  return view.filter((node) => node !== null);
}

function partList(api, inside) {
  return element("ul", { className: "schema", role: "list" }, ...inside.map((part) => partItem(api, part)));
}

function partItem(api, { key, label, schema, isRequired }) {
  const bare = withoutNull(api, schema)[0];
  const inside = parts(api, bare);
  const line = element("div", { className: "line" },
    key === undefined ? element("span", { className: "hint" }, label) : element("code", { className: "key" }, key),
    element("span", { className: "type" }, typeName(api, schema)),
    isRequired ? element("span", { className: "required" }, "required") : null);
  const description = schema.description ?? bare.description ?? api.resolve(bare).description;
  const count = inside.length === 1 ? "1 part" : `${inside.length} parts`;
  return element("li", {}, line, ...prose(description), facts(api, bare),
    inside.length > 0 ? opened(`${count} of ${key ?? label}`, () => partList(api, inside)) : null);
}

/** Creates a closed section. Its content is created when the user opens it. */
export function opened(title, content, className = "") {
  const section = element("details", { className }, element("summary", {}, ...[title].flat()));
  section.addEventListener("toggle", () => {
    if (section.open && section.childElementCount === 1) section.append(...[content()].flat());
  });
  return section;
}

const LIMITS = [
  ["minimum", "at least"], ["exclusiveMinimum", "more than"], ["maximum", "at most"], ["exclusiveMaximum", "less than"],
  ["minLength", "minimum length"], ["maxLength", "maximum length"], ["minItems", "minimum number of items"],
  ["maxItems", "maximum number of items"], ["pattern", "pattern"], ["default", "default"], ["const", "always"],
  ["example", "example"],
];

/** Creates the line of allowed values and limits of a schema, or of the items of an array. */
export function facts(api, schema) {
  const target = api.resolve(schema);
  const values = target.enum ?? (isArray(target) ? api.resolve(target.items ?? {}).enum : undefined);
  const allowed = (values ?? []).flatMap((value) => [", ", codeOf(value)]).slice(1);
  const limits = LIMITS.filter(([key]) => target[key] !== undefined).map(([key, name]) => [`${name} `, codeOf(target[key])]);
  const texts = allowed.length > 0 ? [["one of ", ...allowed], ...limits] : limits;
  if (texts.length === 0) return null;
  return element("p", { className: "hint" }, ...texts.flatMap((text) => ["; ", ...text]).slice(1));
}

const codeOf = (value) => element("code", {}, typeof value === "string" ? value : JSON.stringify(value));
