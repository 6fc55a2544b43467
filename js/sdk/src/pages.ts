/* Lists that come in pages. */

import { BadReplyError } from "./errors.js";
import type { Call, Query, Transport } from "./transport.js";

/** All of a list, page by page as it is read: `for await`, or `toArray()`. */
export class Pages<T> implements AsyncIterable<T> {
  readonly #page: (after: string | undefined) => Promise<{ items: T[]; next: string | null }>;

  constructor(page: (after: string | undefined) => Promise<{ items: T[]; next: string | null }>) {
    this.#page = page;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    let after: string | undefined;
    do {
      const { items, next } = await this.#page(after);
      yield* items;
      after = next === after ? undefined : (next ?? undefined);
    } while (after !== undefined);
  }

  async toArray(): Promise<T[]> {
    const all: T[] = [];
    for await (const item of this) all.push(item);
    return all;
  }
}

export function listed<T>(value: unknown): T[] {
  if (Array.isArray(value)) return value as T[];
  throw new BadReplyError("the server sent something else than a list");
}

interface Listing {
  path: string;
  /** The member of the reply that is the list. */
  member: string;
  query?: Query;
  signal?: AbortSignal | undefined;
}

const LIMIT = 100;

export function pages<Wire, T>(
  transport: Transport,
  { path, member, query, signal }: Listing,
  made: (item: Wire) => T,
): Pages<T> {
  return new Pages(async (after) => {
    const call: Call = {
      method: "GET",
      path,
      query: { limit: LIMIT, ...query, after },
      signal,
      again: "always",
    };
    const reply = await transport.json<{ next?: string | null } & Record<string, unknown>>(call);
    return { items: listed<Wire>(reply[member]).map(made), next: reply.next ?? null };
  });
}
