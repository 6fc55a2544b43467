/*
 * What differs between the runtimes that this package knows: Node, browsers, and those that are like
 * Node. Nothing is imported for that, so that bundles for browsers stay small.
 */

import { NoTerminalClientError } from "./errors.js";

interface Process {
  env?: Record<string, string | undefined>;
  versions?: { node?: string };
}
const process = (globalThis as { process?: Process }).process;

/* Deno and Bun have a `process`, too. */
export const isServerSide = process?.versions?.node !== undefined;

export function environment(name: string): string | undefined {
  return (isServerSide && process?.env?.[name]) || undefined;
}

/* Older runtimes have no such symbol; what stands in for it is what TypeScript's helpers want. */
export const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for("Symbol.asyncDispose") as typeof Symbol.asyncDispose);

/* Keys of requests. Node 18 has no global `crypto`; they are names, not secrets. */
export function randomKey(): string {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto) globalThis.crypto.getRandomValues(bytes);
  else bytes.forEach((_, i) => (bytes[i] = Math.floor(Math.random() * 256)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** What a terminal needs of a WebSocket: the platform's own, or that of the package `ws`. */
export interface WebSocketLike {
  binaryType: string;
  readonly bufferedAmount: number;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: string, listener: (event: never) => void): void;
}
export type WebSocketClass = new (url: string, options?: never) => WebSocketLike;

/* Node's, Deno's, Bun's and that of `ws` take headers; a browser's takes none. */
export function openWebSocket(
  given: WebSocketClass | undefined,
  url: string,
  headers: Record<string, string>,
): WebSocketLike {
  const Class = given ?? (globalThis as { WebSocket?: WebSocketClass }).WebSocket;
  const hasHeaders = Object.keys(headers).length > 0;
  if (!Class) {
    throw new NoTerminalClientError(
      "this runtime has no WebSocket (Node has one from version 22 on)",
      'give a constructor: import WebSocket from "ws"; new Client({ WebSocket })',
    );
  }
  if (hasHeaders && !given && !isServerSide) {
    throw new NoTerminalClientError(
      "a browser's WebSocket cannot send an API key",
      "open terminals from Node, or through a proxy that adds the key",
    );
  }
  const socket = hasHeaders ? new Class(url, { headers } as never) : new Class(url);
  socket.binaryType = "arraybuffer";
  return socket;
}
