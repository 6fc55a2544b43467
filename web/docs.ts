/*
 * /openapi.json for people: endpoints by tag, the fields they take, what they answer, a command
 * line to try, and the schemas they share.
 */
import {
  askForKey, byId, describe, el, Fields, fields, getJson, Json, list, text, wantsKey,
} from "./common.js";

const METHODS = ["get", "post", "put", "patch", "delete", "head"];
/* Objects inside objects are shown as a.b.c; a schema that holds itself must end somewhere. */
const MAX_DEPTH = 4;
/* What to put into an example where the specification gives none. */
const SAMPLE_VALUES: Record<string, string> = {
  code: "print(6 * 7)",
  cmd: "ls -l",
  path: "data.csv",
};

interface Operation {
  method: string;
  path: string;
  id: string;
  tag: string;
  spec: Fields;
}

let spec: Fields = {};

function schemas(): Fields {
  return fields(fields(spec["components"])["schemas"]);
}

function refName(schema: Fields): string {
  return text(schema["$ref"]).split("/").pop() ?? "";
}

/* Follows a reference anywhere in the document ("#/components/…"). */
function resolve(value: Json | undefined, depth = 0): Fields {
  const here = fields(value);
  const ref = text(here["$ref"]);
  if (!ref.startsWith("#/") || depth > MAX_DEPTH) return here;
  let found: Json | undefined = spec;
  for (const part of ref.slice(2).split("/"))
    found = fields(found)[part.replace(/~1/g, "/").replace(/~0/g, "~")];
  return resolve(found, depth + 1);
}

/* Plain text in which `this` is code. */
function prose(words: string): (Node | string)[] {
  return words.split("`").map((part, i) => (i % 2 === 1 ? el("code", {}, part) : part));
}

function paragraphs(words: string): Node[] {
  return words.split(/\n\s*\n/).filter((p) => p.trim()).map((p) => el("p", {}, ...prose(p)));
}

/* Types, bounds, defaults. */

function joined(parts: (Node | string)[][], word: string): (Node | string)[] {
  return parts.flatMap((part, i) => (i === 0 ? part : [` ${word} `, ...part]));
}

function alternatives(schema: Fields): Json[] {
  return [...list(schema["anyOf"]), ...list(schema["oneOf"])];
}

/* A type in words, references as links. */
function typeOf(value: Json | undefined): (Node | string)[] {
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

interface Row {
  name: string;
  required: boolean;
  schema: Fields;
  help: string;
}

function withFallback(schema: Fields, key: string): Json | undefined {
  return schema[key] ?? resolve(schema)[key];
}

/* The fields of an object, and of objects written out inside it. Named ones are links instead. */
function rowsOf(value: Json | undefined, prefix = "", depth = 0): Row[] {
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
function table(heads: string[], rows: (Node | string)[][][]): HTMLElement {
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

function fieldTable(rows: Row[]): HTMLElement {
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

/* An endpoint. */

function operations(): Operation[] {
  return Object.entries(fields(spec["paths"])).flatMap(([path, item]) =>
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

function parameters(op: Operation): Node[] {
  const rows = list(op.spec["parameters"]).map((item) => {
    const parameter = resolve(item);
    const place = text(parameter["in"]);
    const schema = fields(parameter["schema"]);
    const help = [place === "path" ? "" : `In the ${place}.`, text(parameter["description"])];
    return {
      name: text(parameter["name"]),
      required: parameter["required"] === true,
      schema,
      help: help.filter((part) => part).join(" "),
    };
  });
  return rows.length > 0 ? [el("h4", {}, "Parameters"), fieldTable(rows)] : [];
}

function media(holder: Fields): [string, Fields][] {
  return Object.entries(fields(holder["content"])).map(([type, value]) => [type, fields(value)]);
}

function requestBody(op: Operation): Node[] {
  return media(resolve(op.spec["requestBody"])).flatMap(([type, content]) => {
    const schema = fields(content["schema"]);
    const title = el("h4", {}, "Body, ", el("code", {}, type));
    if (schema["$ref"] !== undefined) title.append(", ", ...typeOf(schema));
    const rows = rowsOf(schema);
    return [title, rows.length > 0 ? fieldTable(rows) : el("p", {}, ...typeOf(schema))];
  });
}

function replies(op: Operation): Node[] {
  const rows = Object.entries(fields(op.spec["responses"])).map(([status, item]) => {
    const reply = resolve(item);
    const kinds = media(reply).map(([type, content]): (Node | string)[] => {
      const known = Object.keys(fields(content["schema"])).length > 0;
      return [el("code", {}, type), ...(known ? [" ", ...typeOf(content["schema"])] : [])];
    });
    return [[el("code", {}, status)], joined(kinds, "or"), prose(text(reply["description"]))];
  });
  if (rows.length === 0) return [];
  return [el("h4", {}, "Replies"), table(["Status", "Body", "Meaning"], rows)];
}

/* A command line to try. */

function sample(value: Json | undefined, name: string, depth = 0): Json {
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

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

function bodyOptions(op: Operation): string[] {
  const [type, content] = media(resolve(op.spec["requestBody"]))[0] ?? ["", {}];
  if (type === "") return [];
  if (type === "multipart/form-data") {
    const names = list(resolve(content["schema"])["required"]).map(text);
    return (names.length > 0 ? names : ["file"]).map((name) => `-F ${name}=@data.csv`);
  }
  const header = `-H ${quoted(`Content-Type: ${type}`)}`;
  if (!type.endsWith("json")) return [header, "--data-binary @data.bin"];
  const named = fields(Object.values(fields(content["examples"]))[0]);
  const example = content["example"] ?? named["value"];
  return [header, `-d ${quoted(JSON.stringify(example ?? sample(content["schema"], "")))}`];
}

function replyOptions(op: Operation): string[] {
  const types = Object.entries(fields(op.spec["responses"]))
    .filter(([status]) => status.startsWith("2"))
    .flatMap(([, reply]) => media(resolve(reply)).map(([type]) => type));
  if (types.includes("text/event-stream") || types.includes("application/x-ndjson")) return ["-N"];
  return types.includes("application/octet-stream") ? ["-o data.bin"] : [];
}

function curl(op: Operation): Node[] {
  const plain: Record<string, string> = { get: "curl", head: "curl -I" };
  const start = plain[op.method] ?? `curl -X ${op.method.toUpperCase()}`;
  const secured = list(op.spec["security"] ?? spec["security"]).length > 0;
  const parts = [
    `${start} ${quoted(location.origin + op.path)}`,
    ...(secured ? ['-H "Authorization: Bearer $CLOCHE_API_KEY"'] : []),
    ...bodyOptions(op),
    ...replyOptions(op),
  ];
  const shown = parts.join(" \\\n  ");
  return [el("h4", {}, "Example"), el("pre", { tabindex: "0" }, el("code", {}, shown))];
}

function heading(op: Operation): (Node | string)[] {
  const badge = el("span", { class: `method ${op.method}` }, op.method.toUpperCase());
  return [badge, el("code", {}, op.path)];
}

function endpoint(op: Operation): HTMLElement {
  const summary = text(op.spec["summary"]);
  const description = text(op.spec["description"]);
  return el("article", { id: op.id },
    el("h3", {}, ...heading(op)),
    ...paragraphs(summary),
    ...(description === summary ? [] : paragraphs(description)),
    ...(op.spec["deprecated"] === true ? [el("p", { class: "error" }, "Deprecated.")] : []),
    ...parameters(op), ...requestBody(op), ...replies(op), ...curl(op));
}

function schemaArticle(name: string): HTMLElement {
  const schema = resolve(schemas()[name]);
  const rows = rowsOf(schema);
  return el("article", { id: `schema-${name}` },
    el("h3", {}, el("code", {}, name)),
    ...paragraphs(text(schema["description"])),
    rows.length > 0 ? fieldTable(rows) : el("p", {}, ...typeOf(schema)));
}

/* The page. */

function tags(all: Operation[]): [string, Operation[]][] {
  const named = list(spec["tags"]).map((tag) => text(fields(tag)["name"]));
  const order = new Set([...named, ...all.map((op) => op.tag)]);
  return [...order].map((tag): [string, Operation[]] => [tag, all.filter((op) => op.tag === tag)])
    .filter(([, found]) => found.length > 0);
}

function tagDescription(tag: string): Node[] {
  const found = list(spec["tags"]).map(fields).find((item) => item["name"] === tag);
  return paragraphs(text(found?.["description"]));
}

function contents(groups: [string, Operation[]][], names: string[]): Node[] {
  const links = groups.flatMap(([tag, found]) => [
    el("h3", {}, tag),
    el("ul", {}, ...found.map((op) =>
      el("li", {}, el("a", { href: `#${op.id}` }, ...heading(op))))),
  ]);
  if (names.length === 0) return links;
  return [...links, el("h3", {}, "Schemas"),
    el("ul", {}, ...names.map((name) => el("li", {}, el("a", { href: `#schema-${name}` }, name))))];
}

function render(): void {
  const info = fields(spec["info"]);
  const names = Object.keys(schemas());
  const groups = tags(operations());
  byId("title", HTMLHeadingElement).textContent =
    `${text(info["title"]) || "The API"} ${text(info["version"])}`.trim();
  byId("about", HTMLParagraphElement).replaceChildren(...prose(text(info["description"])));
  byId("contents", HTMLElement).replaceChildren(...contents(groups, names));
  const parts: Node[] = groups.flatMap(([tag, found]) =>
    [el("h2", {}, tag), ...tagDescription(tag), ...found.map(endpoint)]);
  if (names.length > 0) parts.push(el("h2", {}, "Schemas"), ...names.map(schemaArticle));
  byId("api", HTMLElement).replaceChildren(...parts);
}

async function load(): Promise<void> {
  const status = byId("status", HTMLDivElement);
  try {
    spec = await getJson("/openapi.json");
    render();
    status.replaceChildren();
    /* The browser looked for the #fragment before there was anything to find. */
    if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  } catch (error) {
    status.replaceChildren(...describe(error));
    if (wantsKey(error)) askForKey(() => void load());
  }
}

void load();
