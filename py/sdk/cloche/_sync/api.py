# Made by script/sdk-generate: change ../_async/api.py instead.
"""What needs no client of one's own."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional

from cloche._sync.client import Client
from cloche._default import default_client
from cloche._events import Event, Output
from cloche._uploads import Source
from cloche._calls import Network
from cloche.results import Display, Result


def run(
    code: str,
    *,
    timeout: Optional[float] = None,
    stdin: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
    files: Optional[Mapping[str, Source]] = None,
    profile: Optional[str] = None,
    policy: Optional[str] = None,
    limits: Optional[Mapping[str, float]] = None,
    network: Network = None,
    silent: Optional[bool] = None,
    on_stdout: Output = None,
    on_stderr: Output = None,
    on_result: Optional[Callable[[Display], Any]] = None,
    on_event: Optional[Callable[[Event], Any]] = None,
    on_input: Optional[Callable[[str], Any]] = None,
    idempotency_key: Optional[str] = None,
    client: Optional[Client] = None,
    **more: Any,
) -> Result:
    """Runs a program in a fresh sandbox: `Client.run()` of the server in CLOCHE_SERVER."""
    return (client or default_client()).run(
        code,
        timeout=timeout,
        stdin=stdin,
        env=env,
        files=files,
        profile=profile,
        policy=policy,
        limits=limits,
        network=network,
        silent=silent,
        on_stdout=on_stdout,
        on_stderr=on_stderr,
        on_result=on_result,
        on_event=on_event,
        on_input=on_input,
        idempotency_key=idempotency_key,
        **more,
    )
