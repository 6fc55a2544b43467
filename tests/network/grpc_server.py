"""A gRPC server that says what it is told: grpc_server.py DIRECTORY ADDRESS, on port 50051 and,
with the certificates of the directory, on 443. It ends with its stdin."""

from __future__ import annotations

import concurrent.futures
import sys
from pathlib import Path
from typing import Any

import grpc


class Echo(grpc.GenericRpcHandler):  # type: ignore[misc]
    def service(self, call: Any) -> Any:
        if call.method == "/test.Echo/One":
            return grpc.unary_unary_rpc_method_handler(lambda data, _: data)
        if call.method == "/test.Echo/Many":
            return grpc.stream_stream_rpc_method_handler(lambda stream, _: stream)
        return None


def main() -> None:
    directory, address = Path(sys.argv[1]), sys.argv[2]
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(32))
    server.add_generic_rpc_handlers((Echo(),))
    pair = ((directory / "web.key").read_bytes(), (directory / "web.pem").read_bytes())
    server.add_insecure_port(f"{address}:50051")
    server.add_secure_port(f"{address}:443", grpc.ssl_server_credentials([pair]))
    server.start()
    print("up", flush=True)
    sys.stdin.read()
    server.stop(None)


if __name__ == "__main__":
    main()
