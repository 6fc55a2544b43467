# Made by script/sdk-generate: change docs/errors.md instead.
"""An exception for each error code of the server."""

from __future__ import annotations

from typing import Dict, Type

from cloche._errors import APIError


class AuditUnavailable(APIError):
    """503: the audit log cannot be written, and nothing runs without it; the operator has to
    make room (`--audit-full`)."""

    code = "audit_unavailable"


class BadArchive(APIError):
    """422: no tar.gz, or with an entry that is refused; nothing was unpacked."""

    code = "bad_archive"


class BadBase64(APIError):
    """422: a file that cannot have that name, or leads elsewhere; `content` that is not base64."""

    code = "bad_base64"


class BadBind(APIError):
    """422: a directory of the host that cannot be had: it is not there, or a symbolic link is on
    the way."""

    code = "bad_bind"


class BadBody(APIError):
    """400: the body is not UTF-8."""

    code = "bad_body"


class BadFields(APIError):
    """422: a field is missing or wrong, or the body is no JSON: `detail` says which and why."""

    code = "bad_fields"


class BadForm(APIError):
    """400: an upload whose form ends without its last boundary; nothing was stored."""

    code = "bad_form"


class BadHandshake(APIError):
    """400: not a WebSocket's (RFC 6455); the message says what."""

    code = "bad_handshake"


class BadHeader(APIError):
    """400: a PUT of part of a file, or with a condition: it would replace all of it, in any
    case."""

    code = "bad_header"


class BadHost(APIError):
    """421: a server without keys was asked by a name that is not loopback's; see `--allow-host`."""

    code = "bad_host"


class BadIdempotencyKey(APIError):
    """422: not a good key; it came before with another request."""

    code = "bad_idempotency_key"


class BadJson(APIError):
    """422: over a WebSocket: the message is no JSON object."""

    code = "bad_json"


class BadKey(APIError):
    """401: the server wants a key; it does not know this one."""

    code = "bad_key"


class BadLink(APIError):
    """403: a link to a server in a sandbox that is over, was made for another one, or by a key
    that is gone."""

    code = "bad_link"


class BadMethod(APIError):
    """405: the path is right, the method is not; see `Allow`."""

    code = "bad_method"


class BadOrigin(APIError):
    """403: a page of another site asks; see `--cors-origin`."""

    code = "bad_origin"


class BadPath(APIError):
    """422: a file that cannot have that name, or leads elsewhere; `content` that is not base64."""

    code = "bad_path"


class BadRange(APIError):
    """416: the file has no bytes there; see `Content-Range`."""

    code = "bad_range"


class BadRequest(APIError):
    """400: headers, chunks or trailers that can be read in two ways; the connection is closed."""

    code = "bad_request"


class BadValue(APIError):
    """422: above the maximum, or more than the memory budget; outside its bounds."""

    code = "bad_value"


class BindNotAllowed(APIError):
    """403: a directory of the host that the operator does not allow (`--bind-allow`), or not to
    be written to."""

    code = "bind_not_allowed"


class BodiesFull(APIError):
    """503: more than `--bodies-mb` (your tenant: its half), `--max-connections` allow; see
    `Retry-After`."""

    code = "bodies_full"


class BodyTooLarge(APIError):
    """413: more than 64 MiB of JSON, or than `--bodies-mb` (with keys of several tenants, its
    half), with what its values take when they are read."""

    code = "body_too_large"


class CannotLimit(APIError):
    """501: limits of a kernel's own, and pausing, where there are no control groups."""

    code = "cannot_limit"


class CannotListen(APIError):
    """501: no sandbox gets a port of its own here (`--live-listeners 0`), or nothing that would
    be there is spoken (`--dialects`)."""

    code = "cannot_listen"


class CannotPause(APIError):
    """501: limits of a kernel's own, and pausing, where there are no control groups."""

    code = "cannot_pause"


class ClientGone(APIError):
    """503: the first request with this `Idempotency-Key` was cut off."""

    code = "client_gone"


class CodeTooLong(APIError):
    """413: more than 16 MiB of program text."""

    code = "code_too_long"


class CommandOver(APIError):
    """409: the command has ended; it takes no input; it does not read (also: the kernels of a
    sandbox have 64 MiB of answers to `input()` to read); it has no terminal."""

    code = "command_over"


class DiskFull(APIError):
    """413: the files do not fit into the sandbox; see `limits.disk_mb`."""

    code = "disk_full"


class EfastNotAllowed(APIError):
    """400: Sandbox Runtime: no e-fast server is configured; the operator does not allow this
    one."""

    code = "efast_not_allowed"


class EfastOff(APIError):
    """400: Sandbox Runtime: no e-fast server is configured; the operator does not allow this
    one."""

    code = "efast_off"


class FileTooLarge(APIError):
    """413: an upload above `--max-file-mb`."""

    code = "file_too_large"


class IdempotencyKeyBusy(APIError):
    """409: an upload with this key is under way; it was carried out, but its reply was too large
    to keep, or had to make room."""

    code = "idempotency_key_busy"


class IdempotencyKeyReused(APIError):
    """422: not a good key; it came before with another request."""

    code = "idempotency_key_reused"


class IdempotencyKeysFull(APIError):
    """429: as many keys as are kept for one tenant (`--idempotency-keys`) came within an hour;
    nothing was done."""

    code = "idempotency_keys_full"


class Internal(APIError):
    """500: the server's log says more."""

    code = "internal"


class Interrupted(APIError):
    """409: over a WebSocket: before the program had started."""

    code = "interrupted"


class IsDefault(APIError):
    """409: it runs a cell; it could not answer; the first kernel cannot be deleted."""

    code = "is_default"


class KernelBusy(APIError):
    """409: it runs a cell; it could not answer; the first kernel cannot be deleted."""

    code = "kernel_busy"


class KernelFailed(APIError):
    """409: it runs a cell; it could not answer; the first kernel cannot be deleted."""

    code = "kernel_failed"


class KernelGone(APIError):
    """410: it was there; the message says why it ended."""

    code = "kernel_gone"


class LimitTooHigh(APIError):
    """422: above the maximum, or more than the memory budget; outside its bounds."""

    code = "limit_too_high"


class ListTooLong(APIError):
    """400: Sandbox Runtime: more than 32 MiB of list."""

    code = "list_too_long"


class MemoryBudget(APIError):
    """503: as above; see `Retry-After`."""

    code = "memory_budget"


class ModulesFailed(APIError):
    """500: `/modules`: a module ended the process that imported it, or took too long."""

    code = "modules_failed"


class ModulesTimeout(APIError):
    """500: `/modules`: a module ended the process that imported it, or took too long."""

    code = "modules_timeout"


class NameTaken(APIError):
    """409: another sandbox has that name; choose another, or delete that one."""

    code = "name_taken"


class NetworkNotAllowed(APIError):
    """403: more of the network than the server and the key grant; the message names the rule."""

    code = "network_not_allowed"


class NetworkRuleInvalid(APIError):
    """422: a policy that cannot be read; `detail` names the entry: `network.allow[3]: …`."""

    code = "network_rule_invalid"


class NetworkUnavailable(APIError):
    """503: the process that connects for sandboxes did not answer within 2 s, or this machine
    cannot hold policies: see `cloche doctor`. A changed policy is in force as soon as it can
    be."""

    code = "network_unavailable"


class NoAccess(APIError):
    """403: a directory of the host (`--live-bind`) that is only to be read, or a file there that
    is private."""

    code = "no_access"


class NoDescriptors(APIError):
    """503: the requests under way have as many files as the server's open files allow; see
    `Retry-After`."""

    code = "no_descriptors"


class NoEvents(APIError):
    """404: the events of this command are forgotten."""

    code = "no_events"


class NoExecution(APIError):
    """404: no such execution, or no longer, or another tenant's."""

    code = "no_execution"


class NoFile(APIError):
    """404: no such stored file, or no longer, or another tenant's."""

    code = "no_file"


class NoKey(APIError):
    """401: the server wants a key; it does not know this one."""

    code = "no_key"


class NoPort(APIError):
    """503: no port could be opened for the sandbox; the server's log says why."""

    code = "no_port"


class NoPortsDomain(APIError):
    """501: no links: the operator has set no `--ports-domain`."""

    code = "no_ports_domain"


class NoRight(APIError):
    """403: the key may not make or remove profiles, or the profile is the operator's."""

    code = "no_right"


class NoRoute(APIError):
    """404: nothing is at this path."""

    code = "no_route"


class NoSandbox(APIError):
    """503: as above; see `Retry-After`."""

    code = "no_sandbox"


class NoSuchCommand(APIError):
    """404: not there, or another tenant's."""

    code = "no_such_command"


class NoSuchFile(APIError):
    """404: Jupyter's API: the name, the id, a kernelspec's file."""

    code = "no_such_file"


class NoSuchKernel(APIError):
    """404: not there, or another tenant's."""

    code = "no_such_kernel"


class NoSuchKernelspec(APIError):
    """404: Jupyter's API: the name, the id, a kernelspec's file."""

    code = "no_such_kernelspec"


class NoSuchModule(APIError):
    """404: `/modules`: it cannot be imported; the message says why."""

    code = "no_such_module"


class NoSuchPath(APIError):
    """404: the sandbox has no such file or directory."""

    code = "no_such_path"


class NoSuchProfile(APIError):
    """404: `GET /v1/profiles` lists them."""

    code = "no_such_profile"


class NoSuchSandbox(APIError):
    """404: not there, or another tenant's."""

    code = "no_such_sandbox"


class NoSuchSession(APIError):
    """404: Jupyter's API: the name, the id, a kernelspec's file."""

    code = "no_such_session"


class NoTerminal(APIError):
    """409: the command has ended; it takes no input; it does not read (also: the kernels of a
    sandbox have 64 MiB of answers to `input()` to read); it has no terminal."""

    code = "no_terminal"


class NoWebsocket(APIError):
    """426: this path wants one with GET, of version 13."""

    code = "no_websocket"


class NotAFile(APIError):
    """400: Sandbox Runtime: a directory, or something else that has no content."""

    code = "not_a_file"


class NotEmpty(APIError):
    """409: something is at that path of the sandbox; the directory is not empty."""

    code = "not_empty"


class NotWaiting(APIError):
    """409: no input() waits for that."""

    code = "not_waiting"


class PathBusy(APIError):
    """409: the program has a lease on the file, or makes files faster than they are removed."""

    code = "path_busy"


class PathTaken(APIError):
    """409: something is at that path of the sandbox; the directory is not empty."""

    code = "path_taken"


class PortBadAnswer(APIError):
    """502: nothing listens at that port of the sandbox; what the server there says could be read
    in two ways, or breaks off."""

    code = "port_bad_answer"


class PortClosed(APIError):
    """502: nothing listens at that port of the sandbox; what the server there says could be read
    in two ways, or breaks off."""

    code = "port_closed"


class PortTimeout(APIError):
    """504: the server in the sandbox accepts no connection, or does not answer in time."""

    code = "port_timeout"


class PortsUnavailable(APIError):
    """501: the sandbox was made by an older build, which knows of no connections inwards."""

    code = "ports_unavailable"


class ProfileBroken(APIError):
    """503: as above."""

    code = "profile_broken"


class ProfileBuilding(APIError):
    """409: its build is not over; removed all the same with `?force=true`."""

    code = "profile_building"


class ProfileExists(APIError):
    """409: the name is taken, by a profile of the tenant's or of the operator's."""

    code = "profile_exists"


class ProfileInUse(APIError):
    """409: sandboxes have it; removed all the same with `?force=true`."""

    code = "profile_in_use"


class ProfilesFull(APIError):
    """507: the tenant's profiles take all of `--tenant-profiles-mb`."""

    code = "profiles_full"


class ProfilesOff(APIError):
    """501: tenants make no profiles here (`--tenant-profiles 0`)."""

    code = "profiles_off"


class QueueFull(APIError):
    """503: as above; see `Retry-After`."""

    code = "queue_full"


class QueueTimeout(APIError):
    """503: as above; see `Retry-After`."""

    code = "queue_timeout"


class ReplyNotKept(APIError):
    """409: an upload with this key is under way; it was carried out, but its reply was too large
    to keep, or had to make room."""

    code = "reply_not_kept"


class SandboxBusy(APIError):
    """503: too many requests for one sandbox's files at once."""

    code = "sandbox_busy"


class SandboxGone(APIError):
    """410: it was there; the message says why it ended."""

    code = "sandbox_gone"


class SandboxLost(APIError):
    """503: as above; see `Retry-After`."""

    code = "sandbox_lost"


class SandboxPaused(APIError):
    """409: resume it first."""

    code = "sandbox_paused"


class SessionExists(APIError):
    """409: Sandbox Runtime: a session of this id is there."""

    code = "session_exists"


class StdinClosed(APIError):
    """409: the command has ended; it takes no input; it does not read (also: the kernels of a
    sandbox have 64 MiB of answers to `input()` to read); it has no terminal."""

    code = "stdin_closed"


class StdinFull(APIError):
    """409: the command has ended; it takes no input; it does not read (also: the kernels of a
    sandbox have 64 MiB of answers to `input()` to read); it has no terminal."""

    code = "stdin_full"


class TooManyArchives(APIError):
    """429: delete one, or wait for one to end."""

    code = "too_many_archives"


class TooManyAtOnce(APIError):
    """429: a limit of your key, or half of `--max-connections` for your tenant; see `Retry-
    After`."""

    code = "too_many_at_once"


class TooManyBuilds(APIError):
    """429: as many as a tenant may have (`--tenant-profiles`), or as are built at once."""

    code = "too_many_builds"


class TooManyCommands(APIError):
    """429: delete one, or wait for one to end."""

    code = "too_many_commands"


class TooManyConnections(APIError):
    """503: more than `--bodies-mb` (your tenant: its half), `--max-connections` allow; see
    `Retry-After`."""

    code = "too_many_connections"


class TooManyExecutions(APIError):
    """429: delete one, or wait for one to end."""

    code = "too_many_executions"


class TooManyListeners(APIError):
    """429: as many sandboxes as may have a port of their own (`--live-listeners`; with keys of
    several tenants, its half)."""

    code = "too_many_listeners"


class TooManyProfiles(APIError):
    """429: as many as a tenant may have (`--tenant-profiles`), or as are built at once."""

    code = "too_many_profiles"


class TooManyRequests(APIError):
    """429: a limit of your key, or half of `--max-connections` for your tenant; see `Retry-
    After`."""

    code = "too_many_requests"


class TooManySandboxes(APIError):
    """429: delete one, or wait for one to end."""

    code = "too_many_sandboxes"


class TooMuchCpu(APIError):
    """429: a limit of your key, or half of `--max-connections` for your tenant; see `Retry-
    After`."""

    code = "too_much_cpu"


class UnknownProfile(APIError):
    """422: `GET /v1/profiles` lists them."""

    code = "unknown_profile"


CODES: Dict[str, Type[APIError]] = {
    "audit_unavailable": AuditUnavailable,
    "bad_archive": BadArchive,
    "bad_base64": BadBase64,
    "bad_bind": BadBind,
    "bad_body": BadBody,
    "bad_fields": BadFields,
    "bad_form": BadForm,
    "bad_handshake": BadHandshake,
    "bad_header": BadHeader,
    "bad_host": BadHost,
    "bad_idempotency_key": BadIdempotencyKey,
    "bad_json": BadJson,
    "bad_key": BadKey,
    "bad_link": BadLink,
    "bad_method": BadMethod,
    "bad_origin": BadOrigin,
    "bad_path": BadPath,
    "bad_range": BadRange,
    "bad_request": BadRequest,
    "bad_value": BadValue,
    "bind_not_allowed": BindNotAllowed,
    "bodies_full": BodiesFull,
    "body_too_large": BodyTooLarge,
    "cannot_limit": CannotLimit,
    "cannot_listen": CannotListen,
    "cannot_pause": CannotPause,
    "client_gone": ClientGone,
    "code_too_long": CodeTooLong,
    "command_over": CommandOver,
    "disk_full": DiskFull,
    "efast_not_allowed": EfastNotAllowed,
    "efast_off": EfastOff,
    "file_too_large": FileTooLarge,
    "idempotency_key_busy": IdempotencyKeyBusy,
    "idempotency_key_reused": IdempotencyKeyReused,
    "idempotency_keys_full": IdempotencyKeysFull,
    "internal": Internal,
    "interrupted": Interrupted,
    "is_default": IsDefault,
    "kernel_busy": KernelBusy,
    "kernel_failed": KernelFailed,
    "kernel_gone": KernelGone,
    "limit_too_high": LimitTooHigh,
    "list_too_long": ListTooLong,
    "memory_budget": MemoryBudget,
    "modules_failed": ModulesFailed,
    "modules_timeout": ModulesTimeout,
    "name_taken": NameTaken,
    "network_not_allowed": NetworkNotAllowed,
    "network_rule_invalid": NetworkRuleInvalid,
    "network_unavailable": NetworkUnavailable,
    "no_access": NoAccess,
    "no_descriptors": NoDescriptors,
    "no_events": NoEvents,
    "no_execution": NoExecution,
    "no_file": NoFile,
    "no_key": NoKey,
    "no_port": NoPort,
    "no_ports_domain": NoPortsDomain,
    "no_right": NoRight,
    "no_route": NoRoute,
    "no_sandbox": NoSandbox,
    "no_such_command": NoSuchCommand,
    "no_such_file": NoSuchFile,
    "no_such_kernel": NoSuchKernel,
    "no_such_kernelspec": NoSuchKernelspec,
    "no_such_module": NoSuchModule,
    "no_such_path": NoSuchPath,
    "no_such_profile": NoSuchProfile,
    "no_such_sandbox": NoSuchSandbox,
    "no_such_session": NoSuchSession,
    "no_terminal": NoTerminal,
    "no_websocket": NoWebsocket,
    "not_a_file": NotAFile,
    "not_empty": NotEmpty,
    "not_waiting": NotWaiting,
    "path_busy": PathBusy,
    "path_taken": PathTaken,
    "port_bad_answer": PortBadAnswer,
    "port_closed": PortClosed,
    "port_timeout": PortTimeout,
    "ports_unavailable": PortsUnavailable,
    "profile_broken": ProfileBroken,
    "profile_building": ProfileBuilding,
    "profile_exists": ProfileExists,
    "profile_in_use": ProfileInUse,
    "profiles_full": ProfilesFull,
    "profiles_off": ProfilesOff,
    "queue_full": QueueFull,
    "queue_timeout": QueueTimeout,
    "reply_not_kept": ReplyNotKept,
    "sandbox_busy": SandboxBusy,
    "sandbox_gone": SandboxGone,
    "sandbox_lost": SandboxLost,
    "sandbox_paused": SandboxPaused,
    "session_exists": SessionExists,
    "stdin_closed": StdinClosed,
    "stdin_full": StdinFull,
    "too_many_archives": TooManyArchives,
    "too_many_at_once": TooManyAtOnce,
    "too_many_builds": TooManyBuilds,
    "too_many_commands": TooManyCommands,
    "too_many_connections": TooManyConnections,
    "too_many_executions": TooManyExecutions,
    "too_many_listeners": TooManyListeners,
    "too_many_profiles": TooManyProfiles,
    "too_many_requests": TooManyRequests,
    "too_many_sandboxes": TooManySandboxes,
    "too_much_cpu": TooMuchCpu,
    "unknown_profile": UnknownProfile,
}
__all__ = [
    "AuditUnavailable",
    "BadArchive",
    "BadBase64",
    "BadBind",
    "BadBody",
    "BadFields",
    "BadForm",
    "BadHandshake",
    "BadHeader",
    "BadHost",
    "BadIdempotencyKey",
    "BadJson",
    "BadKey",
    "BadLink",
    "BadMethod",
    "BadOrigin",
    "BadPath",
    "BadRange",
    "BadRequest",
    "BadValue",
    "BindNotAllowed",
    "BodiesFull",
    "BodyTooLarge",
    "CannotLimit",
    "CannotListen",
    "CannotPause",
    "ClientGone",
    "CodeTooLong",
    "CommandOver",
    "DiskFull",
    "EfastNotAllowed",
    "EfastOff",
    "FileTooLarge",
    "IdempotencyKeyBusy",
    "IdempotencyKeyReused",
    "IdempotencyKeysFull",
    "Internal",
    "Interrupted",
    "IsDefault",
    "KernelBusy",
    "KernelFailed",
    "KernelGone",
    "LimitTooHigh",
    "ListTooLong",
    "MemoryBudget",
    "ModulesFailed",
    "ModulesTimeout",
    "NameTaken",
    "NetworkNotAllowed",
    "NetworkRuleInvalid",
    "NetworkUnavailable",
    "NoAccess",
    "NoDescriptors",
    "NoEvents",
    "NoExecution",
    "NoFile",
    "NoKey",
    "NoPort",
    "NoPortsDomain",
    "NoRight",
    "NoRoute",
    "NoSandbox",
    "NoSuchCommand",
    "NoSuchFile",
    "NoSuchKernel",
    "NoSuchKernelspec",
    "NoSuchModule",
    "NoSuchPath",
    "NoSuchProfile",
    "NoSuchSandbox",
    "NoSuchSession",
    "NoTerminal",
    "NoWebsocket",
    "NotAFile",
    "NotEmpty",
    "NotWaiting",
    "PathBusy",
    "PathTaken",
    "PortBadAnswer",
    "PortClosed",
    "PortTimeout",
    "PortsUnavailable",
    "ProfileBroken",
    "ProfileBuilding",
    "ProfileExists",
    "ProfileInUse",
    "ProfilesFull",
    "ProfilesOff",
    "QueueFull",
    "QueueTimeout",
    "ReplyNotKept",
    "SandboxBusy",
    "SandboxGone",
    "SandboxLost",
    "SandboxPaused",
    "SessionExists",
    "StdinClosed",
    "StdinFull",
    "TooManyArchives",
    "TooManyAtOnce",
    "TooManyBuilds",
    "TooManyCommands",
    "TooManyConnections",
    "TooManyExecutions",
    "TooManyListeners",
    "TooManyProfiles",
    "TooManyRequests",
    "TooManySandboxes",
    "TooMuchCpu",
    "UnknownProfile",
]
