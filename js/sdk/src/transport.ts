/*
 * Requests to one server: its address, its key, and what is done when a request fails.
 *
 * Nothing is sent twice that might run twice. A request that never left, or that the server refused
 * before it did anything, is sent again by itself, for a bounded time. One whose reply was lost is
 * sent again if it changes nothing the second time, or if it has an Idempotency-Key and the server that
 * got it still runs and so remembers the key; else the caller is told.
 */

import { READ_MAX, bodyBytes, isStream, textOf, type Body } from "./bytes.js";
import {
  ApiError,
  BadArgumentError,
  BadReplyError,
  ClocheError,
  ConnectionLostError,
  NoServerError,
  OlderServerError,
} from "./errors.js";
import { brokenOff, errorOf, isLost, isWorthAsking } from "./failures.js";
import { environment, isServerSide, randomKey, sleep, type WebSocketClass } from "./platform.js";
import { VERSION, isOlder } from "./version.js";
import type { Info } from "./wire.js";

export interface ClientOptions {
  /** Where the server is; CLOCHE_SERVER, or http://127.0.0.1:8000. */
  baseUrl?: string | undefined;
  /** CLOCHE_API_KEY, or none. */
  apiKey?: string | undefined;
  /** Instead of the platform's. */
  fetch?: typeof globalThis.fetch | undefined;
  /** For terminals, where the platform has none: Node before 22. */
  WebSocket?: WebSocketClass | undefined;
  /** How long to wait in all while the server asks to be asked again: 20,000. */
  patienceMs?: number | undefined;
  /** How long to look for a server that was there and is gone: 30,000. */
  reconnectMs?: number | undefined;
}

export type Query = Record<string, string | number | boolean | undefined>;

export interface Call {
  method: string;
  path: string;
  query?: Query;
  json?: unknown;
  body?: Body;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** What a second request of this kind does: the same, nothing more with this key, or more. */
  again: "always" | "never" | { key: string };
  /** For a server in a sandbox: what that says is no refusal of cloche. */
  isInside?: boolean;
}

/** Marks a request that the server carries out once, however often it gets it. */
export const keyed = () => ({ key: randomKey() });

interface Tries {
  began: number;
  turn: number;
  waitedMs: number;
  wasLost: boolean; // one of them may have arrived
}
const MOST_LOST = 5;

const NDJSON = "application/x-ndjson";
export const STREAMED = { accept: NDJSON };

/* Path segments from outside: `fetch` would follow dots to another place of the API. */
export function segment(text: string): string {
  if (text === "" || text === "." || text === "..")
    throw new BadArgumentError(`"${text}" names nothing on the server`, "give an id or a path");
  return encodeURIComponent(text);
}

function addressOf(given: string | undefined): string {
  const address = given ?? environment("CLOCHE_SERVER") ?? "http://127.0.0.1:8000";
  if (!/^https?:\/\//.test(address)) {
    throw new BadArgumentError(
      `${address} is no address that fetch can reach`,
      "use http://HOST:PORT or https://HOST",
    );
  }
  return address.replace(/\/+$/, "");
}

export class Transport {
  readonly baseUrl: string;
  readonly reconnectMs: number;
  readonly WebSocket: WebSocketClass | undefined;
  readonly #apiKey: string | undefined;
  readonly #fetch: typeof globalThis.fetch;
  readonly #patienceMs: number;
  #hasAnswered = false;

  constructor(options: ClientOptions = {}) {
    this.baseUrl = addressOf(options.baseUrl);
    this.#apiKey = options.apiKey ?? environment("CLOCHE_API_KEY");
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.WebSocket = options.WebSocket;
    this.#patienceMs = options.patienceMs ?? 20_000;
    this.reconnectMs = options.reconnectMs ?? 30_000;
  }

  get keyHeaders(): Record<string, string> {
    return this.#apiKey ? { authorization: `Bearer ${this.#apiKey}` } : {};
  }

  url(path: string, query: Query = {}): string {
    const words = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(words.map(([name, value]) => [name, String(value)]));
    return `${this.baseUrl}${path}${words.length ? `?${search}` : ""}`;
  }

  /** The reply, once it has begun; what is no success is thrown. */
  send(call: Call): Promise<Response> {
    return this.#withPatience(call, async (response) => response);
  }

  /** The same request again, whose reply began and broke off. */
  async repeat(call: Call, began: number): Promise<Response> {
    if (await this.#isHarmless(call, began)) return this.send(call);
    const what = `the connection to ${this.baseUrl} was lost before anything had come`;
    throw new ConnectionLostError(what, "see what became of it before you ask again");
  }

  json<T>(call: Call): Promise<T> {
    return this.#withPatience(call, async (response) => {
      const text = await textOf(response);
      const said = `${this.baseUrl} answered ${call.method} ${call.path} with`;
      let value: unknown;
      try {
        value = JSON.parse(text);
      } catch (cause) {
        throw new BadReplyError(`${said} no JSON`, { cause });
      }
      if (typeof value === "string" || (typeof value === "object" && value !== null))
        return value as T;
      throw new BadReplyError(`${said} something else than it should`);
    });
  }

  bytes(call: Call): Promise<Uint8Array> {
    return this.#withPatience(
      call,
      async (response) => bodyBytes(response, READ_MAX),
    );
  }

  async nothing(call: Call): Promise<void> {
    await this.#withPatience(call, textOf);
  }

  async #withPatience<T>(call: Call, read: (response: Response) => Promise<T>): Promise<T> {
    const so: Tries = { began: Date.now(), turn: 0, waitedMs: 0, wasLost: false };
    for (; ; so.turn++) {
      let failure: ClocheError;
      try {
        const response = await this.#once(call);
        if (isAnswer(call, response)) return await read(response);
        failure = await this.#told(await errorOf(response, this.baseUrl), call);
      } catch (error) {
        call.signal?.throwIfAborted();
        failure = brokenOff(error, this.baseUrl, this.#hasAnswered);
      }
      if (so.wasLost && isGone(failure, call)) return read(new Response());
      so.wasLost ||= isLost(failure);
      const pauseMs = this.#pauseAfter(failure, so);
      const isRepeatable = pauseMs !== undefined && !isStream(call.body);
      if (!isRepeatable || (so.wasLost && !(await this.#isHarmless(call, so.began)))) throw failure;
      await sleep(pauseMs, call.signal);
      so.waitedMs += pauseMs;
    }
  }

  /* How long to wait before the next try; undefined: there is none. */
  #pauseAfter(failure: ClocheError, so: Tries): number | undefined {
    const usual = Math.min(100 * 2 ** so.turn, 2000) * (0.5 + Math.random() / 2);
    const isAway = failure instanceof NoServerError && this.#hasAnswered;
    if (isAway || (isLost(failure) && so.turn < MOST_LOST))
      return so.waitedMs + usual <= this.reconnectMs ? usual : undefined;
    if (!isWorthAsking(failure)) return undefined;
    const pause = Math.max(failure.retryAfter * 1000, usual);
    return so.waitedMs + pause <= this.#patienceMs ? pause : undefined;
  }

  /* Whether a request that may have arrived can be sent again. A server knows the keys that it has
   * seen itself: another one, which took its place, does not. */
  async #isHarmless(call: Call, began: number): Promise<boolean> {
    if (typeof call.again === "string") return call.again === "always";
    try {
      const info = {
        method: "GET",
        path: "/v1/info",
        again: "always",
        signal: call.signal,
      } as const;
      const { uptime_seconds } = await this.json<Info>(info);
      return uptime_seconds * 1000 > Date.now() - began;
    } catch {
      call.signal?.throwIfAborted();
      return false;
    }
  }

  /** Why a WebSocket was not opened, which only a plain request is told. Such a request does nothing:
   * the server wants a WebSocket there. */
  async refusal(path: string, query: Query, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.nothing({ method: "GET", path, query, signal, again: "always" });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === "no_websocket")) throw error;
    }
  }

  async #once(call: Call): Promise<Response> {
    const headers: Record<string, string> = { ...this.keyHeaders, ...call.headers };
    if (typeof call.again !== "string") headers["idempotency-key"] = call.again.key;
    if (isServerSide) headers["user-agent"] = `cloche-js/${VERSION}`;
    if (call.json !== undefined) headers["content-type"] = "application/json";
    const body = call.json === undefined ? call.body : JSON.stringify(call.json);
    /* A redirect would take what is sent, and what it does, to another place. */
    const init: RequestInit & { duplex?: "half" } = {
      method: call.method,
      headers,
      redirect: "manual",
    };
    if (body !== undefined) init.body = body as BodyInit;
    if (isStream(body)) init.duplex = "half";
    if (call.signal) init.signal = call.signal;
    const response = await this.#fetch(this.url(call.path, call.query), init);
    this.#hasAnswered = true;
    return response;
  }

  /* The server does not know a path or a field: because it is older than we are? */
  async #told(error: ClocheError, call: Call): Promise<ClocheError> {
    if (!(error instanceof ApiError)) return error;
    const unknown = unknownTo(error, call);
    if (!unknown) return error;
    const health = await this.#health(call.signal);
    if (!health.version || !isOlder(health.version, VERSION)) return error;
    return new OlderServerError(unknown, health.version, VERSION, error.requestId);
  }

  async #health(signal: AbortSignal | undefined): Promise<{ version?: string }> {
    try {
      const call = { method: "GET", path: "/health", again: "always", signal } as const;
      return JSON.parse(await textOf(await this.#once(call))) as { version?: string };
    } catch {
      return {};
    }
  }
}

/* SECURITY: a server inside may say what looks like a refusal of cloche, but cloche alone can leave out
 * its mark. */
function isAnswer(call: Call, response: Response): boolean {
  return response.ok || (call.isInside === true && response.headers.has("x-cloche-port"));
}

/* What was to be deleted is: the reply that said so was lost. */
function isGone(failure: ClocheError, { method }: Call): boolean {
  return method === "DELETE" && failure instanceof ApiError && [404, 410].includes(failure.status);
}

interface FieldFault {
  type?: string;
  loc?: (string | number)[];
}

function unknownTo(error: ApiError, call: Call): string | undefined {
  if (error.code === "no_route" || error.code === "bad_method")
    return `${call.method} ${call.path}`;
  if (error.code !== "bad_fields" || !Array.isArray(error.detail)) return undefined;
  const faults = error.detail as FieldFault[];
  const extra = faults.find((fault) => fault.type === "extra_forbidden");
  return (
    extra && `the field ${(extra.loc ?? []).slice(1).join(".")} of ${call.method} ${call.path}`
  );
}
