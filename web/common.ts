/*
 * What both pages need: reading JSON that may have any shape, making elements, asking the service.
 *
 * Data only ever becomes text nodes and attributes, never markup: what a program prints or names a
 * file is hostile.
 */

export type Json = null | boolean | number | string | Json[] | Fields;
export interface Fields {
  [name: string]: Json;
}

export function fields(value: Json | undefined): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

export function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

type Store = "localStorage" | "sessionStorage";

/* A browser may refuse storage altogether; then nothing is remembered and all else works. */
export function recall(store: Store, name: string): string | null {
  try {
    return window[store].getItem(name);
  } catch {
    return null;
  }
}

export function remember(store: Store, name: string, value: string): void {
  try {
    window[store].setItem(name, value);
  } catch {
    /* see above */
  }
}

let apiKey = recall("sessionStorage", "cloche.key") ?? "";

export function hasKey(): boolean {
  return apiKey !== "";
}

/* The service said no: `message` is its own, `remediation` what it advises. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly remediation: string,
  ) {
    super(message);
  }
}

function fieldError(item: Json): string {
  const where = list(fields(item)["loc"]).slice(1).join(".");
  const message = text(fields(item)["msg"]);
  return where ? `${where}: ${message}` : message;
}

async function refusal(reply: Response): Promise<Refusal> {
  const body = await reply.text().catch(() => "");
  let parsed: Json = null;
  try {
    parsed = JSON.parse(body) as Json;
  } catch {
    /* a proxy's page, say: the status has to do */
  }
  const error = fields(fields(parsed)["error"]);
  const detail = fields(parsed)["detail"];
  const message =
    text(error["message"]) || text(detail) || list(detail).map(fieldError).join("; ") ||
    `the service answered ${reply.status} ${reply.statusText}`;
  return new Refusal(reply.status, message, text(error["remediation"]));
}

/* fetch with the key. */
export async function sendRequest(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (apiKey !== "") headers.set("Authorization", `Bearer ${apiKey}`);
  return fetch(path, { ...init, headers });
}

/* The same; throws a Refusal for anything but success. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const reply = await sendRequest(path, init);
  if (!reply.ok) throw await refusal(reply);
  return reply;
}

export async function getJson(path: string): Promise<Fields> {
  const reply = await request(path, { headers: { Accept: "application/json" } });
  return fields((await reply.json()) as Json);
}

/* Shows the field for the key; when one was given, `then` tries again. */
export function askForKey(then: () => void): void {
  const form = byId("key-form", HTMLFormElement);
  const input = byId("key", HTMLInputElement);
  form.onsubmit = (event) => {
    event.preventDefault();
    apiKey = input.value.trim();
    remember("sessionStorage", "cloche.key", apiKey);
    input.value = "";
    form.hidden = true;
    then();
  };
  form.hidden = false;
  input.focus();
}

export function wantsKey(error: unknown): boolean {
  return error instanceof Refusal && error.status === 401;
}

export function describe(error: unknown): Node[] {
  const words = error instanceof Error ? error.message : String(error);
  /* What fetch throws when there is nobody to talk to is a TypeError with a text per browser. */
  const message = error instanceof TypeError ? `The service cannot be reached (${words}).` : words;
  const said = [el("p", { class: "error" }, message)];
  if (error instanceof Refusal && error.remediation) said.push(el("p", {}, error.remediation));
  return said;
}
