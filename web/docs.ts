/*
 * /openapi.json for people: endpoints by tag, the fields they take, what they answer and refuse,
 * examples, a form to try each, and the schemas they share. A search hides what does not fit.
 */
import {
  askForKey, byId, describe, el, fields, getJson, list, recall, remember, text, wantsKey,
} from "./common.js";
import { example, Language, LANGUAGES } from "./doc_examples.js";
import { isWebSocket, Operation, operations, parametersOf } from "./doc_operation.js";
import {
  fieldTable, joined, media, paragraphs, prose, resolve, rowsOf, schemas, setSpec, table, typeOf,
  whole,
} from "./doc_spec.js";
import { tryForm } from "./doc_try.js";

/* An endpoint. */

function parameters(op: Operation): Node[] {
  const rows = parametersOf(op).map((p) => {
    const place = p.place === "path" ? "" : `in the ${p.place}`;
    return { ...p, help: [place, p.help].filter((part) => part).join(": ") };
  });
  return rows.length > 0 ? [el("h4", {}, "Parameters"), fieldTable(rows)] : [];
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
  const rows = Object.entries(fields(op.spec["responses"]))
    .filter(([status]) => Number(status) < 400)
    .map(([status, item]) => {
      const reply = resolve(item);
      const kinds = media(reply).map(([type, content]): (Node | string)[] =>
        [el("code", {}, type), " ", ...typeOf(content["schema"])]);
      return [[el("code", {}, status)], joined(kinds, "or"), prose(text(reply["description"]))];
    });
  if (rows.length === 0) return [];
  return [el("h4", {}, "Replies"), table(["Status", "Body", "Meaning"], rows)];
}

/* The codes of a refusal: `description` has them between backquotes. */
function codes(description: string): string[] {
  return description.split("`").filter((_, i) => i % 2 === 1);
}

function errors(op: Operation): Node[] {
  const about = fields(whole()["x-errors"]);
  const rows = Object.entries(fields(op.spec["responses"]))
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([status, item]) => codes(text(resolve(item)["description"])).map((code) => {
      const own = fields(about[code]);
      const again = own["retryable"] === true ? "yes" : "";
      return [[el("code", {}, status)], [el("code", {}, code)], [again], prose(text(own["remediation"]))];
    }));
  if (rows.length === 0) return [];
  const heads = ["Status", "Code", "Try again", "What to do"];
  return [folded(`Errors (${rows.length})`, "errors", () => [table(heads, rows)])];
}

function messages(op: Operation): Node[] {
  const both = fields(op.spec["x-websocket"]);
  const rows = Object.entries(both).map(([who, schema]) => [[who], typeOf(schema)]);
  return rows.length > 0 ? [el("h4", {}, "Messages"), table(["From", "What"], rows)] : [];
}

/* What is made when it is first opened: a page of everything would be slow. */
function folded(title: string, kind: string, make: () => Node[]): HTMLElement {
  const made = el("details", { class: kind }, el("summary", {}, title));
  made.ontoggle = () => {
    if (made.open && made.childElementCount === 1) made.append(...make());
  };
  return made;
}

/* Examples. The language is chosen once, for all of them. */

function chosen(): Language {
  const word = recall("localStorage", "cloche.docs.language");
  return LANGUAGES.find((language) => language === word) ?? "curl";
}

function choose(language: Language): void {
  remember("localStorage", "cloche.docs.language", language);
  for (const button of document.querySelectorAll<HTMLButtonElement>(".languages button"))
    button.setAttribute("aria-pressed", String(button.textContent === language));
  for (const shown of document.querySelectorAll<HTMLElement>("[data-language]"))
    shown.hidden = shown.dataset["language"] !== language;
}

function examples(op: Operation): Node[] {
  const buttons = LANGUAGES.map((language) => {
    const pressed = String(language === chosen());
    const button = el("button", { type: "button", class: "small", "aria-pressed": pressed }, language);
    button.onclick = () => choose(language);
    return button;
  });
  const shown = LANGUAGES.map((language) => {
    const code = el("code", {}, example(op, language));
    const made = el("pre", { tabindex: "0", "data-language": language }, code);
    made.hidden = language !== chosen();
    return made;
  });
  const bar = el("div", { class: "row languages", role: "group", "aria-label": "Language" }, ...buttons);
  return [el("h4", {}, "Example"), bar, ...shown];
}

function trial(op: Operation): Node[] {
  return isWebSocket(op) ? [] : [folded("Try it", "trial", () => [tryForm(op)])];
}

function heading(op: Operation): (Node | string)[] {
  const badge = el("span", { class: `method ${op.method}` }, op.method.toUpperCase());
  return [badge, el("code", {}, op.path)];
}

/* What a search looks through: names and words, also of the fields. */
function wordsOf(op: Operation): string {
  const body = media(resolve(op.spec["requestBody"])).flatMap(([, c]) => rowsOf(c["schema"]));
  const refused = Object.values(fields(op.spec["responses"]))
    .map((reply) => text(resolve(reply)["description"]));
  return [
    op.method, op.path, op.tag, text(op.spec["summary"]), text(op.spec["description"]),
    ...[...parametersOf(op), ...body].flatMap((row) => [row.name, row.help]), ...refused,
  ].join(" ").toLowerCase();
}

function endpoint(op: Operation): HTMLElement {
  const summary = text(op.spec["summary"]);
  const description = text(op.spec["description"]);
  return el("article", { id: op.id, "data-words": wordsOf(op) },
    el("h3", {}, ...heading(op)),
    ...paragraphs(summary),
    ...(description === summary ? [] : paragraphs(description)),
    ...(op.spec["deprecated"] === true ? [el("p", { class: "error" }, "Deprecated.")] : []),
    ...parameters(op), ...requestBody(op), ...messages(op), ...replies(op), ...errors(op),
    ...examples(op), ...trial(op));
}

function schemaArticle(name: string): HTMLElement {
  const schema = resolve(schemas()[name]);
  const rows = rowsOf(schema);
  const words = [name, ...rows.flatMap((row) => [row.name, row.help])].join(" ").toLowerCase();
  return el("article", { id: `schema-${name}`, "data-words": words },
    el("h3", {}, el("code", {}, name)),
    ...paragraphs(text(schema["description"])),
    rows.length > 0 ? fieldTable(rows) : el("p", {}, ...typeOf(schema)));
}

/* The search. */

function fits(article: HTMLElement, wanted: string[]): boolean {
  const words = article.dataset["words"] ?? "";
  return wanted.every((word) => words.includes(word));
}

/* A heading goes with the last of what is below it. */
function hideEmpty(headings: NodeListOf<HTMLElement>, isBelow: (node: Element) => boolean): void {
  for (const heading of headings) {
    const below: HTMLElement[] = [];
    for (let at = heading.nextElementSibling; at && isBelow(at); at = at.nextElementSibling)
      if (at instanceof HTMLElement) below.push(at);
    const found = below.flatMap((node) =>
      node.matches("article") ? [node] : [...node.querySelectorAll<HTMLElement>("li")]);
    const hidden = found.every((node) => node.hidden);
    for (const node of [heading, ...below]) if (!node.matches("article")) node.hidden = hidden;
  }
}

function search(): void {
  const wanted = byId("search", HTMLInputElement).value.toLowerCase().split(/\s+/).filter((w) => w);
  const shown = new Set<string>();
  const articles = document.querySelectorAll<HTMLElement>("#api article");
  for (const article of articles) {
    article.hidden = !fits(article, wanted);
    if (!article.hidden) shown.add(article.id);
  }
  for (const item of document.querySelectorAll<HTMLElement>("#contents li"))
    item.hidden = !shown.has(item.querySelector("a")?.hash.slice(1) ?? "");
  hideEmpty(document.querySelectorAll("#api > h2"), (node) => !node.matches("h2"));
  hideEmpty(document.querySelectorAll("#contents > h3"), (node) => !node.matches("h3"));
  byId("found", HTMLSpanElement).textContent =
    wanted.length > 0 ? `${shown.size} of ${articles.length}` : "";
}

/* A link leads to what it names, whatever is searched for. */
function reveal(): void {
  const target = location.hash ? document.getElementById(location.hash.slice(1)) : null;
  if (target?.hidden) {
    byId("search", HTMLInputElement).value = "";
    search();
  }
  target?.scrollIntoView();
}

function startSearch(): void {
  const input = byId("search", HTMLInputElement);
  input.oninput = search;
  byId("search-form", HTMLFormElement).onsubmit = (event) => event.preventDefault();
  window.onhashchange = reveal;
  document.onkeydown = (event) => {
    const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea");
    if (event.key !== "/" || typing) return;
    event.preventDefault();
    input.focus();
  };
}

/* The page. */

function tags(all: Operation[]): [string, Operation[]][] {
  const named = list(whole()["tags"]).map((tag) => text(fields(tag)["name"]));
  const order = new Set([...named, ...all.map((op) => op.tag)]);
  return [...order].map((tag): [string, Operation[]] => [tag, all.filter((op) => op.tag === tag)])
    .filter(([, found]) => found.length > 0);
}

function tagDescription(tag: string): Node[] {
  const found = list(whole()["tags"]).map(fields).find((item) => item["name"] === tag);
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
  const info = fields(whole()["info"]);
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
    setSpec(await getJson("/openapi.json"));
    render();
    startSearch();
    status.replaceChildren();
    reveal(); /* the browser looked for the #fragment before there was anything to find */
  } catch (error) {
    status.replaceChildren(...describe(error));
    if (wantsKey(error)) askForKey(() => void load());
  }
}

byId("use-key", HTMLButtonElement).onclick = () => askForKey(() => undefined);
void load();
