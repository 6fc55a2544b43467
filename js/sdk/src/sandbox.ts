/* Live sandboxes. */

import type { FileData } from "./bytes.js";
import { toCamel, toSnake, type Camel } from "./camel.js";
import { Client } from "./client.js";
import { NoSuchSandboxError, SandboxGoneError } from "./codes.js";
import { Commands } from "./commands.js";
import { Files } from "./files.js";
import { Interpreter, Kernels } from "./kernels.js";
import {
  bodyOf,
  inputsOf,
  type CallOptions,
  type Limits,
  type Network,
  type SandboxOptions,
} from "./options.js";
import { pages, type Pages } from "./pages.js";
import { asyncDispose } from "./platform.js";
import { Ports } from "./ports.js";
import { keyed, segment, type Call, type Transport } from "./transport.js";
import type * as wire from "./wire.js";

export type SandboxInfo = Camel<wire.Sandbox>;
export type GrantedNetwork = SandboxInfo["network"];

/** What of a sandbox can be changed while it lives. */
export interface SandboxChange extends CallOptions {
  /** From now on. */
  ttlSeconds?: number | undefined;
  idleSeconds?: number | undefined;
  /** Instead of what there is. */
  metadata?: Record<string, string> | undefined;
  name?: string | undefined;
  limits?: Limits | undefined;
  network?: Network | undefined;
}

type WithClient = { client?: Client | undefined };

/**
 * A sandbox that stays: variables, files and processes live until `close()`, or until its time is up.
 * `await using` closes it at the end of the block.
 */
export class Sandbox extends Interpreter implements AsyncDisposable {
  /** Names it on the server: `Sandbox.connect(id)`. */
  readonly id: string;
  readonly files: Files;
  readonly commands: Commands;
  readonly kernels: Kernels;
  readonly ports: Ports;

  constructor(transport: Transport, id: string) {
    const path = `/v1/sandboxes/${segment(id)}`;
    super(transport, path);
    this.id = id;
    this.files = new Files(transport, path);
    this.commands = new Commands(transport, path);
    this.kernels = new Kernels(transport, path);
    this.ports = new Ports(transport, path);
  }

  /** Makes one, on the server of `client` or on that of the environment. */
  static create({ client, ...options }: SandboxOptions & WithClient = {}): Promise<Sandbox> {
    return (client ?? Client.ofEnvironment()).sandboxes.create(options);
  }

  /** One that is there already, by its id or its name. */
  static connect(idOrName: string, options: CallOptions & WithClient = {}): Promise<Sandbox> {
    const { client, ...rest } = options;
    return (client ?? Client.ofEnvironment()).sandboxes.connect(idOrName, rest);
  }

  /** Those that are there, oldest first. */
  static list({ client, ...options }: ListOptions & WithClient = {}): Pages<SandboxInfo> {
    return (client ?? Client.ofEnvironment()).sandboxes.list(options);
  }

  async #info(call: Call): Promise<SandboxInfo> {
    return toCamel(await this.transport.json<wire.Sandbox>(call));
  }

  /** How it is now. */
  info(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#info(this.call("GET", "", options));
  }

  update(change: SandboxChange): Promise<SandboxInfo> {
    return this.#info(this.call("PATCH", "", change, { json: bodyOf(change) }));
  }

  /** All processes stand still until `resume()`. */
  pause(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#info(this.call("POST", "/pause", options, { again: "always" }));
  }

  resume(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#info(this.call("POST", "/resume", options, { again: "always" }));
  }

  /** What it may reach. */
  async network(options: CallOptions = {}): Promise<GrantedNetwork> {
    return toCamel(await this.transport.json(this.call("GET", "/network", options)));
  }

  /** In force when it returns; connections that are no longer allowed are reset. */
  async setNetwork(network: Network, options: CallOptions = {}): Promise<GrantedNetwork> {
    const json = typeof network === "string" ? network : toSnake(network);
    return toCamel(await this.transport.json(this.call("PUT", "/network", options, { json })));
  }

  /** Ends it, with all that runs in it. One that is gone already is good, too. */
  async close(options: CallOptions = {}): Promise<void> {
    try {
      await this.transport.nothing(this.call("DELETE", "", options));
    } catch (error) {
      if (!(error instanceof SandboxGoneError || error instanceof NoSuchSandboxError)) throw error;
    }
  }

  /** The same. */
  delete(options: CallOptions = {}): Promise<void> {
    return this.close(options);
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }
}

export interface ListOptions extends CallOptions {
  /** Only those that have these values there. */
  metadata?: Record<string, string> | undefined;
}

/** `client.sandboxes` */
export class Sandboxes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async create(options: SandboxOptions = {}): Promise<Sandbox> {
    const { signal } = options;
    const { inline, large } = await inputsOf(options.files);
    const json = { ...bodyOf(options), ...(inline.length ? { files: inline } : {}) };
    const call: Call = { method: "POST", path: "/v1/sandboxes", json, signal, again: keyed() };
    const { id } = await this.#transport.json<wire.Sandbox>(call);
    return filled(new Sandbox(this.#transport, id), large, options);
  }

  /** One that is there already, by its id or its name; `close()` ends it as one of your own. */
  async connect(idOrName: string, options: CallOptions = {}): Promise<Sandbox> {
    if (!idOrName.startsWith("sbx_")) {
      for await (const { id, name } of this.list(options))
        if (name === idOrName) return new Sandbox(this.#transport, id);
    }
    const box = new Sandbox(this.#transport, idOrName);
    await box.info(options);
    return box;
  }

  /** Oldest first. */
  list(options: ListOptions = {}): Pages<SandboxInfo> {
    const wanted = Object.entries(options.metadata ?? {});
    const query = Object.fromEntries(wanted.map(([name, value]) => [`metadata.${name}`, value]));
    const listing = { path: "/v1/sandboxes", member: "sandboxes", query, signal: options.signal };
    return pages(this.#transport, listing, (box: wire.Sandbox) => toCamel(box));
  }
}

/* Without all of its files it is nobody's. */
async function filled(box: Sandbox, files: [string, FileData][], options: CallOptions) {
  try {
    for (const [path, data] of files) await box.files.write(path, data, options);
    return box;
  } catch (error) {
    await box.close().catch(() => undefined);
    throw error;
  }
}
