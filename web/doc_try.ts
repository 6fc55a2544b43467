/*
 * "Try it": a form for an endpoint. It sends the request from the page, with the key that was
 * entered, and shows what came: status, headers, body. A stream is shown as it comes.
 */
import { el, Json, sendRequest, text } from "./common.js";
import { bodyOf, Operation, Parameter, parametersOf } from "./doc_operation.js";

const SHOWN_MOST = 200_000; /* characters of a body: a browser takes long to lay out more */

type Field = HTMLInputElement | HTMLTextAreaElement;

interface Form {
  op: Operation;
  inputs: [Parameter, Field][];
  body: Field | null;
}

let serial = 0;

function labelled(words: string, help: string, input: Field): HTMLElement {
  input.id = `try-${(serial += 1)}`;
  const label = el("label", { for: input.id }, el("code", {}, words));
  return el("div", { class: "field" }, label, input, el("span", { class: "hint" }, help));
}

function inputOf(parameter: Parameter): HTMLInputElement {
  const standard = parameter.schema["default"];
  const place = standard === undefined || standard === null ? "" : String(standard);
  const input = el("input", { type: "text", autocomplete: "off", placeholder: place });
  input.required = parameter.required && !(parameter.place === "path" && parameter.name === "path");
  return input;
}

function bodyField(op: Operation): Field | null {
  const body = bodyOf(op);
  if (!body) return null;
  if (body.kind !== "json") return el("input", { type: "file" });
  const area = el("textarea", { rows: "6", spellcheck: "false" });
  area.value = JSON.stringify(body.value, null, 2);
  return area;
}

/* A path parameter may hold slashes where it is the rest of the path. */
function filled(op: Operation, inputs: [Parameter, Field][]): string {
  let path = op.path;
  const query: string[] = [];
  for (const [parameter, input] of inputs) {
    const value = input.value;
    if (parameter.place === "path") {
      const safe = value.split("/").map(encodeURIComponent).join("/");
      path = path.replace(`{${parameter.name}}`, safe);
    } else if (parameter.place === "query" && value !== "") {
      const values = parameter.schema["type"] === "array" ? value.split(/[\s,]+/) : [value];
      query.push(...values.map((v) => `${parameter.name}=${encodeURIComponent(v)}`));
    }
  }
  return query.length > 0 ? `${path}?${query.join("&")}` : path;
}

function content(form: Form): BodyInit | null {
  const body = bodyOf(form.op);
  if (!body || !form.body) return null;
  if (form.body instanceof HTMLTextAreaElement) return form.body.value;
  const file = form.body.files?.[0];
  if (body.kind === "bytes") return file ?? new Blob([]);
  const made = new FormData();
  if (file) made.append(body.name, file);
  return made;
}

function headersOf(form: Form): Record<string, string> {
  const found: Record<string, string> = {};
  const body = bodyOf(form.op);
  if (body && body.kind !== "form" && content(form) !== "") found["Content-Type"] = body.type;
  for (const [parameter, input] of form.inputs)
    if (parameter.place === "header" && input.value !== "") found[parameter.name] = input.value;
  return found;
}

/* What came. */

function pretty(said: string, type: string): string {
  if (!type.startsWith("application/json")) return said;
  try {
    return JSON.stringify(JSON.parse(said) as Json, null, 2);
  } catch {
    return said;
  }
}

function isText(type: string): boolean {
  return /^text\/|json|xml|yaml/.test(type);
}

async function showBody(reply: Response, to: HTMLElement): Promise<void> {
  const type = reply.headers.get("Content-Type") ?? "";
  if (!isText(type)) {
    const bytes = await reply.arrayBuffer();
    to.textContent = bytes.byteLength > 0 ? `${bytes.byteLength} bytes of ${type}` : "(no body)";
    return;
  }
  const decoder = new TextDecoder();
  const reader = reply.body?.getReader();
  let said = "";
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    said += decoder.decode(part.value, { stream: true });
    to.textContent = said.slice(0, SHOWN_MOST);
  }
  to.textContent = pretty(said, type).slice(0, SHOWN_MOST) + (said.length > SHOWN_MOST ? "\n…" : "");
}

async function show(form: Form, to: HTMLElement, signal: AbortSignal): Promise<void> {
  const began = performance.now();
  const line = el("p", { class: "try-status" }, "Waiting…");
  to.replaceChildren(line);
  const reply = await sendRequest(filled(form.op, form.inputs), {
    method: form.op.method.toUpperCase(),
    headers: headersOf(form),
    body: content(form),
    signal,
  });
  const headers = el("pre", { class: "try-headers", tabindex: "0" },
    [...reply.headers].map(([name, value]) => `${name}: ${value}`).join("\n"));
  const body = el("pre", { class: "try-body", tabindex: "0" });
  line.classList.toggle("error", !reply.ok);
  line.textContent = `${reply.status} ${reply.statusText}`;
  to.append(el("details", {}, el("summary", {}, "Headers"), headers), body);
  await showBody(reply, body);
  line.textContent += ` after ${Math.round(performance.now() - began)} ms`;
}

/* The form. */

function submitted(form: Form, send: HTMLButtonElement, stop: HTMLButtonElement, to: HTMLElement): void {
  const aborting = new AbortController();
  stop.onclick = () => aborting.abort();
  stop.hidden = false;
  send.setAttribute("aria-disabled", "true");
  show(form, to, aborting.signal)
    .catch((error: unknown) => {
      const words = aborting.signal.aborted ? "Stopped." : `No answer: ${String(error)}`;
      to.append(el("p", { class: "error" }, words));
    })
    .finally(() => {
      stop.hidden = true;
      send.removeAttribute("aria-disabled");
    });
}

export function tryForm(op: Operation): HTMLElement {
  const parameters = parametersOf(op);
  const inputs = parameters.map((p): [Parameter, Field] => [p, inputOf(p)]);
  const form: Form = { op, inputs, body: bodyField(op) };
  const send = el("button", { type: "submit", class: "primary" }, "Send");
  const stop = el("button", { type: "button" }, "Stop");
  const result = el("div", { class: "try-result", role: "status" });
  stop.hidden = true;
  const made = el("form", { class: "try" },
    ...inputs.map(([p, input]) => labelled(p.name, p.help, input)),
    ...(form.body ? [labelled("body", text(bodyOf(op)?.type ?? ""), form.body)] : []),
    el("div", { class: "row" }, send, stop), result);
  made.onsubmit = (event) => {
    event.preventDefault();
    if (send.getAttribute("aria-disabled") !== "true") submitted(form, send, stop, result);
  };
  return made;
}
