/*
 * The playground: an editor, and what became of the program.
 *
 * A run is one POST to /v1/execute/stream, read as it arrives. Stop closes that connection: that is
 * how the service is told to end the program.
 */
import {
  askForKey, byId, describe, el, Fields, fields, getJson, hasKey, Json, list, recall, remember,
  request, text, wantsKey,
} from "./common.js";
import { Screen } from "./screen.js";

const EXAMPLES: Record<string, string> = {
  Hello: `import time

for word in ["Hello", "from", "under", "glass"]:
    print(word)
    time.sleep(0.3)
`,
  Table: `import pandas as pd

sales = pd.DataFrame(
    {
        "plant": ["tomato", "lettuce", "tomato", "basil", "lettuce"],
        "sold": [12, 30, 9, 41, 22],
        "price": [3.5, 1.2, 3.4, 2.0, 1.3],
    }
)
sales["total"] = sales.sold * sales.price
print(sales)
print()
print(sales.groupby("plant").total.sum().sort_values(ascending=False))
`,
  Plot: `import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 4 * np.pi, 400)
plt.figure(figsize=(7, 3.5))
plt.plot(x, np.sin(x), label="sine")
plt.plot(x, np.sin(x) * np.exp(-x / 6), label="damped")
plt.legend()
plt.savefig("waves.png", dpi=110)
print("saved waves.png")
`,
  Error: `def share(cake, guests):
    return cake / guests


print(share(12, 4))
print(share(12, 0))
`,
};

const STATUS_WORDS: Record<string, string> = {
  ok: "Finished",
  error: "Ended with an error",
  timeout: "Time limit reached",
  memory_exceeded: "Out of memory",
  killed: "Killed",
  interrupted: "Interrupted",
};

const IMAGE_TYPES: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  svg: "image/svg+xml",
};
/* A program may make thousands of pictures; the rest are links. */
const MAX_IMAGES = 12;
const MAX_IMAGE_BYTES = 20_000_000;
/* A day: the service has its own idea of too long, and says so. */
const MAX_SECONDS = 86_400;

const code = byId("code", HTMLTextAreaElement);
const runButton = byId("run", HTMLButtonElement);
const stopButton = byId("stop", HTMLButtonElement);
const profile = byId("profile", HTMLSelectElement);
const profileNote = byId("profile-note", HTMLParagraphElement);
const seconds = byId("seconds", HTMLInputElement);
const output = byId("output", HTMLPreElement);
const statusLine = byId("status", HTMLDivElement);
const files = byId("files", HTMLUListElement);
const screen = new Screen(output);

let running: AbortController | null = null;

/* The editor. */

/* Through execCommand, although it is deprecated, because only that can be undone with Ctrl+Z. */
function insert(what: string): void {
  if (document.execCommand("insertText", false, what)) return;
  code.setRangeText(what, code.selectionStart, code.selectionEnd, "end");
  code.dispatchEvent(new Event("input"));
}

function lineStart(position: number): number {
  return code.value.lastIndexOf("\n", position - 1) + 1;
}

/* Indents or dedents every line that the selection touches, and keeps them selected. */
function shiftLines(back: boolean): void {
  const from = lineStart(code.selectionStart);
  const old = code.value.slice(from, code.selectionEnd);
  const lines = old.split("\n").map((line) => {
    if (back) return line.replace(/^ {1,4}|^\t/, "");
    return line === "" ? line : `    ${line}`;
  });
  if (lines.join("\n") === old) return;
  code.setSelectionRange(from, code.selectionEnd);
  insert(lines.join("\n"));
  if (lines.length > 1) code.setSelectionRange(from, code.selectionEnd);
}

function tab(back: boolean): void {
  const selected = code.value.slice(code.selectionStart, code.selectionEnd);
  if (back || selected.includes("\n")) {
    shiftLines(back);
    return;
  }
  const column = code.selectionStart - lineStart(code.selectionStart);
  insert(" ".repeat(4 - (column % 4)));
}

/* A new line begins where the last one did, one step deeper after a colon. */
function newLine(): void {
  const before = code.value.slice(lineStart(code.selectionStart), code.selectionStart);
  const indent = /^[ \t]*/.exec(before)?.[0] ?? "";
  insert(`\n${indent}${/:\s*$/.test(before) ? "    " : ""}`);
}

/* Tab belongs to the editor, except right after Escape: people without a mouse must get out. */
let leaving = false;

function onKey(event: KeyboardEvent): void {
  if (event.isComposing) return;
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (event.key === "Tab" && plain && !leaving) {
    event.preventDefault();
    tab(event.shiftKey);
  } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    void run();
  } else if (event.key === "Enter" && plain && !event.shiftKey) {
    event.preventDefault();
    newLine();
  }
  if (event.key !== "Shift") leaving = event.key === "Escape";
}

function setUpEditor(): void {
  const names = Object.keys(EXAMPLES);
  code.value = recall("localStorage", "cloche.code") ?? EXAMPLES[names[0] ?? ""] ?? "";
  code.addEventListener("keydown", onKey);
  code.addEventListener("blur", () => (leaving = false));
  code.addEventListener("input", () => remember("localStorage", "cloche.code", code.value));
  for (const name of names) {
    const button = el("button", { type: "button", class: "small" }, name);
    button.addEventListener("click", () => {
      code.focus();
      code.select();
      insert(EXAMPLES[name] ?? "");
      code.setSelectionRange(0, 0);
      code.scrollTop = 0;
    });
    byId("examples", HTMLDivElement).append(button);
  }
}

/* Output, as it comes. */

let atEnd = true;
let scrolling = false;
let lastTop = 0;

/* Only going up means that somebody wants to read: by the time we hear of a scroll of our own, more
   may have come and the end be elsewhere. */
function onScroll(): void {
  const top = output.scrollTop;
  if (top < lastTop) atEnd = false;
  if (top + output.clientHeight >= output.scrollHeight - 8) atEnd = true;
  lastTop = top;
}

/* Once a frame: to ask for the height after every piece would lay the whole text out each time. */
function scrollDown(): void {
  if (scrolling || !atEnd) return;
  scrolling = true;
  requestAnimationFrame(() => {
    scrolling = false;
    output.scrollTop = output.scrollHeight;
  });
}

function showOutput(stream: string, data: string): void {
  screen.write(stream === "stderr" ? "stderr" : "stdout", data);
  scrollDown();
}

function showStatus(kind: string, ...said: (Node | string)[]): void {
  statusLine.dataset["kind"] = kind;
  statusLine.replaceChildren(...said);
}

/* Server-sent events, by hand, because EventSource cannot POST. Yields name and data. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<[string, string]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let name = "";
  let data: string[] = [];
  for (;;) {
    const piece = await reader.read();
    if (piece.done) return;
    const lines = (rest + decoder.decode(piece.value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.map((l) => l.replace(/\r$/, ""))) {
      const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
      if (field === "event") name = value ?? "";
      else if (field === "data") data.push(value ?? "");
      else if (line === "") {
        if (data.length > 0) yield [name, data.join("\n")];
        name = "";
        data = [];
      }
    }
  }
}

/* A run. */

function asked(): string {
  const limit = Math.min(Math.max(seconds.valueAsNumber || 10, 0.001), MAX_SECONDS);
  return JSON.stringify({
    code: code.value,
    profile: profile.value,
    figures: true,
    timeout_ms: Math.round(limit * 1000),
  });
}

async function follow(body: ReadableStream<Uint8Array>): Promise<void> {
  let ended = false;
  for await (const [name, data] of events(body)) {
    const value = fields(JSON.parse(data) as Json);
    if (name === "output") {
      showOutput(text(value["stream"]), text(value["data"]));
    } else if (name === "result") {
      ended = true;
      showResult(value);
    } else if (name === "error") {
      ended = true;
      showStatus("refused", el("p", { class: "error" }, text(value["message"])));
    }
  }
  if (!ended) throw new Error("The connection was closed before the program ended.");
}

function setRunning(control: AbortController | null): void {
  running = control;
  /* Not `disabled`: that would take the focus away from whoever just pressed the button. */
  runButton.setAttribute("aria-disabled", String(control !== null));
  stopButton.setAttribute("aria-disabled", String(control === null));
}

async function run(): Promise<void> {
  if (running) return;
  const control = new AbortController();
  setRunning(control);
  screen.clear();
  files.replaceChildren();
  atEnd = true;
  showStatus("running", "Running…");
  try {
    const reply = await request("/v1/execute/stream", {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
      body: asked(),
      signal: control.signal,
    });
    if (reply.body) await follow(reply.body);
  } catch (error) {
    if (control.signal.aborted) showStatus("stopped", "Stopped by you");
    else showStatus("refused", ...describe(error));
    if (wantsKey(error)) askForKey(() => void greet().then(run));
  } finally {
    setRunning(null);
  }
}

/* What became of it. */

function duration(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

function bytes(n: number): string {
  if (n < 1000) return `${n} bytes`;
  return n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
}

/* The status, told from the fields that every server of the Code Interpreter API has. */
function statusOf(result: Fields): string {
  const told = text(result["status"]);
  if (told) return told;
  if (result["timed_out"] === true) return "timeout";
  return result["exit_code"] === 0 ? "ok" : "error";
}

function showResult(result: Fields): void {
  const status = statusOf(result);
  const said = [STATUS_WORDS[status] ?? status];
  const exit = result["exit_code"];
  if (typeof exit === "number") said.push(`exit code ${exit}`);
  const took = fields(result["usage"])["wall_ms"] ?? result["duration_ms"];
  if (typeof took === "number") said.push(duration(took));
  if (text(result["profile"])) said.push(`profile ${text(result["profile"])}`);
  const warnings = list(result["warnings"]).map(text);
  showStatus(status, said.join(" · "), ...warnings.map((w) => el("p", { class: "warning" }, w)));
  let images = 0;
  for (const item of list(result["files"]).map(fields)) {
    const type = IMAGE_TYPES[/\.(\w+)$/.exec(text(item["path"]))?.[1]?.toLowerCase() ?? ""];
    const small = !(Number(item["size_bytes"] ?? 0) > MAX_IMAGE_BYTES);
    showFile(item, type && small && images++ < MAX_IMAGES ? type : "");
  }
}

async function fetchBlob(url: string, type: string): Promise<string> {
  const reply = await request(url);
  return URL.createObjectURL(new Blob([await reply.arrayBuffer()], { type }));
}

/* A link cannot send the key. Without a key the browser downloads by itself, straight to disk. */
async function download(event: MouseEvent, url: string, name: string): Promise<void> {
  if (!hasKey()) return;
  event.preventDefault();
  try {
    const blob = await fetchBlob(url, "application/octet-stream");
    el("a", { href: blob, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(blob), 60_000);
  } catch (error) {
    showStatus("refused", ...describe(error));
  }
}

function showFile(item: Fields, imageType: string): void {
  const path = text(item["path"]);
  const name = path.slice(path.lastIndexOf("/") + 1);
  const url = `/v1/files/${encodeURIComponent(text(item["file_id"]))}`;
  const link = el("a", { href: url, download: name }, path);
  link.addEventListener("click", (event) => void download(event, url, name));
  const entry = el("li", {}, link);
  if (typeof item["size_bytes"] === "number")
    entry.append(" ", el("span", { class: "hint" }, bytes(item["size_bytes"])));
  files.append(entry);
  if (imageType) void showImage(entry, url, path, imageType);
}

async function showImage(
  entry: HTMLElement, url: string, path: string, type: string,
): Promise<void> {
  try {
    const blob = await fetchBlob(url, type);
    const image = el("img", { alt: `${path}, made by the program` });
    /* SECURITY: an SVG inside <img> is inert, but its blob opened as a page would have our origin;
       once shown, the address is taken back. */
    image.onload = image.onerror = () => URL.revokeObjectURL(blob);
    image.src = blob;
    entry.append(image);
  } catch (error) {
    entry.append(...describe(error));
  }
}

/* What the service has. */

function showProfiles(profiles: Fields[]): void {
  const chosen = profile.value;
  const notes = new Map([
    ["auto", "auto: the smallest profile that has what the program imports."],
  ]);
  const options = [el("option", { value: "auto" }, "auto")];
  for (const item of profiles) {
    const name = text(item["name"]);
    const state = text(item["state"]);
    const modules = list(item["modules"]).map(text).join(", ");
    const version = text(item["version"]);
    options.push(el("option", { value: name },
      state === "" || state === "ready" ? name : `${name} (${state})`));
    notes.set(name, text(item["problem"]) ? `${name}: ${text(item["problem"])}` :
      `${name}: Python ${version.replace(/^Python /, "")}` +
      `${modules ? `, with ${modules} already imported` : ""}.`);
  }
  profile.replaceChildren(...options);
  profile.value = notes.has(chosen) ? chosen : "auto";
  profile.onchange = () => (profileNote.textContent = notes.get(profile.value) ?? "");
  profile.onchange(new Event("change"));
}

async function greet(): Promise<void> {
  try {
    const [info, known] = await Promise.all([getJson("/v1/info"), getJson("/v1/profiles")]);
    showProfiles(list(known["profiles"]).map(fields));
    byId("version", HTMLSpanElement).textContent = `cloche ${text(info["version"])}`;
    if (statusLine.dataset["kind"] === "refused") showStatus("");
  } catch (error) {
    showStatus("refused", ...describe(error));
    if (wantsKey(error)) askForKey(() => void greet());
  }
}

runButton.addEventListener("click", () => void run());
stopButton.addEventListener("click", () => running?.abort());
output.addEventListener("scroll", onScroll);
setUpEditor();
void greet();
