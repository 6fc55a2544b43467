/**
 * A client of cloche, which runs untrusted Python in sandboxes: `run()` for one program, `Sandbox`
 * for one that stays, `Client` for a server that is not that of the environment.
 *
 * @module
 */

import { Client } from "./client.js";
import type { RunOptions } from "./options.js";
import type { Result } from "./result.js";

export type { FileData } from "./bytes.js";
export { Client } from "./client.js";
export type {
  BatchItem,
  BatchRequest,
  Profile,
  ProfileOptions,
  ServerInfo,
} from "./client.js";
export * from "./codes.js";
export { Command, CommandResult, Commands } from "./commands.js";
export type * from "./commands.js";
export * from "./errors.js";
export type { ExecutionEvent } from "./execution.js";
export { Files } from "./files.js";
export type { Entry, FileMade, ReadOptions, Unpacked } from "./files.js";
export { Interpreter, Kernel, Kernels } from "./kernels.js";
export type * from "./kernels.js";
export type * from "./options.js";
export { Pages } from "./pages.js";
export type { WebSocketClass, WebSocketLike } from "./platform.js";
export { Ports } from "./ports.js";
export type { PortInfo, PortLink, PortRequest } from "./ports.js";
export { Display, Result } from "./result.js";
export type { CodeError, Denial, MadeFile, Usage } from "./result.js";
export { Sandbox, Sandboxes } from "./sandbox.js";
export type { GrantedNetwork, ListOptions, SandboxChange, SandboxInfo } from "./sandbox.js";
export { FileStore } from "./store.js";
export type { StoredFile, UploadedFile } from "./store.js";
export { Talk } from "./talk.js";
export { Terminal } from "./terminal.js";
export type { TerminalEnd, TerminalOptions } from "./terminal.js";
export type { ClientOptions } from "./transport.js";
export { VERSION } from "./version.js";

/** Runs a program in a fresh sandbox of the environment's server, or of `client`. */
export function run(code: string, options: RunOptions & { client?: Client } = {}): Promise<Result> {
  const { client, ...rest } = options;
  return (client ?? Client.ofEnvironment()).run(code, rest);
}
