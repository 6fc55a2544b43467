/*
 * What the HTTP API says, in its own names. Everything else in this package takes its types from
 * here, so this is the one file to replace when they are made from the server's specification.
 */

export type Status = "ok" | "error" | "timeout" | "memory_exceeded" | "killed" | "interrupted";
export type LimitKind = "memory" | "time" | "cpu" | "pids" | "disk" | "output" | "network";
export type FigureFormat = "png" | "retina" | "jpeg" | "svg" | "pdf";
export type OnDisconnect = "interrupt" | "continue";

export interface Limits {
  memory_mb?: number;
  cpu_seconds?: number | null;
  cpus?: number;
  pids?: number;
  disk_mb?: number;
  output_bytes?: number;
  open_files?: number;
}
export interface KernelLimits {
  memory_mb?: number;
  cpus?: number;
  pids?: number;
}

export interface NetworkRule {
  domain?: string;
  address?: string;
  cidr?: string;
  ports?: (number | string)[];
}
export interface NetworkPolicy {
  allow?: (string | NetworkRule)[];
  open?: boolean;
  deny?: string[];
  strict_tls?: boolean;
  refuse?: "denied" | "unreachable";
  connections?: number;
  bytes?: number;
}
export type Network = "none" | "open" | (string | NetworkRule)[] | NetworkPolicy;

export interface InputFile {
  path: string;
  content?: string;
  encoding?: "utf-8" | "base64";
  file_id?: string;
}

export interface MadeFile {
  path: string;
  kind: string;
  file_id: string | null;
  size_bytes: number;
}
export interface CodeError {
  name: string;
  value: string;
  traceback: string[];
}
export interface Denial {
  op: string;
  detail: string;
  rule: string;
}
export interface NetworkUse {
  rule: string;
  connections: number;
  refused: number;
  bytes_out: number;
  bytes_in: number;
}
export interface Usage {
  wall_ms: number;
  queue_ms: number;
  cpu_ms: number;
  memory_peak_bytes: number;
  output_bytes: number;
  network?: NetworkUse[];
}
export interface OutputData {
  data: Record<string, unknown>;
  metadata: Record<string, unknown>;
  is_main_result: boolean;
}

/* Of an execution, as the last event of its stream has it. */
export interface ResultEnd {
  exit_code: number | null;
  timed_out: boolean;
  duration_ms: number;
  files: MadeFile[];
  id: string;
  status: Status;
  signal: number | null;
  stdout_truncated: boolean;
  stderr_truncated: boolean;
  files_truncated: boolean;
  results_truncated?: boolean;
  execution_count?: number;
  error: CodeError | null;
  kernel_id?: string;
  kernel_restarted?: boolean;
  limit_hit: LimitKind | null;
  warnings?: string[];
  denied: Denial[];
  usage: Usage;
  profile: string;
  warm: boolean;
}
export interface Result extends ResultEnd {
  stdout: string;
  stderr: string;
  results?: OutputData[];
  text?: string | null;
}
export interface Execution {
  id: string;
  state: "running" | "done";
  created: number;
  result: Result | null;
}

/* One line of a stream. */
export interface Event {
  seq: number;
  event: string;
  data: unknown;
}

export interface SandboxUsage {
  memory_bytes: number;
  memory_peak_bytes: number;
  cpu_ms: number;
  processes: number;
  disk_bytes?: number;
  files?: number;
}
export interface Kernel {
  id: string;
  state: "starting" | "idle" | "busy";
  execution_count: number;
  execution_id: string | null;
  queued: number;
  restarts: number;
  cwd: string;
  is_default: boolean;
  limits: KernelLimits | null;
  usage?: { memory_bytes: number; memory_peak_bytes: number; cpu_ms: number; processes: number };
}
export interface Sandbox {
  id: string;
  name: string | null;
  state: "running" | "paused";
  profile: string;
  metadata: Record<string, string>;
  created: number;
  expires: number;
  ttl_seconds: number;
  idle_seconds: number;
  idle_expires: number | null;
  limits: Required<Limits>;
  kernels: Kernel[];
  usage: SandboxUsage;
  network: "none" | "open" | (NetworkPolicy & { broad?: string[] });
  executions: number;
}

export interface Variable {
  name: string;
  type: string;
  len?: number | null;
  shape?: number[] | null;
  nbytes?: number | null;
  repr: string;
}
export interface Variables {
  variables: Variable[];
  total: number;
  truncated: boolean;
}
export interface Completion {
  matches: string[];
  types: string[];
  start: number;
  end: number;
}
export interface Inspection {
  found: boolean;
  data: Record<string, string>;
}

export interface Command {
  id: string;
  status: string;
  cmd: string;
  cwd: string;
  terminal: boolean;
  created: number;
  exit_code: number | null;
  signal: number | null;
  timed_out: boolean;
  duration_ms: number;
  stdout_truncated: boolean;
  stderr_truncated: boolean;
  denied: Denial[];
  problem: string | null;
  warnings?: string[];
}
export interface CommandResult extends Command {
  stdout: string;
  stderr: string;
}

export interface Entry {
  name: string;
  path: string;
  path_encoded?: string;
  type: "file" | "directory" | "symlink" | "other";
  size: number;
  mode: string;
  modified: number;
  target?: string;
}
export interface StoredFile {
  file_id: string;
  filename: string;
  size_bytes: number;
  upload_time?: number;
}

export interface Info {
  name: string;
  version: string;
  uptime_seconds: number;
  defaults: Record<string, number>;
  maxima: Record<string, number>;
  live: Record<string, unknown>;
  files: { max_mb: number; ttl_seconds: number };
  network: Record<string, unknown>;
  isolation: unknown;
  engine: unknown;
}
export interface Profile {
  name: string;
  state: "starting" | "ready" | "broken" | "restarting";
  version: string | null;
  problem: string | null;
  modules: string[];
  ready_sandboxes: number;
  live?: unknown;
}

export interface ErrorBody {
  code: string;
  message: string;
  remediation: string;
  retryable: boolean;
}
