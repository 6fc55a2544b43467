/* What became of a request: exceptions from replies and from `fetch`, and which may be tried again. */

import { textOf } from "./bytes.js";
import { errorFor } from "./codes.js";
import {
  ApiError,
  BadCertificateError,
  BadReplyError,
  ClocheError,
  ConnectionLostError,
  NoServerError,
} from "./errors.js";
import { isServerSide } from "./platform.js";
import type { ErrorBody } from "./wire.js";

/* Refused before anything was done. Others that the server calls retryable may have run already. */
const NOTHING_WAS_DONE: readonly string[] = [
  "audit_unavailable",
  "bodies_full",
  "idempotency_key_busy",
  "memory_budget",
  "network_unavailable",
  "no_descriptors",
  "no_sandbox",
  "queue_full",
  "queue_timeout",
  "sandbox_busy",
  "too_many_at_once",
  "too_many_commands",
  "too_many_connections",
  "too_many_executions",
  "too_many_requests",
  "too_many_sandboxes",
  "too_much_cpu",
];

/* Whether the request may have arrived, or may yet: the reply is not the server's. */
export function isLost(error: ClocheError): boolean {
  const isOfProxy = error instanceof BadReplyError && [502, 503, 504].includes(error.status);
  return error instanceof ConnectionLostError || isOfProxy;
}

/* Whether the server wants to be asked again, and no harm can come of it. */
export function isWorthAsking(error: unknown): error is ApiError & { retryAfter: number } {
  return (
    error instanceof ApiError &&
    error.retryAfter !== undefined &&
    NOTHING_WAS_DONE.includes(error.code)
  );
}

function isErrorBody(value: unknown): value is ErrorBody {
  const { code, message } = (value ?? {}) as { code?: unknown; message?: unknown };
  return typeof code === "string" && typeof message === "string";
}

export interface ErrorReply {
  error?: unknown;
  detail?: unknown;
}

/* From the JSON of a reply, an event or a batch's line; undefined when it is not cloche's. */
export function refusalIn(
  reply: ErrorReply | null,
  status: number,
  headers?: Headers,
): ApiError | undefined {
  const body = reply?.error;
  if (!isErrorBody(body)) return undefined;
  const after = headers?.get("retry-after");
  return errorFor({
    ...body,
    status,
    detail: reply?.detail ?? body.message,
    retryAfter: after && Number.isFinite(Number(after)) ? Number(after) : undefined,
    requestId: headers?.get("x-request-id") ?? undefined,
  });
}

export async function errorOf(response: Response, url: string): Promise<ClocheError> {
  const text = await textOf(response);
  let reply: ErrorReply = {};
  try {
    reply = JSON.parse(text) as ErrorReply;
  } catch {
    /* not cloche's */
  }
  const requestId = response.headers.get("x-request-id") ?? undefined;
  return (
    refusalIn(reply ?? {}, response.status, response.headers) ??
    new BadReplyError(`${url} answered ${response.status} with something that is not cloche's`, {
      requestId,
      status: response.status,
    })
  );
}

/* What a runtime says of a failure: a code in Node and Bun, only words in Deno and browsers. */
function saidOf(error: unknown): string {
  const cause = (error as { cause?: unknown } | undefined)?.cause ?? error;
  const { code, message } = cause as { code?: unknown; message?: unknown };
  return typeof code === "string" ? code : String(message ?? cause);
}

/* Nothing was sent when the connection was not made. */
const NOT_CONNECTED = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
];
const NOT_CONNECTED_WORDS = /client error \(Connect\)|bad port|are blocked$/; // of Deno, Node, Deno
const CERTIFICATE = /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS_CERT)|certificate/;

/* What `fetch` threw, in our words. */
export function brokenOff(error: unknown, url: string, hasAnswered: boolean): ClocheError {
  if (error instanceof ClocheError) return error;
  const said = saidOf(error);
  if (CERTIFICATE.test(said)) return new BadCertificateError(url, said, error);
  if (NOT_CONNECTED.includes(said) || NOT_CONNECTED_WORDS.test(said))
    return new NoServerError(url, said, error);
  if (!isServerSide && !hasAnswered) {
    const why = "or it does not let this page in: its operator lists sites with --cors-origin";
    return new NoServerError(url, why, error);
  }
  return new ConnectionLostError(
    `the connection to ${url} was lost before the reply had come (${said})`,
    "check what became of it before you ask again",
    { cause: error },
  );
}
