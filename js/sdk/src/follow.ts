/*
 * The events of something that runs, in order, each once. When the connection is lost they are
 * resumed behind the last one that came: by what they belong to if that is known, else by sending
 * the request again, which its Idempotency-Key makes the same request.
 */

import { lines } from "./bytes.js";
import { BadReplyError, ClocheError, ConnectionLostError } from "./errors.js";
import { sleep } from "./platform.js";
import { STREAMED, type Call, type Transport } from "./transport.js";
import type { Event } from "./wire.js";

export interface Source {
  transport: Transport;
  /** What begins it; undefined: it is there already, and `id` names it. */
  begin?: Call;
  id?: string;
  after?: number;
  /** Where the events of this id are. */
  events: (id: string) => string;
  signal?: AbortSignal | undefined;
}

/** An event, and whether some before it are gone for good. */
export interface Followed {
  event: Event;
  isGap: boolean;
  id: string | undefined;
}

const MOST_FAILURES = 5; // with no event between them
const FINAL = ["end", "failed"];

function parsed(line: string, url: string): Event {
  let event: Partial<Event> | null;
  try {
    event = JSON.parse(line) as Partial<Event> | null;
  } catch (cause) {
    throw new BadReplyError(`a stream from ${url} has a line that is no JSON`, { cause });
  }
  const seq = event?.seq;
  if (!Number.isSafeInteger(seq) || (seq as number) < 1)
    throw new BadReplyError(`a stream from ${url} has an event without a number`);
  const data = typeof event?.data === "object" && event.data !== null ? event.data : {};
  return { seq: seq as number, event: String(event?.event), data };
}

export async function* follow(source: Source): AsyncGenerator<Followed, void> {
  const { transport, signal } = source;
  let id = source.id;
  let last = source.after ?? 0;
  let isResumed = false;
  const began = Date.now();
  for (let failures = 0; ; failures++) {
    try {
      const response = await open(source, {
        id,
        after: last,
        began: isResumed ? began : undefined,
      });
      id ??= response.headers.get("x-execution-id") ?? undefined;
      for await (const line of lines(response.body ?? new Blob().stream())) {
        if (line === "") continue;
        const event = parsed(line, transport.baseUrl);
        if (event.event === "start") id ??= (event.data as { id?: string }).id;
        if (event.seq <= last) continue;
        const isGap = isResumed && event.seq > last + 1;
        failures = 0;
        last = event.seq;
        yield { event, isGap, id };
        if (FINAL.includes(event.event)) return;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ClocheError) throw lostFor(error, id);
    }
    isResumed = true;
    if (failures >= MOST_FAILURES) throw gaveUp(transport.baseUrl, id);
    await sleep(100 * failures, signal);
  }
}

interface Place {
  id: string | undefined;
  after: number;
  began: number | undefined;
}

function open(source: Source, { id, after, began }: Place): Promise<Response> {
  const { transport, signal, begin } = source;
  if (id === undefined && begin)
    return began === undefined ? transport.send(begin) : transport.repeat(begin, began);
  return transport.send({
    method: "GET",
    path: source.events(id ?? ""),
    query: { after: after || undefined },
    headers: STREAMED,
    signal,
    again: "always",
  });
}

/* What an error means for something that was under way already. */
function lostFor(error: ClocheError, id: string | undefined): ClocheError {
  if (id === undefined || !["no_execution", "no_events", "no_server"].includes(error.code))
    return error;
  const isForgotten = error.code !== "no_server";
  return new ConnectionLostError(
    isForgotten
      ? `the connection was lost, and the server no longer knows ${id}`
      : `the connection was lost while ${id} ran, and the server did not come back`,
    isForgotten
      ? "it ended with the server that it ran on; run it again if that does no harm"
      : "what runs in a live sandbox goes on: look at it with client.result() later",
    { cause: error, requestId: error.requestId, executionId: id },
  );
}

function gaveUp(url: string, id: string | undefined): ConnectionLostError {
  const what = `the connection to ${url} is lost again and again`;
  if (id === undefined) return new ConnectionLostError(what, "see whether a proxy cuts it off");
  const remediation = `look at ${id} with client.result()`;
  return new ConnectionLostError(what, remediation, { executionId: id });
}
