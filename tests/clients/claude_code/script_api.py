"""A model that is a script: the Messages API as far as Claude Code asks for it. It wants what the
script says, one turn after the other, and keeps what it is told."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Turn = dict[str, Any]  # a content block: tool_use, or text


class ScriptApi:
    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)
        self.results: list[dict[str, Any]] = []
        self.tools: set[str] = set()
        self.lock = threading.Lock()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(size) or b"{}")
                if "count_tokens" in self.path:
                    self.reply("application/json", b'{"input_tokens":1}')
                else:
                    self.reply("text/event-stream", api.answer(body))

            def do_GET(self) -> None:
                self.send_response(404)
                self.send_header("content-length", "0")
                self.end_headers()

            do_HEAD = do_GET

            def reply(self, kind: str, data: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> ScriptApi:
        self.thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def answer(self, body: dict[str, Any]) -> bytes:
        with self.lock:
            self.tools |= {tool.get("name", "") for tool in body.get("tools", [])}
            messages = body.get("messages", [])
            parts = [p for m in messages if isinstance(m["content"], list) for p in m["content"]]
            self.results = [p for p in parts if p.get("type") == "tool_result"] or self.results
            # Without tools it asks for something of its own, such as a title.
            is_ours = bool(body.get("tools")) and bool(self.turns)
            turn = self.turns.pop(0) if is_ours else {"type": "text", "text": "done"}
        return stream(turn, str(body.get("model")))


def stream(turn: Turn, model: str) -> bytes:
    is_tool = turn["type"] == "tool_use"
    empty: dict[str, Any] = {"input": {}} if is_tool else {"text": ""}
    delta = (
        {"type": "input_json_delta", "partial_json": json.dumps(turn["input"])}
        if is_tool
        else {"type": "text_delta", "text": turn["text"]}
    )
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: dict[str, Any] = {"id": "msg_1", "type": "message"}
    message |= {"role": "assistant", "model": model}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    reason = "tool_use" if is_tool else "end_turn"
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": turn | empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ]
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
