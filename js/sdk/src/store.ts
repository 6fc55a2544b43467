/* Files that outlive sandboxes: uploaded once, named by their id in `files`, or made by a program. */

import { bodyOf, isStream, type Body, type FileData } from "./bytes.js";
import { toCamel, type Camel } from "./camel.js";
import { guarded } from "./files.js";
import type { CallOptions } from "./options.js";
import { pages, type Pages } from "./pages.js";
import { randomKey } from "./platform.js";
import { keyed, segment, type Call, type Transport } from "./transport.js";
import type * as wire from "./wire.js";

export type StoredFile = Camel<wire.StoredFile>;
export type UploadedFile = Camel<wire.UploadedFile>;

/* multipart/form-data with one file. Made by hand: it is the same bytes when it is sent again, and
 * goes out as it comes. */
function form(data: Body, filename: string, boundary: string): Body {
  const name = filename.replace(/[\r\n"]/g, (odd) => encodeURIComponent(odd));
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n`;
  const tail = `\r\n--${boundary}--\r\n`;
  if (!isStream(data)) return new Blob([head, data as BlobPart, tail]);
  const encoder = new TextEncoder();
  const ends = new TransformStream<Uint8Array, Uint8Array>({
    start: (to) => to.enqueue(encoder.encode(head)),
    flush: (to) => to.enqueue(encoder.encode(tail)),
  });
  return data.pipeThrough(ends);
}

/** `client.files` */
export class FileStore {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  #call(method: string, id: string, { signal }: CallOptions): Call {
    return { method, path: `/v1/files/${segment(id)}`, signal, again: "always" };
  }

  async upload(filename: string, data: FileData, options: CallOptions = {}): Promise<UploadedFile> {
    const boundary = `cloche-${randomKey()}`;
    const call: Call = {
      method: "POST",
      path: "/v1/files",
      headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
      body: form(await bodyOf(data), filename, boundary),
      signal: options.signal,
      again: keyed(),
    };
    return toCamel(await this.#transport.json<wire.UploadedFile>(call));
  }

  async read(id: string, options: CallOptions = {}): Promise<Uint8Array> {
    return this.#transport.bytes(this.#call("GET", id, options));
  }

  async stream(id: string, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { body } = await this.#transport.send(this.#call("GET", id, options));
    return guarded(body ?? new Blob().stream(), `the file ${id}`);
  }

  /** Newest first. */
  list(options: CallOptions = {}): Pages<StoredFile> {
    const listing = { path: "/v1/files", member: "files", signal: options.signal };
    return pages(this.#transport, listing, (file: wire.StoredFile) => toCamel(file));
  }

  async delete(id: string, options: CallOptions = {}): Promise<void> {
    return this.#transport.nothing(this.#call("DELETE", id, options));
  }
}
