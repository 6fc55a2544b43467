/* A program that is talked to while it runs, over a WebSocket: JSON both ways. */

import { BadReplyError, ConnectionLostError } from "./errors.js";
import { eventOf, failureOf, type ExecutionEvent } from "./execution.js";
import type { CallOptions } from "./options.js";
import { asyncDispose } from "./platform.js";
import { Assembly, type Result } from "./result.js";
import { Socket } from "./socket.js";
import type { Transport } from "./transport.js";
import type * as wire from "./wire.js";

interface Message {
  type: string;
  seq?: number;
  execution_id?: string;
}

/** Read its events with `for await`; an `input` event waits for `answer()`. */
export class Talk implements AsyncDisposable, AsyncIterable<ExecutionEvent> {
  readonly #socket: Socket;
  readonly #url: string;
  readonly #signal: AbortSignal | undefined;
  readonly #said = new Assembly();
  #id = "";
  #result: Result | undefined;

  private constructor(socket: Socket, url: string, signal: AbortSignal | undefined) {
    this.#socket = socket;
    this.#url = url;
    this.#signal = signal;
  }

  static async open(
    transport: Transport,
    request: object,
    { signal }: CallOptions,
  ): Promise<Talk> {
    const socket = await Socket.open(transport, "/v1/run", {}, signal);
    socket.send({ ...request, allow_stdin: true });
    return new Talk(socket, transport.baseUrl, signal);
  }

  /** Of the execution, once it has begun. */
  get id(): string {
    return this.#id;
  }

  /** What an `input()` that waits returns: the next line of its stdin. */
  answer(value: string): void {
    this.#socket.send({ type: "stdin", value });
  }

  /** More for its stdin, as it is. */
  write(data: string | Uint8Array): void {
    this.#socket.send(typeof data === "string" ? { type: "stdin", data } : data);
  }

  /** Its stdin is at its end: an `input()` that waits raises EOFError. */
  endInput(): void {
    this.#socket.send({ type: "stdin", eof: true });
  }

  /** Ctrl-C: a KeyboardInterrupt. */
  interrupt(): void {
    this.#socket.send({ type: "interrupt" });
  }

  /** What happens, to the end; the last event has the result. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ExecutionEvent, void> {
    while (!this.#result) {
      const event = await this.#next();
      if (event) yield event;
    }
  }

  /** Reads on to the end. */
  async result(): Promise<Result> {
    for await (const _ of this) void _;
    if (!this.#result) throw this.#lost();
    return this.#result;
  }

  async #next(): Promise<ExecutionEvent | undefined> {
    const text = await this.#socket.receive();
    this.#signal?.throwIfAborted();
    if (typeof text !== "string") throw this.#lost();
    const { type, seq = 0, execution_id, ...data } = parsed(text, this.#url);
    this.#id = execution_id ?? this.#id;
    if (type === "failed") throw failureOf(data, this.#url);
    this.#said.add({ seq, event: type, data });
    if (type !== "end") return eventOf({ seq, event: type, data });
    this.#result = this.#said.end(data as unknown as wire.ResultEnd);
    return { seq, type, result: this.#result };
  }

  #lost(): ConnectionLostError {
    const { reason } = this.#socket;
    const what = `the connection to a program on ${this.#url} was closed${reason && `: ${reason}`}`;
    return new ConnectionLostError(what, "it has ended with that; run it again if that does no harm", {
      executionId: this.#id,
    });
  }

  /** Leaves: a program that still runs ends. */
  close(): Promise<void> {
    return this.#socket.close();
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }
}

function parsed(text: string, url: string): Message {
  try {
    const message = JSON.parse(text) as Message | null;
    if (typeof message?.type === "string") return message;
  } catch (cause) {
    throw new BadReplyError(`a message from ${url} is no JSON`, { cause });
  }
  throw new BadReplyError(`a message from ${url} is no event`);
}
