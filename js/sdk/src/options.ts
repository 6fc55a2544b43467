/* What users ask for, in this language's spelling, and what the API wants for it. */

import { bytesOf, toBase64, type FileData } from "./bytes.js";
import { toSnake, type Given } from "./camel.js";
import type { ExecutionEvent } from "./execution.js";
import type { Display } from "./result.js";
import type * as wire from "./wire.js";

export type Limits = Given<wire.Limits>;
export type KernelLimits = Given<wire.KernelLimits>;
export type Network = Given<wire.Network>;

/** Every call can be ended from outside. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
}

/** By path in the workspace: what is in the file, or the id of a stored one. */
export type InputFiles = Record<string, FileData | { fileId: string }>;

/** What is called with each line that is printed, without its end. */
export interface LineListeners {
  onStdout?: ((line: string) => unknown) | undefined;
  onStderr?: ((line: string) => unknown) | undefined;
}

/** What is called while code runs. A promise that a function returns is waited for. */
export interface Listeners extends LineListeners {
  /** Values and displays, as they come. */
  onResult?: ((result: Display) => unknown) | undefined;
  onEvent?: ((event: ExecutionEvent) => unknown) | undefined;
}

/** What an answer to `input()` can be: its line, or null for the end of the file. */
export type Answer = string | null | undefined;
export interface Question {
  prompt: string;
  /** It is getpass that asks. */
  password: boolean;
}

export interface DisconnectOptions extends CallOptions {
  /**
   * What happens when the connection closes. "continue": it goes on, and a lost connection is taken
   * up again. "interrupt": it ends, so that `signal` ends it, too. The second is the default where
   * there is a `signal`, else the first.
   */
  onDisconnect?: wire.OnDisconnect | undefined;
}

/** How code is run in a live sandbox. */
export interface CellOptions extends DisconnectOptions {
  timeoutMs?: number | undefined;
  env?: Record<string, string> | undefined;
  /** What `input()` and `sys.stdin` read. */
  stdin?: string | undefined;
  /** Whether `input()` waits for an answer; the default with `onInput`, and of streams. */
  allowStdin?: boolean | undefined;
  /** No result, no history, no count. */
  silent?: boolean | undefined;
  storeHistory?: boolean | undefined;
  /** Of figures. */
  formats?: readonly wire.FigureFormat[] | undefined;
  cpuSeconds?: number | undefined;
  outputBytes?: number | undefined;
  /** Which interpreter; the sandbox's first one unless named. */
  kernelId?: string | undefined;
}

/** Who answers `input()`. */
export interface InputListener {
  onInput?: ((question: Question) => Answer | Promise<Answer>) | undefined;
}

/** The same, followed by functions. */
export interface RunCellOptions extends CellOptions, Listeners, InputListener {}

/** How a program is run in a fresh sandbox of its own. */
export interface RunOptions extends DisconnectOptions, Listeners, InputListener {
  timeoutMs?: number | undefined;
  env?: Record<string, string> | undefined;
  /** `sys.argv[1:]` */
  args?: readonly string[] | undefined;
  stdin?: string | undefined;
  /** Of figures. */
  formats?: readonly wire.FigureFormat[] | undefined;
  silent?: boolean | undefined;
  profile?: string | undefined;
  policy?: "none" | "restricted" | undefined;
  files?: InputFiles | undefined;
  limits?: Limits | undefined;
  network?: Network | undefined;
  /** Installed by pip before the program runs: `["rich>=13"]`. */
  packages?: readonly string[] | undefined;
}

export interface SandboxOptions extends CallOptions {
  profile?: string | undefined;
  files?: InputFiles | undefined;
  env?: Record<string, string> | undefined;
  limits?: Limits | undefined;
  network?: Network | undefined;
  ttlSeconds?: number | undefined;
  idleSeconds?: number | undefined;
  metadata?: Record<string, string> | undefined;
  name?: string | undefined;
}

const INLINE_MAX = 1 << 20; // bytes; what is larger, or may be, travels by itself

export interface Inputs {
  inline: wire.InputFile[];
  large: [path: string, data: FileData][];
}

function sizeOf(data: FileData): number {
  if (typeof data === "string") return 3 * data.length; // at most, as UTF-8
  if (data instanceof Uint8Array || data instanceof ArrayBuffer) return data.byteLength;
  return data instanceof Blob ? data.size : Infinity;
}

export async function inputsOf(files: InputFiles = {}): Promise<Inputs> {
  const inputs: Inputs = { inline: [], large: [] };
  for (const [path, data] of Object.entries(files)) {
    if (typeof data === "object" && "fileId" in data)
      inputs.inline.push({ path, file_id: data.fileId });
    else if (sizeOf(data) > INLINE_MAX) inputs.large.push([path, data]);
    else if (typeof data === "string") inputs.inline.push({ path, content: data });
    else inputs.inline.push({ path, content: toBase64(await bytesOf(data)), encoding: "base64" });
  }
  return inputs;
}

const OURS = [
  "signal",
  "onStdout",
  "onStderr",
  "onResult",
  "onEvent",
  "onInput",
  "files",
  "onDisconnect",
];

/* The body of a request: options that are the client's own are left out, and files, too. */
export function bodyOf(options: object): Record<string, unknown> {
  return toSnake(
    Object.fromEntries(Object.entries(options).filter(([name]) => !OURS.includes(name))),
  );
}

export function onDisconnect(options: DisconnectOptions): wire.OnDisconnect {
  return options.onDisconnect ?? (options.signal ? "interrupt" : "continue");
}
