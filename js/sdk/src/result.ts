/*
 * The result of an execution, and what it is put together from: events, as a stream has them. What
 * is cleared or replaced by later events is so here as it is in the server's own result.
 */

import { fromBase64 } from "./bytes.js";
import { toCamel, type Camel } from "./camel.js";
import { ExecutionFailedError } from "./errors.js";
import { listed } from "./pages.js";
import type * as wire from "./wire.js";

export type CodeError = wire.CodeError;
export type Denial = wire.Denial;
export type MadeFile = Camel<wire.MadeFile>;
export type Usage = Camel<wire.Usage>;

/** A value or a display, in the forms that it has. */
export class Display {
  /** By MIME type, as the kernel gave it; binary data is base64. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Whether it is the value of the last expression. */
  readonly isMainResult: boolean;

  constructor(output: wire.OutputData) {
    this.data = output.data ?? {};
    this.metadata = output.metadata ?? {};
    this.isMainResult = output.is_main_result;
  }

  #text(type: string): string | undefined {
    const value = this.data[type];
    return typeof value === "string" ? value : undefined;
  }
  #bytes(type: string): Uint8Array | undefined {
    const text = this.#text(type);
    return text === undefined ? undefined : fromBase64(text);
  }

  get text(): string | undefined {
    return this.#text("text/plain");
  }
  get html(): string | undefined {
    return this.#text("text/html");
  }
  get markdown(): string | undefined {
    return this.#text("text/markdown");
  }
  get latex(): string | undefined {
    return this.#text("text/latex");
  }
  get svg(): string | undefined {
    return this.#text("image/svg+xml");
  }
  get json(): unknown {
    return this.data["application/json"];
  }
  get png(): Uint8Array | undefined {
    return this.#bytes("image/png");
  }
  get jpeg(): Uint8Array | undefined {
    return this.#bytes("image/jpeg");
  }
  get pdf(): Uint8Array | undefined {
    return this.#bytes("application/pdf");
  }
}

type ResultFields = Omit<Camel<wire.ResultEnd>, "warnings">;

/* Declared together: the fields of the API, in this language's spelling. */
export interface Result extends ResultFields {}

/** What became of an execution. That its code failed is a result, too: see `ok` and `error`. */
export class Result {
  readonly stdout: string;
  readonly stderr: string;
  /** Values and displays, in order. */
  readonly results: Display[];
  /** The value of the last expression as text, or null. */
  readonly text: string | null;
  /** In words: which limit did what, what was cut. */
  readonly warnings: string[];

  constructor(result: wire.Result) {
    const { stdout, stderr, results, text, warnings, ...rest } = result;
    Object.assign(this, toCamel(rest));
    this.stdout = stdout;
    this.stderr = stderr;
    this.results = listed<wire.OutputData>(results).map((output) => new Display(output));
    this.text = text;
    this.warnings = warnings ?? [];
  }

  /** Whether the code ran to its end. */
  get ok(): boolean {
    return this.status === "ok";
  }

  /** In a sentence, why it is not ok. */
  get failure(): string {
    const limit = this.limitHit ? `, at its limit of ${this.limitHit}` : "";
    const why = this.error ? `: ${this.error.name}: ${this.error.value}` : "";
    return `the code ended with status ${this.status}${limit}${why}`;
  }

  /** Itself, if it is ok; else throws an ExecutionFailedError. */
  check(): this {
    if (!this.ok) throw new ExecutionFailedError(this);
    return this;
  }
}

interface Shown {
  output: wire.OutputData;
}

/** Puts a result together from the events of its stream. */
export class Assembly {
  #stdout: string[] = [];
  #stderr: string[] = [];
  #shown: Shown[] = [];
  #byId = new Map<string, Shown>();
  #clearsNext = false;

  #clear(): void {
    this.#stdout = [];
    this.#stderr = [];
    this.#shown = [];
    this.#byId.clear();
    this.#clearsNext = false;
  }

  #show(data: wire.Shown | wire.Displayed, isMain: boolean): void {
    const { data: forms = {}, metadata = {} } = data as Partial<wire.Shown>;
    const output = { data: forms, metadata, is_main_result: isMain };
    const id = "display_id" in data ? data.display_id : data.transient?.display_id;
    const old = id ? this.#byId.get(id) : undefined;
    if ("update" in data && data.update) {
      if (old) old.output = { ...output, is_main_result: old.output.is_main_result };
      return; // else it is for something of an earlier execution
    }
    const shown = { output };
    this.#shown.push(shown);
    if (id && !old) this.#byId.set(id, shown);
  }

  add({ event, data }: wire.Event): void {
    const isNew = ["stdout", "stderr", "result", "display"].includes(event);
    if (isNew && this.#clearsNext) this.#clear();
    if (event === "stdout") this.#stdout.push((data as wire.Text).data);
    else if (event === "stderr") this.#stderr.push((data as wire.Text).data);
    else if (event === "clear" && (data as wire.Clear).wait) this.#clearsNext = true;
    else if (event === "clear") this.#clear();
    else if (isNew) this.#show(data as wire.Shown | wire.Displayed, event === "result");
  }

  end(end: wire.ResultEnd): Result {
    const isMain = ({ output }: Shown) => output.is_main_result;
    const displays = this.#shown.filter((shown) => !isMain(shown));
    const values = this.#shown.filter(isMain);
    const text = values.at(-1)?.output.data["text/plain"];
    return new Result({
      ...end,
      stdout: this.#stdout.join(""),
      stderr: this.#stderr.join(""),
      results: [...displays, ...values].map(({ output }) => output),
      text: typeof text === "string" ? text : null,
    });
  }
}
