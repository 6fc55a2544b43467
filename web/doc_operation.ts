/*
 * What the page knows of an endpoint: its parameters, its body, what it answers. Examples and the
 * form to try it are made from this.
 */
import { Fields, fields, Json, list, text } from "./common.js";
import { media, resolve, sample, whole } from "./doc_spec.js";

const METHODS = ["get", "post", "put", "patch", "delete", "head"];

export interface Operation {
  method: string;
  path: string;
  id: string;
  tag: string;
  spec: Fields;
}

export interface Parameter {
  name: string;
  place: string;
  required: boolean;
  schema: Fields;
  help: string;
}

/* What an example sends. */
export interface Body {
  type: string;
  kind: "json" | "form" | "bytes";
  value: Json; /* of JSON */
  name: string; /* of the form's file */
}

export function operations(): Operation[] {
  return Object.entries(fields(whole()["paths"])).flatMap(([path, item]) =>
    METHODS.filter((method) => method in fields(item)).map((method) => {
      const own = fields(fields(item)[method]);
      const shared = list(fields(item)["parameters"]);
      return {
        method,
        path,
        id: `${method}-${path.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "")}`,
        tag: text(list(own["tags"])[0]) || "other",
        spec: { ...own, parameters: [...shared, ...list(own["parameters"])] },
      };
    }),
  );
}

export function parametersOf(op: Operation): Parameter[] {
  return list(op.spec["parameters"]).map((item) => {
    const parameter = resolve(item);
    return {
      name: text(parameter["name"]),
      place: text(parameter["in"]),
      required: parameter["required"] === true,
      schema: fields(parameter["schema"]),
      help: text(parameter["description"]),
    };
  });
}

export function bodyOf(op: Operation): Body | null {
  const [type, content] = media(resolve(op.spec["requestBody"]))[0] ?? ["", {}];
  if (type === "") return null;
  if (type === "multipart/form-data") {
    const names = list(resolve(content["schema"])["required"]).map(text);
    return { type, kind: "form", value: null, name: names[0] ?? "file" };
  }
  if (!type.endsWith("json")) return { type, kind: "bytes", value: null, name: "" };
  const named = fields(Object.values(fields(content["examples"]))[0]);
  const example = content["example"] ?? named["value"];
  return { type, kind: "json", value: example ?? sample(content["schema"], ""), name: "" };
}

export function isSecured(op: Operation): boolean {
  return list(op.spec["security"] ?? whole()["security"]).length > 0;
}

export function isWebSocket(op: Operation): boolean {
  return "101" in fields(op.spec["responses"]);
}

/* The types of what comes back when all is well. */
function replyTypes(op: Operation): string[] {
  return Object.entries(fields(op.spec["responses"]))
    .filter(([status]) => status.startsWith("2"))
    .flatMap(([, reply]) => media(resolve(reply)).map(([type]) => type));
}

/* How a client reads the reply. Where it may be JSON or a stream, JSON comes unless asked. */
export function replyKind(op: Operation): "json" | "stream" | "bytes" | "text" | "none" {
  const types = replyTypes(op);
  const first = types[0];
  if (first === undefined) return "none";
  if (first === "application/json") return "json";
  if (first === "text/event-stream" || first === "application/x-ndjson") return "stream";
  return first.startsWith("text/") ? "text" : "bytes";
}

/* The path with words where its parameters go, and the query that must be there. */
export function examplePath(op: Operation): string {
  const path = op.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    name === "path" ? "data.csv" : name.toUpperCase());
  const needed = parametersOf(op).filter((p) => p.place === "query" && p.required)
    .map((p) => `${p.name}=${encodeURIComponent(String(sample(firstOf(p.schema), p.name)))}`);
  return needed.length > 0 ? `${path}?${needed.join("&")}` : path;
}

/* Of a parameter that may be there several times, one. */
function firstOf(schema: Fields): Fields {
  return schema["type"] === "array" ? fields(schema["items"]) : schema;
}
