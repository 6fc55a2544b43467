"""Comms: what widgets in a notebook and their halves in a kernel say to each other.

The halves here are made by user code, through the package `comm` or, as older widgets do, through
`ipykernel.comm`: both lead here. What they say goes out as events of the execution that runs.
"""

from __future__ import annotations

import sys
import uuid
from binascii import a2b_base64, b2a_base64
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any, Callable, Dict, List, Optional

from traitlets.utils.importstring import import_item

from cell.bundles import Message, bundle, plain
from cell.channel import channel

OLD_NAME = "ipykernel.comm"


def _encoded(buffers: Any) -> List[str]:
    return [
        b2a_base64(memoryview(item).cast("B"), newline=False).decode("ascii")
        for item in buffers or ()
    ]


class Comm:
    """One half; the other one has the same comm_id."""

    def __init__(
        self,
        target_name: str = "comm",
        data: Any = None,
        metadata: Any = None,
        buffers: Any = None,
        comm_id: Optional[str] = None,
        primary: bool = True,
        target_module: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        self.comm_id = comm_id or uuid.uuid4().hex
        self.target_name, self.target_module = target_name, target_module
        self.primary = primary
        self.kernel = kernel
        self._on_msg: Optional[Callable[[Any], Any]] = None
        self._on_close: Optional[Callable[[Any], Any]] = None
        self._closed = primary
        if primary:
            self.open(data, metadata, buffers)

    def _say(self, kind: str, data: Any, metadata: Any, buffers: Any, **more: Any) -> None:
        content = {"comm_id": self.comm_id, "data": plain(data or {}), **more}
        value = {
            "type": kind,
            "content": content,
            "metadata": plain(metadata or {}),
            "buffers": _encoded(buffers),
        }
        if channel.rich:
            channel.event_in_order("comm", value=value)

    def open(self, data: Any = None, metadata: Any = None, buffers: Any = None) -> None:
        manager.register_comm(self)
        names = {"target_name": self.target_name, "target_module": self.target_module}
        try:
            self._say("comm_open", data, metadata, buffers, **names)
            self._closed = False
        except Exception:
            manager.unregister_comm(self)
            raise

    def send(self, data: Any = None, metadata: Any = None, buffers: Any = None) -> None:
        self._say("comm_msg", data, metadata, buffers)

    def close(
        self, data: Any = None, metadata: Any = None, buffers: Any = None, deleting: bool = False
    ) -> None:
        if self._closed:
            return
        self._closed = True
        self._say("comm_close", data, metadata, buffers)
        manager.comms.pop(self.comm_id, None)

    def on_msg(self, callback: Optional[Callable[[Any], Any]]) -> None:
        self._on_msg = callback

    def on_close(self, callback: Optional[Callable[[Any], Any]]) -> None:
        self._on_close = callback

    def handle_msg(self, msg: Any) -> None:
        if self._on_msg:
            self._on_msg(msg)

    def handle_close(self, msg: Any) -> None:
        if self._on_close:
            self._on_close(msg)


class CommManager:
    """All that are open, and who wants to hear of those that notebooks open."""

    def __init__(self) -> None:
        self.comms: Dict[str, Comm] = {}
        self.targets: Dict[str, Callable[[Comm, Any], Any]] = {}

    def register_target(self, target_name: str, f: Any) -> None:
        self.targets[target_name] = import_item(f) if isinstance(f, str) else f

    def unregister_target(self, target_name: str, f: Any = None) -> Any:
        return self.targets.pop(target_name)

    def register_comm(self, comm: Comm) -> str:
        self.comms[comm.comm_id] = comm
        return comm.comm_id

    def unregister_comm(self, comm: Comm) -> None:
        self.comms.pop(comm.comm_id, None)

    def get_comm(self, comm_id: str) -> Optional[Comm]:
        return self.comms.get(comm_id)

    # ---- from the other halves; the first two arguments are what ipykernel's have ----

    def comm_open(self, stream: Any, ident: Any, msg: Any) -> None:
        content = msg["content"]
        name = str(content.get("target_name"))
        comm = Comm(name, comm_id=str(content.get("comm_id")), primary=False)
        self.register_comm(comm)
        target = self.targets.get(name)
        try:
            if target is None:
                raise KeyError(f"nobody here waits for comms of target {name!r}")
            target(comm, msg)
        except BaseException:
            comm.close()
            raise

    def comm_msg(self, stream: Any, ident: Any, msg: Any) -> None:
        comm = self.get_comm(str(msg["content"].get("comm_id")))
        if comm is not None:
            comm.handle_msg(msg)

    def comm_close(self, stream: Any, ident: Any, msg: Any) -> None:
        comm = self.comms.pop(str(msg["content"].get("comm_id")), None)
        if comm is not None:
            comm._closed = True
            comm.handle_close(msg)


manager = CommManager()


class Session:
    """ipykernel's has the sockets; libraries that show things by it find what they need of that."""

    def send(
        self,
        stream: Any,
        msg_or_type: Any,
        content: Any = None,
        parent: Any = None,
        ident: Any = None,
        buffers: Any = None,
        track: bool = False,
        header: Any = None,
        metadata: Any = None,
    ) -> Message:
        kind, content = str(msg_or_type), content or {}
        if kind in ("comm_open", "comm_msg", "comm_close"):
            value = {"type": kind, "content": plain(content), "metadata": plain(metadata or {})}
            channel.event_in_order("comm", value={**value, "buffers": _encoded(buffers)})
        elif kind == "stream":
            print(content["text"], end="", file=getattr(sys, content["name"]), flush=True)
        elif kind in ("display_data", "update_display_data", "execute_result"):
            self._show(kind, content)
        elif kind == "clear_output":
            channel.event_in_order("clear", wait=bool(content.get("wait")))
        else:
            raise ValueError(f"a kernel of cloche's sends no {kind}")
        return {"header": {"msg_type": kind}, "content": content}

    def _show(self, kind: str, content: Any) -> None:
        name = (content.get("transient") or {}).get("display_id")
        about = {
            "data": bundle(content.get("data") or {}),
            "metadata": bundle(content.get("metadata") or {}),
            "display_id": None if name is None else str(name),
        }
        if kind == "execute_result":
            count = int(content.get("execution_count") or 0)
            channel.event_in_order("result", execution_count=count, **about)
        else:
            channel.event_in_order("display", update=kind != "display_data", **about)


class Kernel:
    """What libraries look for at the shell."""

    comm_manager = manager
    session = Session()
    iopub_socket = None


kernel = Kernel()
HANDLERS = {
    "comm_open": manager.comm_open,
    "comm_msg": manager.comm_msg,
    "comm_close": manager.comm_close,
}


def deliver(message: Message) -> None:
    """{"kind","content","metadata","buffers"}: what the other half said."""
    buffers = [memoryview(a2b_base64(item)) for item in message.get("buffers") or ()]
    kind = str(message.get("kind"))
    header = {"msg_type": kind}
    content, metadata = message.get("content") or {}, message.get("metadata") or {}
    msg = {"header": header, "content": content, "metadata": metadata, "buffers": buffers}
    HANDLERS[kind](None, None, msg)


def listed(target: Optional[str]) -> Message:
    found = {
        name: {"target_name": str(comm.target_name)}
        for name, comm in list(manager.comms.items())
        if target is None or comm.target_name == target
    }
    return {"comms": plain(found)}


class _Old(MetaPathFinder, Loader):
    """`ipykernel.comm`, without ipykernel's kernel behind it."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Optional[ModuleSpec]:
        return ModuleSpec(OLD_NAME, self) if fullname == OLD_NAME else None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        module.Comm, module.CommManager = Comm, CommManager


def attach(shell: Any) -> None:
    """In the zygote."""
    shell.kernel = kernel
    shell.parent_header = {}
    sys.meta_path.insert(0, _Old())
    try:
        import comm
    except ImportError:
        return
    setattr(comm, "create_comm", Comm)
    setattr(comm, "get_comm_manager", lambda: manager)
