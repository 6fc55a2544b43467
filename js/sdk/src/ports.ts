/* Servers that listen inside a live sandbox. */

import { bodyOf, type FileData } from "./bytes.js";
import { toCamel, type Camel } from "./camel.js";
import { BadArgumentError } from "./errors.js";
import type { CallOptions } from "./options.js";
import type { Call, Transport } from "./transport.js";
import type * as wire from "./wire.js";

export type PortInfo = Camel<wire.Port>;
export type PortLink = Camel<wire.Link>;

export interface PortRequest extends CallOptions {
  /** GET */
  method?: string | undefined;
  headers?: HeadersInit | undefined;
  body?: FileData | undefined;
}

const HARMLESS = ["GET", "HEAD", "OPTIONS"];

/* SECURITY: `fetch` resolves dots in every disguise that it knows, and so would lead a path that came
 * from a stranger to another place of the API. It is the one who is asked. */
function inside(box: string, port: number, path: string): string {
  if (!Number.isInteger(port) || port < 1 || port > 65535)
    throw new BadArgumentError(`the port is ${port}`, "use one from 1 to 65535");
  const prefix = `${box}/ports/${port}/`;
  const url = new URL(prefix + path.replace(/^\//, ""), "http://localhost");
  if (!url.pathname.startsWith(prefix))
    throw new BadArgumentError(`${path} leads out of the server inside`, 'leave out the ".."');
  return url.pathname + url.search;
}

/** `box.ports` */
export class Ports {
  readonly #transport: Transport;
  readonly #box: string;

  constructor(transport: Transport, box: string) {
    this.#transport = transport;
    this.#box = box;
  }

  /** Those on which something listens. */
  async list(options: CallOptions = {}): Promise<PortInfo[]> {
    const path = `${this.#box}/ports`;
    const call: Call = { method: "GET", path, signal: options.signal, again: "always" };
    return (await this.#transport.json<wire.PortList>(call)).ports.map((port) => toCamel(port));
  }

  /** Where a client that has the API's key reaches it. */
  url(port: number, path = "/"): string {
    return this.#transport.url(inside(this.#box, port, path));
  }

  /** A URL that opens it in a browser, for `ttlSeconds` (an hour). Whoever has it may use that server.
   * For this the operator has to give a domain. */
  async link(
    port: number,
    options: CallOptions & { ttlSeconds?: number | undefined } = {},
  ): Promise<PortLink> {
    const { signal, ttlSeconds } = options;
    const json = { port, ttl_seconds: ttlSeconds };
    const path = `${this.#box}/links`;
    const call: Call = { method: "POST", path, json, signal, again: "always" };
    return toCamel(await this.#transport.json<wire.Link>(call));
  }

  /** One request, as `fetch` makes them: what the server inside answers is returned, whatever its
   * status; what is thrown is of cloche or of the connection. Redirects are not followed. */
  async fetch(port: number, path = "/", options: PortRequest = {}): Promise<Response> {
    const { method = "GET", body, signal } = options;
    const headers: Record<string, string> = {};
    const given = new Headers(options.headers);
    const { authorization: key } = this.#transport.keyHeaders;
    if (given.has("authorization") && key) given.set("x-api-key", key.replace(/^\w+ /, ""));
    given.forEach((value, name) => (headers[name] = value));
    const call: Call = {
      method,
      path: inside(this.#box, port, path),
      headers,
      signal,
      again: HARMLESS.includes(method) ? "always" : "never",
      isInside: true,
    };
    if (body !== undefined) call.body = await bodyOf(body);
    return this.#transport.send(call);
  }
}
