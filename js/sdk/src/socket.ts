/* A WebSocket as messages that wait to be read: what terminals and conversations stand on. */

import { ConnectionLostError } from "./errors.js";
import { openWebSocket, type WebSocketLike } from "./platform.js";
import type { Query, Transport } from "./transport.js";

export class Socket {
  readonly #socket: WebSocketLike;
  #came: (string | Uint8Array)[] = [];
  #wake: () => void = () => undefined;
  #begin: (isOpen: boolean) => void = () => undefined;
  #isOver = false;
  #reason = "";

  private constructor(socket: WebSocketLike, signal: AbortSignal | undefined) {
    this.#socket = socket;
    const listen = (type: string, listener: (event: never) => void) =>
      socket.addEventListener(type, listener);
    listen("open", () => this.#begin(true));
    listen("message", ({ data }: { data: string | ArrayBuffer }) => {
      this.#came.push(typeof data === "string" ? data : new Uint8Array(data));
      this.#wake();
    });
    listen("error", () => this.#end("")); // Node 22 has no `close` when none was opened
    listen("close", (event: { reason?: string }) => this.#end(event.reason ?? ""));
    signal?.addEventListener("abort", () => socket.close());
  }

  #end(reason: string): void {
    this.#isOver = true;
    this.#reason ||= reason;
    this.#begin(false);
    this.#wake();
  }

  /** Returns when it is open, and throws why it is refused. */
  static async open(
    transport: Transport,
    path: string,
    query: Query,
    signal: AbortSignal | undefined,
  ): Promise<Socket> {
    signal?.throwIfAborted();
    const url = transport.url(path, query).replace(/^http/, "ws");
    const socket = new Socket(
      openWebSocket(transport.WebSocket, url, transport.keyHeaders),
      signal,
    );
    const isOpen = await new Promise<boolean>((resolve) => (socket.#begin = resolve));
    if (isOpen) return socket;
    signal?.throwIfAborted();
    await transport.refusal(path, query, signal);
    throw new ConnectionLostError(`${transport.baseUrl} opened no WebSocket`, "open it again");
  }

  /** The next message; undefined: it is closed. */
  async receive(): Promise<string | Uint8Array | undefined> {
    for (;;) {
      const message = this.#came.shift();
      if (message !== undefined || this.#isOver) return message;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  send(message: string | Uint8Array | object): void {
    const isReady = typeof message === "string" || message instanceof Uint8Array;
    this.#socket.send(isReady ? message : JSON.stringify(message));
  }

  /** Why it was closed, in the server's words; or "". */
  get reason(): string {
    return this.#reason;
  }

  /** Returns when it is closed. */
  async close(): Promise<void> {
    if (this.#isOver) return;
    const closed = new Promise<void>((resolve) =>
      this.#socket.addEventListener("close", () => resolve()),
    );
    this.#socket.close();
    await closed;
  }
}
