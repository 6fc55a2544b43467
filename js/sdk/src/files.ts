/* The files of a live sandbox. */

import { bodyOf, isStream, type FileData } from "./bytes.js";
import { toCamel, type Camel } from "./camel.js";
import { BadArgumentError, ClocheError, ConnectionLostError } from "./errors.js";
import { NoSuchPathError } from "./codes.js";
import type { CallOptions } from "./options.js";
import { pages, type Pages } from "./pages.js";
import { segment, type Call, type Query, type Transport } from "./transport.js";
import type * as wire from "./wire.js";

export type Entry = Camel<wire.Entry>;
export type FileMade = Camel<wire.FileMade>;
export type Unpacked = Camel<wire.Unpacked>;

export interface ReadOptions extends CallOptions {
  /** The first byte that is wanted. */
  start?: number | undefined;
  /** The one behind the last. */
  end?: number | undefined;
}

const ROOT = /^\/workspace(?:\/|$)/;

/* From the workspace: programs inside know it as /workspace, or as the current directory. */
function encoded(path: string): string {
  const relative = path.replace(ROOT, "").replace(/^\.\//, "").replace(/\/+$/, "");
  if (relative === "" || relative === ".") return "";
  const names = relative.split("/");
  if (names.some((name) => ["", ".", ".."].includes(name))) {
    const remediation = 'use one that is relative, or begins with /workspace/, and has no ".."';
    throw new BadArgumentError(`${path} is no path of the workspace`, remediation);
  }
  return names.map(segment).join("/");
}

/* Servers once said `size`, and of an archive `bytes`. */
function entryOf({ size, ...entry }: wire.Entry & { size?: number }): Entry {
  return toCamel({ ...entry, size_bytes: entry.size_bytes ?? size });
}

function rangeOf({ start, end }: ReadOptions): Record<string, string> {
  if (start === undefined && end === undefined) return {};
  return { range: `bytes=${start ?? 0}-${end === undefined ? "" : end - 1}` };
}

/* A download that breaks off says so in our words. */
export function guarded(
  stream: ReadableStream<Uint8Array>,
  what: string,
): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  return new ReadableStream({
    async pull(to) {
      try {
        const { done, value } = await reader.read();
        if (done) to.close();
        else to.enqueue(value);
      } catch (cause) {
        const said = `the connection was lost in the middle of ${what}`;
        const isOurs = cause instanceof ClocheError || (cause as Error).name === "AbortError";
        throw isOurs ? cause : new ConnectionLostError(said, "download it again", { cause });
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** `box.files`: paths are below the workspace. All of it works while code runs. */
export class Files {
  readonly #transport: Transport;
  readonly #box: string;

  constructor(transport: Transport, box: string) {
    this.#transport = transport;
    this.#box = box;
  }

  #call(method: string, path: string, options: CallOptions, query: Query = {}): Call {
    const { signal } = options;
    return { method, path: `${this.#box}/files/${encoded(path)}`, query, signal, again: "always" };
  }

  /** All of a file, or the bytes from `start` to before `end`. */
  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    return this.#transport.bytes({
      ...this.#call("GET", path, options),
      headers: rangeOf(options),
    });
  }

  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options));
  }

  /** The same as it comes, for files that are large. */
  async stream(path: string, options: ReadOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const call = { ...this.#call("GET", path, options), headers: rangeOf(options) };
    const { body } = await this.#transport.send(call);
    return guarded(body ?? new Blob().stream(), path);
  }

  /** Makes or replaces a file; until all of it has come, what was there stays. */
  async write(
    path: string,
    data: FileData,
    options: CallOptions & { mode?: string | undefined } = {},
  ): Promise<FileMade> {
    const body = await bodyOf(data);
    const made = await this.#transport.json<wire.FileMade>({
      ...this.#call("PUT", path, options, { mode: options.mode }),
      headers: { "content-type": "application/octet-stream" },
      body,
      again: isStream(body) ? "never" : "always",
    });
    return toCamel(made);
  }

  /** What is in a directory, or with `recursive` in all below it. */
  list(path = "", options: CallOptions & { recursive?: boolean | undefined } = {}): Pages<Entry> {
    const { path: at } = this.#call("GET", path, options);
    const query = { limit: 1000, recursive: options.recursive };
    const listing = { path: at, member: "entries", query, signal: options.signal };
    return pages(this.#transport, listing, entryOf);
  }

  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    try {
      const { body } = await this.#transport.send(this.#call("GET", path, options, { limit: 1 }));
      await body?.cancel();
      return true;
    } catch (error) {
      if (error instanceof NoSuchPathError) return false;
      throw error;
    }
  }

  /** A file or an empty directory; with `recursive` any directory. */
  async delete(
    path: string,
    options: CallOptions & { recursive?: boolean | undefined } = {},
  ): Promise<void> {
    const call = this.#call("DELETE", path, options, { recursive: options.recursive });
    return this.#transport.nothing(call);
  }

  async #change(
    path: string,
    json: object,
    options: CallOptions,
    again: Call["again"],
  ): Promise<Entry> {
    const call: Call = { ...this.#call("POST", path, options), json, again };
    return entryOf(await this.#transport.json<wire.Entry>(call));
  }

  /** With the directories above it. */
  async mkdir(
    path: string,
    options: CallOptions & { mode?: string | undefined } = {},
  ): Promise<Entry> {
    return this.#change(path, { op: "mkdir", mode: options.mode }, options, "never");
  }

  /** To another path, where nothing is yet. */
  async move(path: string, to: string, options: CallOptions = {}): Promise<Entry> {
    return this.#change(path, { op: "move", to: to.replace(ROOT, "") }, options, "never");
  }

  /** `mode` is octal: "0755". */
  async chmod(path: string, mode: string, options: CallOptions = {}): Promise<Entry> {
    return this.#change(path, { op: "chmod", mode }, options, "always");
  }

  /** A directory as tar.gz. */
  async downloadArchive(path = "", options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { body } = await this.#transport.send({
      method: "GET",
      path: `${this.#box}/archive/${encoded(path)}`,
      signal: options.signal,
      again: "always",
    });
    return guarded(body ?? new Blob().stream(), `the archive of ${path || "the workspace"}`);
  }

  /** Unpacks a tar.gz into a directory, over what is there. */
  async uploadArchive(path: string, data: FileData, options: CallOptions = {}): Promise<Unpacked> {
    const body = await bodyOf(data);
    const made = await this.#transport.json<wire.Unpacked & { bytes?: number }>({
      method: "PUT",
      path: `${this.#box}/archive/${encoded(path)}`,
      headers: { "content-type": "application/gzip" },
      body,
      signal: options.signal,
      again: isStream(body) ? "never" : "always",
    });
    return { files: made.files, sizeBytes: made.size_bytes ?? made.bytes };
  }
}
