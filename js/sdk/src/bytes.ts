/* Bytes in every shape that users have them in. */

import { BadReplyError } from "./errors.js";
import { isServerSide } from "./platform.js";

/** What a file can be written from. A Node stream is an AsyncIterable. */
export type FileData =
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array | string>;

export type Body = string | Uint8Array | Blob | ReadableStream<Uint8Array>;

export function isStream(body: unknown): body is ReadableStream<Uint8Array> {
  return typeof ReadableStream !== "undefined" && body instanceof ReadableStream;
}

function streamFrom(source: AsyncIterable<Uint8Array | string>): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(to) {
      const { done, value } = await iterator.next();
      if (done) to.close();
      else to.enqueue(typeof value === "string" ? encoder.encode(value) : value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

/* Browsers send a stream over HTTP/2 only, so there it is collected first. */
export async function bodyOf(data: FileData): Promise<Body> {
  if (typeof data === "string" || data instanceof Uint8Array || data instanceof Blob) return data;
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  const stream = isStream(data) ? data : streamFrom(data);
  return isServerSide ? stream : await new Response(stream).blob();
}

export async function bytesOf(data: FileData): Promise<Uint8Array> {
  const body = await bodyOf(data);
  if (body instanceof Uint8Array) return body;
  return new Uint8Array(await new Response(body as BodyInit).arrayBuffer());
}

const STEP = 0x8000; // arguments that every engine takes at once

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += STEP)
    text += String.fromCharCode(...bytes.subarray(at, at + STEP));
  return btoa(text);
}

export function fromBase64(text: string): Uint8Array {
  const binary = atob(text.replace(/\s/g, ""));
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

const QUIET_MS = 60_000; // servers give a sign of life every ten seconds

/* The chunks of a stream, which is over when nothing has come for long: the other side is gone. The
 * connection is closed when the reader leaves early. */
async function* chunks(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  let since = Infinity;
  const watch = setInterval(() => {
    if (Date.now() - since > QUIET_MS) reader.cancel().catch(() => undefined);
  }, QUIET_MS / 6);
  try {
    for (;;) {
      since = Date.now();
      const { done, value } = await reader.read();
      since = Infinity;
      if (done) return;
      yield value;
    }
  } finally {
    clearInterval(watch);
    reader.cancel().catch(() => undefined); // nothing happens when it is over
  }
}

const REPLY_MAX = 2 ** 29; // bytes: some ten times what a result has
export const READ_MAX = 2 ** 31; // of a file that is read at once

/* All of a body, which has a bound. */
export async function bodyBytes(response: Response, most: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true };
    if (done || !value) break;
    pieces.push(value);
    size += value.length;
    if (size > most) {
      reader?.cancel().catch(() => undefined);
      throw new BadReplyError(`a reply has more than ${most} bytes; read large files as a stream`);
    }
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

export async function textOf(response: Response): Promise<string> {
  return new TextDecoder().decode(await bodyBytes(response, REPLY_MAX));
}

/* Lines of text. A line may be long and come in many pieces: each piece is looked at once. */
export async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let begun: string[] = [];
  let size = 0; // of that, about
  for await (const chunk of chunks(stream)) {
    size += chunk.length;
    if (size > REPLY_MAX) throw new BadReplyError("a stream has a line without end");
    const parts = decoder.decode(chunk, { stream: true }).split("\n");
    begun.push(parts[0] ?? "");
    for (const part of parts.slice(1)) {
      yield begun.join("");
      begun = [part];
      size = part.length;
    }
  }
}
