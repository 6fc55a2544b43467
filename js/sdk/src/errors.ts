/*
 * What goes wrong, one class per kind. Code that fails inside a sandbox is no exception here: its
 * result says so. A server's refusals are ApiErrors (codes.ts has a class for each code); the others
 * are found out by the client itself.
 */

import type { ErrorBody } from "./wire.js";

/** Everything that this package throws by itself. The message says what happened and what to do. */
export class ClocheError extends Error {
  /** A stable word for what happened. */
  readonly code: string;
  /** What to do about it; the message ends with it. */
  readonly remediation: string;
  /** The server's name for the request, which is also in its log. */
  readonly requestId: string | undefined;

  constructor(code: string, what: string, remediation: string, more: ErrorDetails = {}) {
    super(`${what}: ${remediation}`, more.cause === undefined ? {} : { cause: more.cause });
    this.code = code;
    this.remediation = remediation;
    this.requestId = more.requestId;
    this.name = classNameOf(code);
  }
}

export interface ErrorDetails {
  cause?: unknown;
  requestId?: string | undefined;
}

/* Classes may lose their names in a bundle. */
function classNameOf(code: string): string {
  return `${code.replace(/(?:^|_)(.)/g, (_, first: string) => first.toUpperCase())}Error`;
}

export interface Refusal extends ErrorBody {
  status: number;
  detail: unknown;
  retryAfter: number | undefined;
  requestId: string | undefined;
}

/** The server refused, or could not do what it was asked. */
export class ApiError extends ClocheError {
  /** Of HTTP; 0 where the refusal came in a stream. */
  readonly status: number;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** Seconds after which the server wants to be asked again. */
  readonly retryAfter: number | undefined;
  /** What clients of the Code Interpreter API read: a string, or one entry for each wrong field. */
  readonly detail: unknown;

  constructor(refusal: Refusal) {
    super(refusal.code, refusal.message, refusal.remediation, { requestId: refusal.requestId });
    this.status = refusal.status;
    this.retryable = refusal.retryable;
    this.retryAfter = refusal.retryAfter;
    this.detail = refusal.detail;
  }
}

/** Nobody answers at the server's address. */
export class NoServerError extends ClocheError {
  constructor(url: string, why: string, cause?: unknown) {
    super(
      "no_server",
      `no server answers at ${url} (${why})`,
      "start one with `cloche serve`, or give its address as baseUrl or in CLOCHE_SERVER",
      { cause },
    );
  }
}

/** The connection ended before the reply did, and could not be made good. */
export class ConnectionLostError extends ClocheError {
  /** Of the execution or command that was under way, if it is known. */
  readonly executionId: string | undefined;

  constructor(
    what: string,
    remediation: string,
    more: ErrorDetails & { executionId?: string } = {},
  ) {
    super("connection_lost", what, remediation, more);
    this.executionId = more.executionId;
  }
}

/** A profile could not be built. */
export class BuildFailedError extends ClocheError {
  constructor(name: string, problem: string | null) {
    super("build_failed", `profile ${name} was not built: ${problem}`, "ask for other packages");
  }
}

/** The server's certificate is not to be trusted. */
export class BadCertificateError extends ClocheError {
  constructor(url: string, why: string, cause?: unknown) {
    super(
      "bad_certificate",
      `the certificate of ${url} is not trusted (${why})`,
      "check the address, or name the certificates that you trust in NODE_EXTRA_CA_CERTS",
      { cause },
    );
  }
}

/** What answers there is not cloche, or something between here and there spoke in its place. */
export class BadReplyError extends ClocheError {
  /** Of HTTP; 0 where the reply had begun well. */
  readonly status: number;

  constructor(what: string, more: ErrorDetails & { status?: number } = {}) {
    super(
      "bad_reply",
      what,
      "check the address (baseUrl, CLOCHE_SERVER), and proxies on the way",
      more,
    );
    this.status = more.status ?? 0;
  }
}

/** The server is older than this package and does not know what it was asked. */
export class OlderServerError extends ClocheError {
  readonly version: string;

  constructor(what: string, version: string, own: string, requestId: string | undefined) {
    super(
      "older_server",
      `the server is cloche ${version}, which does not know ${what}`,
      `update it to ${own} or later, or use the package of its version (npm install cloche@${version})`,
      { requestId },
    );
    this.version = version;
  }
}

/** Terminals need a WebSocket, and this runtime has none, or none that can send a key. */
export class NoTerminalClientError extends ClocheError {
  constructor(what: string, remediation: string) {
    super("no_terminal_client", what, remediation);
  }
}

/** An option that cannot be meant. */
export class BadArgumentError extends ClocheError {
  constructor(what: string, remediation: string) {
    super("bad_argument", what, remediation);
  }
}

/** What `check()` of a result throws: the code or the command did not end well. */
export class ExecutionFailedError<Result extends { failure: string }> extends ClocheError {
  readonly result: Result;

  constructor(result: Result) {
    super("execution_failed", result.failure, "the exception's result says more");
    this.result = result;
  }
}
