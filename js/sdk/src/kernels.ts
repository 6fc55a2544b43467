/* Interpreters in a live sandbox: what is done with one of them, and the list of all. */

import { toCamel, type Camel } from "./camel.js";
import { endedByLeaving, finish, startCode, type ExecutionEvent } from "./execution.js";
import {
  bodyOf,
  type Answer,
  type CallOptions,
  type CellOptions,
  type KernelLimits,
  type RunCellOptions,
} from "./options.js";
import { pages, type Pages } from "./pages.js";
import type { Result } from "./result.js";
import { segment, type Call, type Query, type Transport } from "./transport.js";
import type * as wire from "./wire.js";

export type KernelInfo = Camel<wire.Kernel>;
export type Variable = Camel<wire.Variable>;
export type Variables = Camel<wire.Variables>;
export type Completion = Camel<wire.Completion>;
export type Inspection = Camel<wire.Inspection>;

/** What runs code, and keeps its variables from one execution to the next. */
export class Interpreter {
  protected readonly transport: Transport;
  /** The sandbox's path. */
  protected readonly box: string;
  readonly #kernelId: string | undefined;

  /** `kernelId` undefined: the sandbox's first one. */
  constructor(transport: Transport, box: string, kernelId?: string) {
    this.transport = transport;
    this.box = box;
    this.#kernelId = kernelId;
  }

  protected call(
    method: string,
    what: string,
    options: CallOptions,
    more: Partial<Call> = {},
  ): Call {
    const again = method === "POST" ? "never" : "always";
    return { method, path: `${this.box}${what}`, signal: options.signal, again, ...more };
  }

  #ask(what: string, options: CallOptions, json: object = {}): Call {
    return this.call("POST", what, options, { json: { ...json, kernel_id: this.#kernelId } });
  }

  #of(options: CellOptions): Interpreter {
    const { kernelId } = options;
    return kernelId === undefined ? this : new Interpreter(this.transport, this.box, kernelId);
  }

  /**
   * Runs a cell and yields what happens; the last event has the result. A reader that leaves before
   * that interrupts the cell.
   */
  stream(code: string, options: CellOptions = {}): AsyncGenerator<ExecutionEvent, void> {
    const cell = { allowStdin: true, kernelId: this.#kernelId, ...options, code };
    const events = startCode(this.transport, cell, { path: `${this.box}/execute` });
    return endedByLeaving(events, options, async () => {
      await this.#of(options).interrupt();
    });
  }

  /** Runs a cell to its end. That the code fails is a result: see `ok`, `error`, or `check()`. */
  run(code: string, options: RunCellOptions = {}): Promise<Result> {
    const { onInput } = options;
    const events = this.stream(code, { allowStdin: onInput !== undefined, ...options });
    return finish(events, options, async (question) =>
      this.#of(options).answer(await onInput?.(question), options),
    );
  }

  /** Answers an `input()` that waits: with a line, or with null for the end of the file. */
  answer(line: Answer, options: CallOptions = {}): Promise<void> {
    const json = typeof line === "string" ? { value: line } : { eof: true };
    return this.transport.nothing(this.#ask("/stdin", options, json));
  }

  /** KeyboardInterrupt in what runs; false when nothing does. */
  async interrupt(options: CallOptions = {}): Promise<boolean> {
    const call = this.#ask("/interrupt", options);
    return (await this.transport.json<{ interrupted: boolean }>(call)).interrupted;
  }

  /** A fresh process; files stay. */
  async restart(options: CallOptions = {}): Promise<KernelInfo> {
    return toCamel(await this.transport.json<wire.Kernel>(this.#ask("/restart", options)));
  }

  async variables(options: CallOptions & { limit?: number | undefined } = {}): Promise<Variables> {
    const query: Query = { kernel_id: this.#kernelId, limit: options.limit };
    const call = this.call("GET", "/variables", options, { query });
    return toCamel(await this.transport.json<wire.Variables>(call));
  }

  /** What the code could go on with. `cursor` counts characters (code points); the end unless given. */
  async complete(
    code: string,
    options: CallOptions & { cursor?: number | undefined } = {},
  ): Promise<Completion> {
    const call = this.#ask("/complete", options, { code, cursor: options.cursor });
    return toCamel(await this.transport.json<wire.Completion>({ ...call, again: "always" }));
  }

  /** What a name is; with `detail` its source, too. */
  async inspect(
    code: string,
    options: CallOptions & { cursor?: number | undefined; detail?: boolean | undefined } = {},
  ): Promise<Inspection> {
    const { cursor, detail } = options;
    const call = this.#ask("/inspect", options, { code, cursor, detail: detail ? 1 : 0 });
    return toCamel(await this.transport.json<wire.Inspection>({ ...call, again: "always" }));
  }
}

/** An interpreter that was made beside the first; they share files, not variables. */
export class Kernel extends Interpreter {
  readonly id: string;

  constructor(transport: Transport, box: string, id: string) {
    super(transport, box, id);
    this.id = id;
  }

  async info(options: CallOptions = {}): Promise<KernelInfo> {
    const call = this.call("GET", `/kernels/${segment(this.id)}`, options);
    return toCamel(await this.transport.json<wire.Kernel>(call));
  }

  delete(options: CallOptions = {}): Promise<void> {
    return this.transport.nothing(this.call("DELETE", `/kernels/${segment(this.id)}`, options));
  }
}

export interface KernelOptions extends CallOptions {
  env?: Record<string, string> | undefined;
  cwd?: string | undefined;
  limits?: KernelLimits | undefined;
}

/** `box.kernels` */
export class Kernels {
  readonly #transport: Transport;
  readonly #box: string;

  constructor(transport: Transport, box: string) {
    this.#transport = transport;
    this.#box = box;
  }

  async create(options: KernelOptions = {}): Promise<Kernel> {
    const { signal } = options;
    const path = `${this.#box}/kernels`;
    const call: Call = { method: "POST", path, json: bodyOf(options), signal, again: "never" };
    return this.get((await this.#transport.json<wire.Kernel>(call)).id);
  }

  get(id: string): Kernel {
    return new Kernel(this.#transport, this.#box, id);
  }

  list(options: CallOptions = {}): Pages<KernelInfo> {
    const listing = { path: `${this.#box}/kernels`, member: "kernels", signal: options.signal };
    return pages(this.#transport, listing, (kernel: wire.Kernel) => toCamel(kernel));
  }
}
