/*
 * A terminal in a live sandbox, over a WebSocket. Binary messages are what is typed and what is
 * shown; text messages are JSON: the command's id first, and at the end what became of it.
 */

import { toCamel, type Camel } from "./camel.js";
import { ApiError, ConnectionLostError } from "./errors.js";
import { refusalIn, type ErrorReply } from "./failures.js";
import type { CallOptions } from "./options.js";
import { asyncDispose, openWebSocket, type WebSocketLike } from "./platform.js";
import type { Transport } from "./transport.js";
import type * as wire from "./wire.js";

export interface TerminalOptions extends CallOptions {
  rows?: number | undefined;
  cols?: number | undefined;
  /** What closing does to the command: "hangup", as closing a window; "continue" lets it go on. */
  onDisconnect?: "hangup" | "continue" | undefined;
}

export type TerminalEnd = Camel<wire.Command>;

/* Where one sits down: at a command that is there, or at a new one. */
interface Seat extends CallOptions {
  commandId?: string | undefined;
}

interface Message extends ErrorReply {
  type: string;
  id?: string;
}

export class Terminal implements AsyncDisposable, AsyncIterable<Uint8Array> {
  readonly #socket: WebSocketLike;
  readonly #url: string;
  #commandId = "";
  #shown: Uint8Array[] = [];
  #wake: () => void = () => undefined;
  #begin: (hasBegun: boolean) => void = () => undefined;
  #isOver = false;
  #failure: unknown;
  #end: TerminalEnd | undefined;

  private constructor(socket: WebSocketLike, url: string, { commandId, signal }: Seat) {
    this.#socket = socket;
    this.#url = url;
    this.#commandId = commandId ?? "";
    const listen = (type: string, listener: (event: never) => void) =>
      socket.addEventListener(type, listener);
    listen("message", (event: { data: unknown }) => this.#take(event.data));
    listen("error", () => this.#close("")); // Node 22 has no `close` when none was opened
    listen("open", () => this.#commandId && this.#begin(true));
    listen("close", (event: { reason?: string }) => this.#close(event.reason ?? ""));
    signal?.addEventListener("abort", () => {
      this.#failure ??= signal.reason;
      socket.close();
    });
  }

  /** Returns when the command runs. */
  static async open(
    transport: Transport,
    path: string,
    options: TerminalOptions,
    commandId?: string,
  ): Promise<Terminal> {
    const { signal, onDisconnect, ...more } = options;
    const query = { ...more, on_disconnect: onDisconnect };
    signal?.throwIfAborted();
    const url = transport.url(path, query).replace(/^http/, "ws");
    const socket = openWebSocket(transport.WebSocket, url, transport.keyHeaders);
    const terminal = new Terminal(socket, transport.baseUrl, { commandId, signal });
    const hasBegun = await new Promise<boolean>((resolve) => (terminal.#begin = resolve));
    if (hasBegun) return terminal;
    signal?.throwIfAborted();
    if (!(terminal.#failure instanceof ApiError)) await transport.refusal(path, query, signal);
    throw terminal.#failure;
  }

  #lost(reason: string): ConnectionLostError {
    const what = `the terminal's connection to ${this.#url} was closed${reason && `: ${reason}`}`;
    return new ConnectionLostError(what, "open it again; see onDisconnect to keep its command", {
      executionId: this.#commandId,
    });
  }

  #take(data: unknown): void {
    if (typeof data !== "string") {
      this.#shown.push(new Uint8Array(data as ArrayBuffer));
      this.#wake();
      return;
    }
    const { type, ...message } = JSON.parse(data) as Message;
    if (type === "start") {
      this.#commandId = message.id ?? "";
      this.#begin(true);
    }
    if (type === "end") this.#end = toCamel(message as unknown as wire.Command) as TerminalEnd;
    if (type === "failed") this.#failure ??= refusalIn(message, 0);
    this.#wake();
  }

  #close(reason: string): void {
    this.#isOver = true;
    if (!this.#end) this.#failure ??= this.#lost(reason);
    this.#begin(false);
    this.#wake();
  }

  /** Of the command in it. */
  get commandId(): string {
    return this.#commandId;
  }

  /** What is shown, as it comes, until the command ends or `close()`. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const shown = this.#shown.shift();
      if (shown) {
        yield shown;
        continue;
      }
      if (this.#end) return;
      if (this.#isOver) throw this.#failure;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Reads on until this was shown: what was shown so far, with it. */
  async readUntil(text: string): Promise<string> {
    const decoder = new TextDecoder();
    let shown = "";
    while (!shown.includes(text)) {
      const { done, value } = await this[Symbol.asyncIterator]().next();
      if (done) break;
      shown += decoder.decode(value, { stream: true });
    }
    return shown;
  }

  /** Types. */
  write(data: string | Uint8Array): void {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    this.#socket.send(bytes);
  }

  resize(rows: number, cols: number): void {
    this.#socket.send(JSON.stringify({ type: "resize", rows, cols }));
  }

  /** Reads on to the end of the command and says how it ended. */
  async wait(): Promise<TerminalEnd> {
    for await (const _ of this) void _;
    if (!this.#end) throw this.#failure;
    return this.#end;
  }

  /** Leaves the terminal; returns when the connection is closed. */
  async close(): Promise<void> {
    this.#failure ??= this.#lost("you left it");
    if (this.#isOver) return;
    const closed = new Promise<void>((resolve) =>
      this.#socket.addEventListener("close", () => resolve()),
    );
    this.#socket.close();
    await closed;
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }
}
