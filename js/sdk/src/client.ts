/* One server: programs in sandboxes of their own, and the way to everything else. */

import { lines } from "./bytes.js";
import { toCamel, type Camel } from "./camel.js";
import { BadReplyError, BuildFailedError, ClocheError } from "./errors.js";
import {
  LineCutter,
  executionEvents,
  executionPath,
  finish,
  startCode,
  type ExecutionEvent,
} from "./execution.js";
import { refusalIn, type ErrorReply } from "./failures.js";
import { follow } from "./follow.js";
import { bodyOf, inputsOf, type CallOptions, type RunOptions } from "./options.js";
import { pages } from "./pages.js";
import { Result } from "./result.js";
import { Sandboxes } from "./sandbox.js";
import { FileStore } from "./store.js";
import { Talk } from "./talk.js";
import { Transport, keyed, segment, type Call, type ClientOptions } from "./transport.js";
import type * as wire from "./wire.js";

export type ServerInfo = Camel<wire.Info>;
export type Profile = Camel<wire.Profile>;

/** What `makeProfile` may be told besides. */
export interface ProfileOptions extends CallOptions, Pick<RunOptions, "env" | "limits"> {
  /** The operator's profile that it is made from; the first unless given. */
  from?: string | undefined;
  /** Gets each line that the build prints. */
  onOutput?: ((line: string) => unknown) | undefined;
}

/** One program of a batch. */
export type BatchRequest = { code: string } & Omit<
  RunOptions,
  "signal" | "onStdout" | "onStderr" | "onResult" | "onEvent" | "onInput"
>;

/** What became of it: a result, or why the server did not take it. */
export interface BatchItem {
  index: number;
  result: Result | undefined;
  problem: ClocheError | undefined;
}

let ofEnvironment: Client | undefined;

export class Client {
  readonly sandboxes: Sandboxes;
  /** Files that outlive sandboxes. */
  readonly files: FileStore;
  readonly #transport: Transport;

  constructor(options: ClientOptions = {}) {
    this.#transport = new Transport(options);
    this.sandboxes = new Sandboxes(this.#transport);
    this.files = new FileStore(this.#transport);
  }

  /** That of CLOCHE_SERVER and CLOCHE_API_KEY, made once. */
  static ofEnvironment(): Client {
    ofEnvironment ??= new Client();
    return ofEnvironment;
  }

  get baseUrl(): string {
    return this.#transport.baseUrl;
  }

  /** Runs a program in a fresh sandbox and yields what happens; the last event has the result. */
  async *stream(code: string, options: RunOptions = {}): AsyncGenerator<ExecutionEvent, void> {
    const files = await this.#inputs(options);
    yield* startCode(this.#transport, { ...options, code }, { path: "/v1/run", files });
  }

  /**
   * Runs a program to its end. That it fails is a result: see `ok`, `error`, or `check()`. With
   * `onInput` it goes over a WebSocket, whose loss ends the program.
   */
  async run(code: string, options: RunOptions = {}): Promise<Result> {
    const { onInput } = options;
    if (!onInput) return finish(this.stream(code, options), options);
    const talk = await this.talk(code, options);
    try {
      return await finish(talk, options, async (question) => {
        const answer = await onInput(question);
        if (answer === null || answer === undefined) talk.endInput();
        else talk.answer(answer);
      });
    } finally {
      await talk.close();
    }
  }

  /** Runs a program whose stdin stays open: write to it, and answer its `input()`. */
  async talk(code: string, options: RunOptions = {}): Promise<Talk> {
    const files = await this.#inputs(options);
    const request = { ...bodyOf({ ...options, code }), ...(files.length ? { files } : {}) };
    return Talk.open(this.#transport, request, options);
  }

  /* What is too large for a request goes to the store first. */
  async #inputs({
    files,
    signal,
  }: Pick<RunOptions, "files" | "signal">): Promise<wire.InputFile[]> {
    const { inline, large } = await inputsOf(files);
    for (const [path, data] of large) {
      const stored = await this.files.upload(path, data, { signal });
      inline.push({ path, file_id: stored.fileId });
    }
    return inline;
  }

  /** Runs many programs; their results in the order in which they end. */
  async *batch(
    requests: readonly BatchRequest[],
    options: CallOptions & { concurrency?: number | undefined } = {},
  ): AsyncGenerator<BatchItem, void> {
    const { concurrency, signal } = options;
    const items: object[] = [];
    for (const request of requests)
      items.push({
        ...bodyOf(request),
        files: await this.#inputs({ files: request.files, signal }),
      });
    const json = { items, concurrency };
    const call: Call = { method: "POST", path: "/v1/run/batch", json, signal, again: keyed() };
    yield* this.#items(call, items.length);
  }

  /* A batch that is sent again gives the same lines again: those that were seen are left out. */
  async *#items(call: Call, n: number): AsyncGenerator<BatchItem, void> {
    const began = Date.now();
    const seen = new Set<number>();
    for (let turn = 0; seen.size < n && turn < 5; turn++) {
      try {
        const send = () =>
          turn === 0 ? this.#transport.send(call) : this.#transport.repeat(call, began);
        const { body } = await send();
        for await (const line of lines(body ?? new Blob().stream())) {
          const item = line === "" ? undefined : itemOf(JSON.parse(line) as wire.Result & Line);
          if (!item || seen.has(item.index)) continue;
          seen.add(item.index);
          yield item;
        }
      } catch (error) {
        call.signal?.throwIfAborted();
        if (error instanceof ClocheError) throw error;
      }
    }
    if (seen.size < n) throw new BadReplyError("the connection is lost again and again in a batch");
  }

  /** The result of what ran lately; null while it runs. Throws why there is none. */
  async result(executionId: string, { signal }: CallOptions = {}): Promise<Result | null> {
    const path = `/v1/executions/${segment(executionId)}`;
    const call: Call = { method: "GET", path, signal, again: "always" };
    const { result } = await this.#transport.json<wire.Execution>(call);
    const refusal = result && refusalIn(result as ErrorReply, 0);
    if (refusal) throw refusal;
    return result && new Result(result);
  }

  /** The events after number `after` of what runs, or ran lately, to its end. */
  follow(
    executionId: string,
    options: CallOptions & { after?: number | undefined } = {},
  ): AsyncGenerator<ExecutionEvent, void> {
    const { signal, after = 0 } = options;
    const source = { transport: this.#transport, id: executionId, after, signal };
    return executionEvents({ ...source, events: executionPath });
  }

  async info(options: CallOptions = {}): Promise<ServerInfo> {
    const call: Call = { method: "GET", path: "/v1/info", signal: options.signal, again: "always" };
    return toCamel(await this.#transport.json<wire.Info>(call));
  }

  async profiles(options: CallOptions = {}): Promise<Profile[]> {
    const query = { limit: undefined }; // an earlier server knows none, and gives all
    const listing = { path: "/v1/profiles", member: "profiles", query, signal: options.signal };
    return pages(this.#transport, listing, (one: wire.Profile) => toCamel(one)).toArray();
  }

  /** One of the operator's, or of this tenant's own. */
  async profile(name: string, options: CallOptions = {}): Promise<Profile> {
    const path = `/v1/profiles/${segment(name)}`;
    const call: Call = { method: "GET", path, signal: options.signal, again: "always" };
    return toCamel(await this.#transport.json<wire.Profile>(call));
  }

  /**
   * Makes a profile with these packages for this tenant, as "polars" or "rich>=13", and waits until
   * it is built. A BuildFailedError says why a package cannot be had.
   */
  async makeProfile(
    name: string,
    requirements: readonly string[],
    options: ProfileOptions = {},
  ): Promise<Profile> {
    const { signal, onOutput, from, env, limits } = options;
    const json = { ...bodyOf({ env, limits }), name, requirements, from };
    const call: Call = { method: "POST", path: "/v1/profiles", json, signal, again: keyed() };
    await this.#transport.json<wire.Profile>(call);
    const events = () => `/v1/profiles/${segment(name)}/events`;
    const cutter = new LineCutter(onOutput);
    for await (const { event } of follow({ transport: this.#transport, id: name, events, signal })) {
      if (event.event === "stdout" || event.event === "stderr")
        await cutter.add((event.data as wire.Text).data);
    }
    await cutter.rest();
    const made = await this.profile(name, { signal });
    if (made.state !== "ready") throw new BuildFailedError(name, made.problem);
    return made;
  }

  /** One of this tenant's own; `force`: also while sandboxes have it, which go on, or it is built. */
  async deleteProfile(
    name: string,
    options: CallOptions & { force?: boolean | undefined } = {},
  ): Promise<void> {
    const { signal, force } = options;
    const path = `/v1/profiles/${segment(name)}`;
    return this.#transport.nothing({
      method: "DELETE",
      path,
      query: { force: force || undefined },
      signal,
      again: "always",
    });
  }
}

type Line = ErrorReply & { index: number };

function itemOf({ index, ...rest }: wire.Result & Line): BatchItem {
  const problem = "status" in rest ? undefined : refusalIn(rest as ErrorReply, 0);
  return { index, problem, result: problem ? undefined : new Result(rest) };
}
