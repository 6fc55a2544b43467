/* Code that runs: its events for those who read them, and its result for those who wait for it. */

import { refusalIn, type ErrorReply } from "./failures.js";
import { ClocheError, BadReplyError } from "./errors.js";
import { follow, type Source } from "./follow.js";
import {
  bodyOf,
  onDisconnect,
  type DisconnectOptions,
  type Listeners,
  type Question,
} from "./options.js";
import { Assembly, Display, Result, type CodeError } from "./result.js";
import { STREAMED, keyed, segment, type Call, type Transport } from "./transport.js";
import type * as wire from "./wire.js";

export type ExecutionEvent = { seq: number } & (
  | { type: "start"; id: string; kernelId: string | null }
  | { type: "stdout"; text: string }
  | { type: "stderr"; text: string }
  | { type: "result"; result: Display; executionCount: number }
  | { type: "display"; result: Display; displayId: string | null; update: boolean }
  | { type: "clear"; wait: boolean }
  | ({ type: "input" } & Question)
  | { type: "error"; error: CodeError }
  | { type: "end"; result: Result }
);

function displayOf(shown: wire.Shown | wire.Displayed, isMain: boolean): Display {
  return new Display({ data: shown.data, metadata: shown.metadata, is_main_result: isMain });
}

/* In our words; undefined: of a kind that came with a later server. */
export function eventOf({ seq, event: type, data }: wire.Event): ExecutionEvent | undefined {
  switch (type) {
    case "start": {
      const { id, kernel_id } = data as wire.Start;
      return { seq, type, id, kernelId: kernel_id };
    }
    case "stdout":
    case "stderr":
      return { seq, type, text: (data as wire.Text).data };
    case "result": {
      const shown = data as wire.Shown;
      const executionCount = shown.execution_count;
      return { seq, type, result: displayOf(shown, true), executionCount };
    }
    case "display": {
      const shown = data as wire.Displayed;
      const { display_id: displayId, update } = shown;
      return { seq, type, result: displayOf(shown, false), displayId, update };
    }
    case "clear":
      return { seq, type, wait: (data as wire.Clear).wait };
    case "input":
      return { seq, type, ...(data as wire.Question) };
    case "error":
      return { seq, type, error: data as CodeError };
  }
  return undefined;
}

export function failureOf(data: unknown, url: string): ClocheError {
  const refusal = refusalIn(data as ErrorReply, 0);
  return refusal ?? new BadReplyError(`a stream from ${url} failed and does not say why`);
}

/* When events are gone for good, the server's own result has what they said, if it still has it. */
async function wholeResult(source: Source, id: string, end: wire.ResultEnd, said: Assembly) {
  const { transport, signal } = source;
  const path = `/v1/executions/${segment(id)}`;
  const call: Call = { method: "GET", path, again: "always", signal };
  try {
    const { result } = await transport.json<wire.Execution>(call);
    if (result) return new Result(result);
  } catch (error) {
    if (!(error instanceof ClocheError)) throw error;
  }
  return said.end({
    ...end,
    stdout_truncated: true,
    stderr_truncated: true,
    results_truncated: true,
  });
}

export async function* executionEvents(source: Source): AsyncGenerator<ExecutionEvent, void> {
  const said = new Assembly();
  let isWhole = !source.after;
  for await (const { event, isGap, id } of follow(source)) {
    isWhole &&= !isGap;
    said.add(event);
    if (event.event === "failed") throw failureOf(event.data, source.transport.baseUrl);
    if (event.event === "end") {
      const end = event.data as wire.ResultEnd;
      const result = isWhole ? said.end(end) : await wholeResult(source, id ?? end.id, end, said);
      yield { seq: event.seq, type: "end", result };
      return;
    }
    const ours = eventOf(event);
    if (ours) yield ours;
  }
}

export const executionPath = (id: string) => `/v1/executions/${segment(id)}/events`;

/** What ends something that its reader left, unless it is to go on. */
export async function* endedByLeaving<E extends { type: string }>(
  events: AsyncIterable<E>,
  options: DisconnectOptions,
  end: (first: E) => Promise<void>,
): AsyncGenerator<E, void> {
  let running: E | undefined;
  try {
    for await (const event of events) {
      running = event.type === "end" ? undefined : (running ?? event);
      yield event;
    }
    running = undefined;
  } catch (error) {
    running = undefined; // it has ended, or nobody knows; with a signal the server ends it
    throw error;
  } finally {
    const goesOn = onDisconnect(options) === "continue" && options.onDisconnect === undefined;
    if (running && goesOn) await end(running).catch(() => undefined);
  }
}

interface Start {
  path: string;
  files?: wire.InputFile[];
}

/** Starts code at a path of the API; `files` are those of the request. */
export function startCode(
  transport: Transport,
  options: DisconnectOptions & { code: string },
  { path, files = [] }: Start,
): AsyncGenerator<ExecutionEvent, void> {
  const { signal } = options;
  const on_disconnect = onDisconnect(options);
  const json = { ...bodyOf(options), on_disconnect, ...(files.length ? { files } : {}) };
  const again = on_disconnect === "continue" ? keyed() : "never";
  const begin: Call = { method: "POST", path, json, headers: STREAMED, signal, again };
  return executionEvents({ transport, begin, events: executionPath, signal });
}

/** Cuts what is printed into lines; what has no end yet waits for it, or for `rest()`. */
export class LineCutter {
  readonly #listener: ((line: string) => unknown) | undefined;
  #begun = "";

  constructor(listener: ((line: string) => unknown) | undefined) {
    this.#listener = listener;
  }

  async add(text: string): Promise<void> {
    if (!this.#listener) return;
    const lines = (this.#begun + text).split("\n");
    this.#begun = lines.pop() ?? "";
    for (const line of lines) await this.#listener(line);
  }

  async rest(): Promise<void> {
    const rest = this.#begun;
    this.#begun = "";
    if (rest) await this.#listener?.(rest);
  }
}

/** Runs to the end, telling the listeners. `ask` is for those who can be asked. */
export async function finish(
  events: AsyncIterable<ExecutionEvent>,
  listeners: Listeners,
  ask?: (question: Question) => Promise<void>,
): Promise<Result> {
  const stdout = new LineCutter(listeners.onStdout);
  const stderr = new LineCutter(listeners.onStderr);
  for await (const event of events) {
    if (event.type === "stdout") await stdout.add(event.text);
    if (event.type === "stderr") await stderr.add(event.text);
    if (event.type === "input" || event.type === "end") {
      await stdout.rest();
      await stderr.rest();
    }
    if (event.type === "result" || event.type === "display")
      await listeners.onResult?.(event.result);
    await listeners.onEvent?.(event);
    if (event.type === "input") await ask?.(event);
    if (event.type === "end") return event.result;
  }
  throw new BadReplyError("a stream ended without its end");
}
