/*
 * The server's refusals, a class for each code of docs/errors.md that its own API has. A test holds
 * this file against the server's table. A code that is not here is a plain ApiError.
 */

import { ApiError, type Refusal } from "./errors.js";
import type { ErrorBody } from "./wire.js";

export class BadRequestError extends ApiError {}
export class BadBodyError extends ApiError {}
export class BadHeaderError extends ApiError {}
export class BadHandshakeError extends ApiError {}
export class BadFormError extends ApiError {}
export class NoKeyError extends ApiError {}
export class BadKeyError extends ApiError {}
export class BadOriginError extends ApiError {}
export class NoAccessError extends ApiError {}
export class NoRouteError extends ApiError {}
export class NoFileError extends ApiError {}
export class NoExecutionError extends ApiError {}
export class NetworkNotAllowedError extends ApiError {}
export class NoSuchSandboxError extends ApiError {}
export class NoSuchKernelError extends ApiError {}
export class NoSuchCommandError extends ApiError {}
export class NoEventsError extends ApiError {}
export class NoSuchPathError extends ApiError {}
export class BadMethodError extends ApiError {}
export class PathTakenError extends ApiError {}
export class NotEmptyError extends ApiError {}
export class KernelBusyError extends ApiError {}
export class KernelFailedError extends ApiError {}
export class IsDefaultError extends ApiError {}
export class NameTakenError extends ApiError {}
export class NotWaitingError extends ApiError {}
export class SandboxPausedError extends ApiError {}
export class CommandOverError extends ApiError {}
export class StdinClosedError extends ApiError {}
export class StdinFullError extends ApiError {}
export class NoTerminalError extends ApiError {}
export class PathBusyError extends ApiError {}
export class InterruptedError extends ApiError {}
export class IdempotencyKeyBusyError extends ApiError {}
export class ReplyNotKeptError extends ApiError {}
export class SandboxGoneError extends ApiError {}
export class KernelGoneError extends ApiError {}
export class BodyTooLargeError extends ApiError {}
export class CodeTooLongError extends ApiError {}
export class FileTooLargeError extends ApiError {}
export class DiskFullError extends ApiError {}
export class BadRangeError extends ApiError {}
export class BadHostError extends ApiError {}
export class BadFieldsError extends ApiError {}
export class BadJsonError extends ApiError {}
export class UnknownProfileError extends ApiError {}
export class LimitTooHighError extends ApiError {}
export class BadValueError extends ApiError {}
export class NetworkRuleInvalidError extends ApiError {}
export class BadArchiveError extends ApiError {}
export class BadPathError extends ApiError {}
export class BadBase64Error extends ApiError {}
export class BadIdempotencyKeyError extends ApiError {}
export class IdempotencyKeyReusedError extends ApiError {}
export class NoWebsocketError extends ApiError {}
export class IdempotencyKeysFullError extends ApiError {}
export class TooManyRequestsError extends ApiError {}
export class TooManyAtOnceError extends ApiError {}
export class TooMuchCpuError extends ApiError {}
export class TooManySandboxesError extends ApiError {}
export class TooManyCommandsError extends ApiError {}
export class TooManyExecutionsError extends ApiError {}
export class TooManyListenersError extends ApiError {}
export class TooManyArchivesError extends ApiError {}
export class BindNotAllowedError extends ApiError {}
export class BadBindError extends ApiError {}
export class CannotListenError extends ApiError {}
export class NoPortError extends ApiError {}
export class InternalError extends ApiError {}
export class CannotLimitError extends ApiError {}
export class CannotPauseError extends ApiError {}
export class QueueFullError extends ApiError {}
export class QueueTimeoutError extends ApiError {}
export class MemoryBudgetError extends ApiError {}
export class NoSandboxError extends ApiError {}
export class SandboxLostError extends ApiError {}
export class NetworkUnavailableError extends ApiError {}
export class AuditUnavailableError extends ApiError {}
export class BodiesFullError extends ApiError {}
export class TooManyConnectionsError extends ApiError {}
export class NoDescriptorsError extends ApiError {}
export class SandboxBusyError extends ApiError {}
export class ProfileBrokenError extends ApiError {}
export class ClientGoneError extends ApiError {}
export class PortClosedError extends ApiError {}
export class PortBadAnswerError extends ApiError {}
export class PortTimeoutError extends ApiError {}
export class PortsUnavailableError extends ApiError {}
export class NoPortsDomainError extends ApiError {}
export class BadLinkError extends ApiError {}
export class NoRightError extends ApiError {}
export class NoSuchProfileError extends ApiError {}
export class ProfileExistsError extends ApiError {}
export class ProfileBuildingError extends ApiError {}
export class ProfileInUseError extends ApiError {}
export class TooManyProfilesError extends ApiError {}
export class TooManyBuildsError extends ApiError {}
export class ProfilesOffError extends ApiError {}
export class ProfilesFullError extends ApiError {}

type ApiErrorClass = new (refusal: Refusal) => ApiError;

const CLASSES = {
  bad_request: BadRequestError,
  bad_body: BadBodyError,
  bad_header: BadHeaderError,
  bad_handshake: BadHandshakeError,
  bad_form: BadFormError,
  no_key: NoKeyError,
  bad_key: BadKeyError,
  bad_origin: BadOriginError,
  no_access: NoAccessError,
  no_route: NoRouteError,
  no_file: NoFileError,
  no_execution: NoExecutionError,
  network_not_allowed: NetworkNotAllowedError,
  no_such_sandbox: NoSuchSandboxError,
  no_such_kernel: NoSuchKernelError,
  no_such_command: NoSuchCommandError,
  no_events: NoEventsError,
  no_such_path: NoSuchPathError,
  bad_method: BadMethodError,
  path_taken: PathTakenError,
  not_empty: NotEmptyError,
  kernel_busy: KernelBusyError,
  kernel_failed: KernelFailedError,
  is_default: IsDefaultError,
  name_taken: NameTakenError,
  not_waiting: NotWaitingError,
  sandbox_paused: SandboxPausedError,
  command_over: CommandOverError,
  stdin_closed: StdinClosedError,
  stdin_full: StdinFullError,
  no_terminal: NoTerminalError,
  path_busy: PathBusyError,
  interrupted: InterruptedError,
  idempotency_key_busy: IdempotencyKeyBusyError,
  reply_not_kept: ReplyNotKeptError,
  sandbox_gone: SandboxGoneError,
  kernel_gone: KernelGoneError,
  body_too_large: BodyTooLargeError,
  code_too_long: CodeTooLongError,
  file_too_large: FileTooLargeError,
  disk_full: DiskFullError,
  bad_range: BadRangeError,
  bad_host: BadHostError,
  bad_fields: BadFieldsError,
  bad_json: BadJsonError,
  unknown_profile: UnknownProfileError,
  no_right: NoRightError,
  no_such_profile: NoSuchProfileError,
  profile_exists: ProfileExistsError,
  profile_building: ProfileBuildingError,
  profile_in_use: ProfileInUseError,
  too_many_profiles: TooManyProfilesError,
  too_many_builds: TooManyBuildsError,
  profiles_off: ProfilesOffError,
  profiles_full: ProfilesFullError,
  limit_too_high: LimitTooHighError,
  bad_value: BadValueError,
  network_rule_invalid: NetworkRuleInvalidError,
  bad_archive: BadArchiveError,
  bad_path: BadPathError,
  bad_base64: BadBase64Error,
  bad_idempotency_key: BadIdempotencyKeyError,
  idempotency_key_reused: IdempotencyKeyReusedError,
  no_websocket: NoWebsocketError,
  idempotency_keys_full: IdempotencyKeysFullError,
  too_many_requests: TooManyRequestsError,
  too_many_at_once: TooManyAtOnceError,
  too_much_cpu: TooMuchCpuError,
  too_many_sandboxes: TooManySandboxesError,
  too_many_commands: TooManyCommandsError,
  too_many_executions: TooManyExecutionsError,
  too_many_listeners: TooManyListenersError,
  too_many_archives: TooManyArchivesError,
  bind_not_allowed: BindNotAllowedError,
  bad_bind: BadBindError,
  cannot_listen: CannotListenError,
  no_port: NoPortError,
  internal: InternalError,
  cannot_limit: CannotLimitError,
  cannot_pause: CannotPauseError,
  queue_full: QueueFullError,
  queue_timeout: QueueTimeoutError,
  memory_budget: MemoryBudgetError,
  no_sandbox: NoSandboxError,
  sandbox_lost: SandboxLostError,
  network_unavailable: NetworkUnavailableError,
  audit_unavailable: AuditUnavailableError,
  bodies_full: BodiesFullError,
  too_many_connections: TooManyConnectionsError,
  no_descriptors: NoDescriptorsError,
  sandbox_busy: SandboxBusyError,
  profile_broken: ProfileBrokenError,
  client_gone: ClientGoneError,
  port_closed: PortClosedError,
  port_bad_answer: PortBadAnswerError,
  port_timeout: PortTimeoutError,
  ports_unavailable: PortsUnavailableError,
  no_ports_domain: NoPortsDomainError,
  bad_link: BadLinkError,
} satisfies Partial<Record<ErrorBody["code"], ApiErrorClass>>;

/** By code. */
export const errorClasses: Readonly<Record<string, ApiErrorClass>> = CLASSES;

/* What a caller of this package does about it, where that differs from what HTTP wants. */
const OWN_REMEDIES: Readonly<Record<string, string>> = {
  no_key: "give it as apiKey or in CLOCHE_API_KEY; the operator makes one with `cloche key add`",
  bad_key: "check apiKey or CLOCHE_API_KEY; the operator makes one with `cloche key add`",
};

export function errorFor(refusal: Refusal): ApiError {
  const known = Object.hasOwn(errorClasses, refusal.code) ? errorClasses[refusal.code] : undefined;
  const remediation = OWN_REMEDIES[refusal.code] ?? refusal.remediation;
  return new (known ?? ApiError)({ ...refusal, remediation });
}
