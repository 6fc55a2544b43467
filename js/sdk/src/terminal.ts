/*
 * A terminal in a live sandbox, over a WebSocket. Binary messages are what is typed and what is
 * shown; text messages are JSON: the command's id first, and at the end what became of it.
 */

import { toCamel, type Camel } from "./camel.js";
import { ConnectionLostError } from "./errors.js";
import { refusalIn, type ErrorReply } from "./failures.js";
import type { CallOptions } from "./options.js";
import { asyncDispose } from "./platform.js";
import { Socket } from "./socket.js";
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
  readonly #socket: Socket;
  readonly #url: string;
  readonly #signal: AbortSignal | undefined;
  #commandId: string;
  #isLeft = false;
  #end: TerminalEnd | undefined;

  private constructor(socket: Socket, url: string, { commandId = "", signal }: Seat) {
    this.#socket = socket;
    this.#url = url;
    this.#signal = signal;
    this.#commandId = commandId;
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
    const socket = await Socket.open(transport, path, query, signal);
    const terminal = new Terminal(socket, transport.baseUrl, { commandId, signal });
    while (terminal.#commandId === "") await terminal.#next();
    return terminal;
  }

  #lost(reason: string): ConnectionLostError {
    const what = `the terminal's connection to ${this.#url} was closed${reason && `: ${reason}`}`;
    return new ConnectionLostError(what, "open it again; see onDisconnect to keep its command", {
      executionId: this.#commandId,
    });
  }

  /* What is shown next; undefined: something else has come. */
  async #next(): Promise<Uint8Array | undefined> {
    const data = await this.#socket.receive();
    if (data === undefined) {
      this.#signal?.throwIfAborted();
      throw this.#lost(this.#isLeft ? "you left it" : this.#socket.reason);
    }
    if (typeof data !== "string") return data;
    const { type, ...message } = JSON.parse(data) as Message;
    if (type === "start") this.#commandId = message.id ?? "";
    if (type === "end") this.#end = toCamel(message as unknown as wire.Command) as TerminalEnd;
    if (type === "failed") throw refusalIn(message, 0) ?? this.#lost("");
    return undefined;
  }

  /** Of the command in it. */
  get commandId(): string {
    return this.#commandId;
  }

  /** What is shown, as it comes, until the command ends or `close()`. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    while (!this.#end) {
      const shown = await this.#next();
      if (shown) yield shown;
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
    this.#socket.send({ type: "resize", rows, cols });
  }

  /** Reads on to the end of the command and says how it ended. */
  async wait(): Promise<TerminalEnd> {
    while (!this.#end) await this.#next();
    return this.#end;
  }

  /** Leaves the terminal; returns when the connection is closed. */
  close(): Promise<void> {
    this.#isLeft = true;
    return this.#socket.close();
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }
}
