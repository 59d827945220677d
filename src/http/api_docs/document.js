// The OpenAPI document: its operations, and the targets of its references.

/** The base URL of the service. A proxy may serve the page under a path. */
export const ROOT = new URL("../", import.meta.url);

const METHODS = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];
/** Maximum length of a chain of references, because references may be circular. */
const MAX_REFERENCES = 16;

/** Loads the document. */
export async function load() {
  const response = await fetch(new URL("openapi.json", ROOT)).catch(() => null);
  if (!response?.ok) throw new Error("The service does not return its API document.");
  return new ApiDocument(await response.json());
}

export class ApiDocument {
  constructor(json) {
    this.json = json;
    this.operations = Object.entries(json.paths ?? {}).flatMap(([path, item]) =>
      METHODS.filter((method) => item[method]).map((method) => this.#operation(path, item, method)));
  }

  #operation(path, item, method) {
    const described = item[method];
    const parameters = [...(item.parameters ?? []), ...(described.parameters ?? [])];
    const servers = described.servers ?? item.servers ?? this.json.servers ?? [];
    const prefix = (servers[0]?.url ?? "/").replace(/\/$/, "");
    return {
      ...described,
      method,
      path: prefix + path,
      id: described.operationId ?? `${method} ${path}`,
      tag: described.tags?.[0] ?? "other",
      parameters: parameters.map((parameter) => this.resolve(parameter)),
      security: described.security ?? this.json.security ?? [],
      isImplemented: described["x-not-implemented"] !== true,
    };
  }

  /**
   * Returns the tags in the order of the document, each with its description and operations. Tags of operations that
   * the service does not implement come last.
   */
  tags() {
    const known = this.json.tags ?? [];
    const names = new Set([...known.map((tag) => tag.name), ...this.operations.map((operation) => operation.tag)]);
    const byName = (name) => ({
      name,
      description: known.find((tag) => tag.name === name)?.description,
      operations: this.operations.filter((operation) => operation.tag === name),
    });
    const isLacking = (tag) => tag.operations.every((operation) => !operation.isImplemented);
    const tags = [...names].map(byName).filter((tag) => tag.operations.length > 0);
    return tags.sort((one, other) => isLacking(one) - isLacking(other));
  }

  /** Returns the security scheme with this name. */
  scheme(name) {
    return this.resolve(this.json.components?.securitySchemes?.[name] ?? {});
  }

  /** Returns the target of a reference, or the value itself. */
  resolve(value) {
    for (let count = 0; value?.$ref && count < MAX_REFERENCES; count += 1) value = this.#target(value.$ref);
    return value?.$ref ? {} : (value ?? {});
  }

  #target(reference) {
    const keys = reference.replace(/^#\/?/, "").split("/");
    const unescaped = keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    return unescaped.reduce((value, key) => (Object.hasOwn(value ?? {}, key) ? value[key] : undefined), this.json);
  }
}
