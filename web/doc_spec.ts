/*
 * The specification as the page reads it: references followed, types in words, tables of fields, and
 * values to begin with.
 */
import { el, Fields, fields, Json, list, text } from "./common.js";

/* Objects inside objects are shown as a.b.c; a schema that holds itself must end somewhere. */
const MAX_DEPTH = 4;
/* What to put into an example where the specification gives none. */
const SAMPLE_VALUES: Record<string, string> = {
  code: "print(6 * 7)",
  cmd: "ls -l",
  path: "data.csv",
};

let spec: Fields = {};

export function setSpec(read: Fields): void {
  spec = read;
}

export function whole(): Fields {
  return spec;
}

export function schemas(): Fields {
  return fields(fields(spec["components"])["schemas"]);
}

function refName(schema: Fields): string {
  return text(schema["$ref"]).split("/").pop() ?? "";
}

/* Follows a reference anywhere in the document ("#/components/…"). */
export function resolve(value: Json | undefined, depth = 0): Fields {
  const here = fields(value);
  const ref = text(here["$ref"]);
  if (!ref.startsWith("#/") || depth > MAX_DEPTH) return here;
  let found: Json | undefined = spec;
  for (const part of ref.slice(2).split("/"))
    found = fields(found)[part.replace(/~1/g, "/").replace(/~0/g, "~")];
  return resolve(found, depth + 1);
}

/* Plain text in which `this` is code. */
export function prose(words: string): (Node | string)[] {
  return words.split("`").map((part, i) => (i % 2 === 1 ? el("code", {}, part) : part));
}

export function paragraphs(words: string): Node[] {
  return words.split(/\n\s*\n/).filter((p) => p.trim()).map((p) => el("p", {}, ...prose(p)));
}

/* Types, bounds, defaults. */

export function joined(parts: (Node | string)[][], word: string): (Node | string)[] {
  return parts.flatMap((part, i) => (i === 0 ? part : [` ${word} `, ...part]));
}

export function alternatives(schema: Fields): Json[] {
  return [...list(schema["anyOf"]), ...list(schema["oneOf"])];
}

/* A type in words, references as links. */
export function typeOf(value: Json | undefined): (Node | string)[] {
  const schema = fields(value);
  if (schema["$ref"] !== undefined) {
    const name = refName(schema);
    return name in schemas() ? [el("a", { href: `#schema-${name}` }, name)] : [name];
  }
  const choices = alternatives(schema);
  if (choices.length > 0) return joined(choices.map(typeOf), "or");
  if (list(schema["allOf"]).length > 0) return joined(list(schema["allOf"]).map(typeOf), "and");
  if (schema["const"] !== undefined) return [el("code", {}, JSON.stringify(schema["const"]))];
  if (Array.isArray(schema["enum"]))
    return joined(schema["enum"].map((v) => [el("code", {}, JSON.stringify(v))]), "or");
  const types = Array.isArray(schema["type"]) ? schema["type"] : [schema["type"] ?? "any"];
  return joined(types.map((type) => oneType(text(type), schema)), "or");
}

function oneType(type: string, schema: Fields): (Node | string)[] {
  if (type === "array") {
    if (Object.keys(fields(schema["items"])).length === 0) return ["list"];
    return ["list of ", ...typeOf(schema["items"])];
  }
  if (type === "object" && Object.keys(fields(schema["additionalProperties"])).length > 0)
    return ["object of ", ...typeOf(schema["additionalProperties"])];
  const format = text(schema["format"]);
  return type === "string" && format ? [`string (${format})`] : [type];
}

function range(low: Json | undefined, high: Json | undefined, unit: string): string {
  const end = unit ? ` ${unit}` : "";
  if (typeof low === "number" && typeof high === "number") return `${low} to ${high}${end}`;
  if (typeof low === "number") return `at least ${low}${end}`;
  return typeof high === "number" ? `at most ${high}${end}` : "";
}

/* The bounds of a schema, or of the one alternative that has any ("integer or null"). */
function boundsOf(value: Json | undefined): string {
  const schema = fields(value);
  const above = schema["exclusiveMinimum"];
  const below = schema["exclusiveMaximum"];
  const own = [
    range(schema["minimum"], schema["maximum"], ""),
    typeof above === "number" ? `more than ${above}` : "",
    typeof below === "number" ? `less than ${below}` : "",
    range(schema["minLength"], schema["maxLength"], "characters"),
    range(schema["minItems"], schema["maxItems"], "items"),
    range(schema["minProperties"], schema["maxProperties"], "entries"),
    text(schema["pattern"]) ? `matches ${text(schema["pattern"])}` : "",
  ];
  return [...own, ...alternatives(schema).map(boundsOf)].filter((part) => part).join(", ");
}

/* Tables. */

export interface Row {
  name: string;
  required: boolean;
  schema: Fields;
  help: string;
}

function withFallback(schema: Fields, key: string): Json | undefined {
  return schema[key] ?? resolve(schema)[key];
}

/* The fields of an object, and of objects written out inside it. Named ones are links instead. */
export function rowsOf(value: Json | undefined, prefix = "", depth = 0): Row[] {
  const schema = resolve(value);
  const parts = list(schema["allOf"]).flatMap((part) => rowsOf(part, prefix, depth + 1));
  const required = list(schema["required"]);
  if (depth > MAX_DEPTH) return parts;
  return parts.concat(
    Object.entries(fields(schema["properties"])).flatMap(([name, property]) => {
      const own = fields(property);
      const help = text(withFallback(own, "description"));
      const row = { name: prefix + name, required: required.includes(name), schema: own, help };
      return [row, ...innerRows(own, prefix + name, depth + 1)];
    }),
  );
}

function innerRows(schema: Fields, name: string, depth: number): Row[] {
  if (schema["$ref"] !== undefined) return [];
  const items = fields(schema["items"]);
  if (Object.keys(items).length > 0)
    return items["$ref"] === undefined ? rowsOf(items, `${name}[].`, depth) : [];
  const inside = alternatives(schema).flatMap((part) => innerRows(fields(part), name, depth + 1));
  return [...rowsOf(schema, `${name}.`, depth), ...inside];
}

/* Columns that no row fills are left out. */
export function table(heads: string[], rows: (Node | string)[][][]): HTMLElement {
  const used = heads.map((_, i) => i === 0 || rows.some((row) => (row[i] ?? []).join("") !== ""));
  const shown = heads.filter((_, i) => used[i]);
  const head = el("tr", {}, ...shown.map((h) => el("th", { scope: "col" }, h)));
  const body = rows.map((row) => {
    const cells = row.map((cell, i) =>
      i === 0
        ? el("th", { scope: "row" }, ...cell)
        : el("td", { "data-label": heads[i] ?? "" }, ...cell.filter((part) => part !== "")));
    return el("tr", {}, ...cells.filter((_, i) => used[i]));
  });
  return el("table", {}, el("thead", {}, head), el("tbody", {}, ...body));
}

export function fieldTable(rows: Row[]): HTMLElement {
  return table(
    ["Field", "Type", "Default", "Bounds", "Meaning"],
    rows.map(({ name, required, schema, help }) => {
      const standard = withFallback(schema, "default");
      const label: (Node | string)[] = [el("code", {}, name)];
      if (required) label.push(el("span", { class: "required" }, "required"));
      return [
        label,
        typeOf(schema),
        standard === undefined ? [] : [el("code", {}, JSON.stringify(standard))],
        [boundsOf(schema)],
        prose(help),
      ];
    }),
  );
}

/* Values to begin with. */

export function sample(value: Json | undefined, name: string, depth = 0): Json {
  const schema = resolve(value);
  const given = schema["example"] ?? list(schema["examples"])[0] ?? schema["const"];
  if (given !== undefined) return given;
  if (SAMPLE_VALUES[name] !== undefined) return SAMPLE_VALUES[name] ?? "";
  if (schema["default"] !== undefined && schema["default"] !== null) return schema["default"];
  const first = list(schema["enum"])[0] ?? undefined;
  if (first !== undefined) return first;
  const choice = alternatives(schema)[0];
  if (choice !== undefined && depth < MAX_DEPTH) return sample(choice, name, depth + 1);
  const type = Array.isArray(schema["type"]) ? text(schema["type"][0]) : text(schema["type"]);
  if (type === "integer" || type === "number") return schema["minimum"] ?? 1;
  if (type === "boolean") return true;
  if (type === "array") return depth < MAX_DEPTH ? [sample(schema["items"], name, depth + 1)] : [];
  return type === "string" ? "…" : sampleObject(schema, depth);
}

/* Only what must be there. */
function sampleObject(schema: Fields, depth: number): Fields {
  const made: Fields = {};
  if (depth > MAX_DEPTH) return made;
  for (const part of list(schema["allOf"]))
    Object.assign(made, sampleObject(resolve(part), depth + 1));
  for (const name of list(schema["required"]).map(text))
    made[name] = sample(fields(schema["properties"])[name], name, depth + 1);
  return made;
}

export function media(holder: Fields): [string, Fields][] {
  return Object.entries(fields(holder["content"])).map(([type, value]) => [type, fields(value)]);
}
