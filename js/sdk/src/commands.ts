/* Programs and shell lines in a live sandbox. */

import { toCamel, type Camel } from "./camel.js";
import { BadReplyError, ExecutionFailedError } from "./errors.js";
import { LineCutter, endedByLeaving } from "./execution.js";
import { follow, type Source } from "./follow.js";
import {
  bodyOf,
  onDisconnect,
  type CallOptions,
  type DisconnectOptions,
  type LineListeners,
} from "./options.js";
import { pages, type Pages } from "./pages.js";
import { Terminal, type TerminalOptions } from "./terminal.js";
import { STREAMED, keyed, segment, type Call, type Transport } from "./transport.js";
import type * as wire from "./wire.js";

export type CommandInfo = Camel<wire.Command>;

interface SharedOptions {
  /** Where it runs; /workspace. */
  cwd?: string | undefined;
  env?: Record<string, string> | undefined;
  timeoutMs?: number | undefined;
  /** Kept of each stream. */
  outputBytes?: number | undefined;
}
export interface RunCommandOptions extends SharedOptions, DisconnectOptions, LineListeners {
  stdin?: string | undefined;
}
export interface StartCommandOptions extends SharedOptions, CallOptions {
  stdin?: string | undefined;
}

/** A line for the shell, or a program and its arguments. */
export type CommandLine = string | readonly string[];

export type CommandEvent = { seq: number } & (
  | { type: "start"; id: string }
  | { type: "stdout"; text: string }
  | { type: "stderr"; text: string }
  | { type: "end"; result: CommandResult }
);

/* Declared together: the fields of the API, in this language's spelling. */
export interface CommandResult extends Camel<wire.CommandResult> {}

/** A command: what it printed, and how it ended. */
export class CommandResult {
  constructor(result: wire.CommandResult) {
    Object.assign(this, toCamel(result));
  }

  get ok(): boolean {
    return this.exitCode === 0;
  }

  /** In a sentence, why it is not ok. */
  get failure(): string {
    const ended = this.timedOut ? "its time was up" : `exit status ${this.exitCode}`;
    const last = this.stderr.trim().split("\n").at(-1);
    return `${this.cmd} failed: ${this.problem ?? ended}${last ? ` (${last})` : ""}`;
  }

  /** Itself, if its exit status is 0; else throws an ExecutionFailedError. */
  check(): this {
    if (!this.ok) throw new ExecutionFailedError(this);
    return this;
  }
}

const words = (line: CommandLine) => (typeof line === "string" ? { cmd: line } : { argv: line });

/* `box`: the path of the sandbox. */
async function* commandEvents(source: Source, box: string): AsyncGenerator<CommandEvent, void> {
  const printed = { stdout: "", stderr: "" };
  let isWhole = !source.after;
  for await (const { event, isGap } of follow(source)) {
    const { seq } = event;
    isWhole &&= !isGap;
    if (event.event === "start") {
      yield { seq, type: "start", id: (event.data as { id: string }).id };
    } else if (event.event === "stdout" || event.event === "stderr") {
      const text = (event.data as wire.Text).data;
      printed[event.event] += text;
      yield { seq, type: event.event, text };
    } else if (event.event === "end") {
      const end = event.data as wire.Command;
      const { transport, signal } = source;
      const path = `${box}/commands/${segment(end.id)}`;
      const call: Call = { method: "GET", path, signal, again: "always" };
      const whole = isWhole
        ? { ...end, ...printed }
        : await transport.json<wire.CommandResult>(call);
      yield { seq, type: "end", result: new CommandResult(whole) };
    }
  }
}

async function finishCommand(events: AsyncIterable<CommandEvent>, listeners: LineListeners) {
  const stdout = new LineCutter(listeners.onStdout);
  const stderr = new LineCutter(listeners.onStderr);
  for await (const event of events) {
    if (event.type === "stdout") await stdout.add(event.text);
    if (event.type === "stderr") await stderr.add(event.text);
    if (event.type !== "end") continue;
    await stdout.rest();
    await stderr.rest();
    return event.result;
  }
  throw new BadReplyError("a command's stream ended without its end");
}

/** A command that runs in the background. */
export class Command {
  readonly id: string;
  readonly #transport: Transport;
  readonly #box: string;

  constructor(transport: Transport, box: string, id: string) {
    this.#transport = transport;
    this.#box = box;
    this.id = id;
  }

  #call(method: string, what: string, { signal }: CallOptions, json?: object): Call {
    const path = `${this.#box}/commands/${segment(this.id)}${what}`;
    return { method, path, json, signal, again: method === "POST" ? "never" : "always" };
  }

  /** What it prints, from the event after number `after` on; reading ends with it. */
  stream(
    options: CallOptions & { after?: number | undefined } = {},
  ): AsyncGenerator<CommandEvent, void> {
    const source: Source = {
      transport: this.#transport,
      id: this.id,
      after: options.after ?? 0,
      events: () => this.#call("GET", "/events", {}).path,
      signal: options.signal,
    };
    return commandEvents(source, this.#box);
  }

  /** Waits for its end. That it waits no longer (`signal`) leaves the command as it is. */
  wait(options: CallOptions & LineListeners = {}): Promise<CommandResult> {
    return finishCommand(this.stream(options), options);
  }

  /** How it is, with its output so far. */
  async info(options: CallOptions = {}): Promise<CommandResult> {
    const call = this.#call("GET", "", options);
    return new CommandResult(await this.#transport.json<wire.CommandResult>(call));
  }

  /** Text for its stdin; with `eof` that is all. */
  write(text: string, options: CallOptions & { eof?: boolean | undefined } = {}): Promise<void> {
    const json = { data: text, eof: options.eof ?? false };
    return this.#transport.nothing(this.#call("POST", "/stdin", options, json));
  }

  /** To all of its process group: a name, such as "SIGTERM", or a number. */
  signal(signal: string | number = "SIGINT", options: CallOptions = {}): Promise<void> {
    return this.#transport.nothing(this.#call("POST", "/signal", options, { signal }));
  }

  /** Ends all that came from it. */
  kill(options: CallOptions = {}): Promise<void> {
    return this.signal("SIGKILL", options);
  }

  /** Kills and forgets it. */
  delete(options: CallOptions = {}): Promise<void> {
    return this.#transport.nothing(this.#call("DELETE", "", options));
  }
}

/** `box.commands` */
export class Commands {
  readonly #transport: Transport;
  readonly #box: string;

  constructor(transport: Transport, box: string) {
    this.#transport = transport;
    this.#box = box;
  }

  #begin(json: object, signal: AbortSignal | undefined, again: Call["again"]): Call {
    return { method: "POST", path: `${this.#box}/commands`, json, signal, again };
  }

  /** Runs a command to its end, as events. A reader that leaves before that ends it. */
  stream(line: CommandLine, options: RunCommandOptions = {}): AsyncGenerator<CommandEvent, void> {
    const { signal } = options;
    const on_disconnect = onDisconnect(options);
    const json = { ...bodyOf(options), ...words(line), on_disconnect };
    const begin = {
      ...this.#begin(json, signal, on_disconnect === "continue" ? keyed() : "never"),
      headers: STREAMED,
    };
    const path = (id: string) => `${this.#box}/commands/${segment(id)}/events`;
    const source = { transport: this.#transport, begin, events: path, signal };
    return endedByLeaving(commandEvents(source, this.#box), options, async (first) => {
      if (first.type === "start") await this.get(first.id).kill();
    });
  }

  /** Runs a command to its end. That it fails is a result: see `exitCode`, or `check()`. */
  run(line: CommandLine, options: RunCommandOptions = {}): Promise<CommandResult> {
    return finishCommand(this.stream(line, options), options);
  }

  /** Starts a command and leaves it running; its stdin stays open. */
  async start(line: CommandLine, options: StartCommandOptions = {}): Promise<Command> {
    const json = { ...bodyOf(options), ...words(line), background: true };
    const made = await this.#transport.json<wire.Command>(
      this.#begin(json, options.signal, keyed()),
    );
    return this.get(made.id);
  }

  /** One that runs already, or has ended lately. */
  get(id: string): Command {
    return new Command(this.#transport, this.#box, id);
  }

  list(options: CallOptions = {}): Pages<CommandInfo> {
    const listing = { path: `${this.#box}/commands`, member: "commands", signal: options.signal };
    return pages(this.#transport, listing, (one: wire.Command) => toCamel(one));
  }

  /** A terminal with a shell in it, or with this line. */
  terminal(options: TerminalOptions & { cmd?: string; cwd?: string } = {}): Promise<Terminal> {
    return Terminal.open(this.#transport, `${this.#box}/commands/pty`, options);
  }

  /** Sits down at the terminal of a command that runs. */
  async attach(id: string, options: TerminalOptions = {}): Promise<Terminal> {
    const path = `${this.#box}/commands/${segment(id)}/pty`;
    return Terminal.open(this.#transport, path, options, id);
  }
}
