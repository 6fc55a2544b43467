"""sandbox-run: calls the handler of a script on a cloche server, as the command of Sandbox Runtime
does."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

from cloche._calls import QUEUE_S, Call
from cloche._errors import APIError, BadArgument, ClocheError
from cloche._settings import Server
from cloche._sync.transport import Transport
from cloche._version import __version__

OK, LOAD, FAILED, RESULT, SANDBOX, SYSTEM = 0, 1, 2, 3, 4, 6
BAD_INPUT, MEMORY, INTERRUPTED = 2, 137, 130
CONFIG = ".sandboxrc.json"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class BadInput(Exception):
    """What the user gave cannot be used."""


def options_of(words: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sandbox-run", description=__doc__)
    parser.add_argument("script", help="a file with a function handler(event)")
    event = parser.add_mutually_exclusive_group()
    event.add_argument("--event", metavar="JSON", help="what the handler gets")
    event.add_argument("--event-file", metavar="FILE")
    context = parser.add_mutually_exclusive_group()
    context.add_argument("--context", metavar="JSON", help="fields of its second argument")
    context.add_argument("--context-file", metavar="FILE")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="(300)")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what is done")
    parser.add_argument("-q", "--quiet", action="store_true", help="only what it returned")
    parser.add_argument("-p", "--performance", action="store_true", help="what it cost, too")
    parser.add_argument("-o", "--output", metavar="FILE", help="instead of stdout")
    parser.add_argument("--format", choices=("pretty", "json", "yaml"))
    parser.add_argument("--log-level", type=str.upper, choices=LEVELS)
    parser.add_argument("--server", metavar="URL", help="(CLOCHE_SERVER)")
    parser.add_argument("--version", action="version", version=f"sandbox-run {__version__}")
    return parser.parse_args(words)


def read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from error


def parsed(text: str, name: str) -> Dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise BadInput(f"{name} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadInput(f"{name} is no JSON object")
    return value


def config() -> Dict[str, Any]:
    """Defaults for the options, by their long names, from here or from home."""
    for place in (Path.cwd(), Path.home()):
        path = place / CONFIG
        if path.is_file():
            return parsed(read(path), str(path))
    return {}


def given(options: argparse.Namespace, name: str) -> Dict[str, Any]:
    text, file = getattr(options, name), getattr(options, f"{name}_file")
    if file is not None:
        return parsed(read(Path(file)), file)
    return {} if text is None else parsed(text, f"--{name}")


def exit_code(reply: Dict[str, Any]) -> int:
    """The wire has none: what the handler left in stderr tells. An exception of the handler itself
    is a 0 upstream; here it is what it looks like."""
    stderr = str(reply.get("stderr", ""))
    if reply.get("result") is not None or not stderr:
        return OK
    if stderr.startswith("System error: "):
        return SYSTEM
    is_failure = stderr.startswith("Handler 执行异常") or "Traceback (most recent" in stderr
    return FAILED if is_failure else OK


def call_handler(options: argparse.Namespace, defaults: Dict[str, Any]) -> Dict[str, Any]:
    """The reply, with the exit code of the handler."""
    timeout = options.timeout if options.timeout is not None else defaults.get("timeout", 300)
    event = given(options, "event")
    event.setdefault("__timeout", timeout)
    body = {
        "handler_code": read(Path(options.script)),
        "event": event,
        "context": given(options, "context"),
    }
    transport = Transport(Server(options.server or defaults.get("server"), None), QUEUE_S)
    path = "/workspace/se/v2/execute_code"
    try:
        reply = transport.json(Call("POST", path, body, silence_s=float(timeout) + QUEUE_S))
    except APIError as error:
        return refused(error)
    finally:
        transport.close()
    found: Dict[str, Any] = reply["result"] if "full_result" in reply else reply
    return {"exit_code": exit_code(found), **found}


def refused(error: APIError) -> Dict[str, Any]:
    """Why the handler did not come to its end."""
    detail = error.detail if isinstance(error.detail, dict) else {}
    why = str(detail.get("error_detail") or error)
    code = SANDBOX
    if detail.get("error_code") == "Sandbox.ExecException":
        code = MEMORY if "needed more than" in why else SYSTEM
    return {"exit_code": code, "stdout": "", "stderr": why + "\n", "result": None, "metrics": {}}


def pretty(reply: Dict[str, Any], options: argparse.Namespace) -> str:
    parts = []
    if not options.quiet:
        parts += [str(reply["stdout"]), str(reply["stderr"])]
    parts.append(json.dumps(reply["result"], indent=2, ensure_ascii=False))
    if options.performance:
        parts += [f"{name}: {value}" for name, value in reply["metrics"].items()]
    return "".join(part if part.endswith("\n") else part + "\n" for part in parts if part)


def shown(reply: Dict[str, Any], options: argparse.Namespace, form: str) -> str:
    if form == "pretty":
        return pretty(reply, options)
    # JSON is YAML, so that no library is needed for it.
    return json.dumps(reply, indent=2 if form == "yaml" else None, ensure_ascii=False) + "\n"


def work(options: argparse.Namespace) -> int:
    defaults = config()
    level = options.log_level or ("DEBUG" if options.verbose else "WARNING")
    logging.basicConfig(level=level, format="%(name)s: %(message)s")
    reply = call_handler(options, defaults)
    text = shown(reply, options, options.format or defaults.get("format", "pretty"))
    if options.output:
        Path(options.output).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return int(reply["exit_code"])


def main(words: Optional[List[str]] = None) -> int:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    options = options_of(words)
    try:
        return work(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BadInput, ClocheError, OSError) as error:
        print(f"sandbox-run: {error}", file=sys.stderr)
        is_ours = isinstance(error, ClocheError) and not isinstance(error, BadArgument)
        return SANDBOX if is_ours else BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
