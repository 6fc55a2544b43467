import http.client
import http.server
import threading
import urllib.request


class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("X-Path", self.path)
        self.end_headers()
        self.wfile.write(b"body")

    def log_message(self, *args):
        print("log", args[1])


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), H) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/a?b"
    with urllib.request.urlopen(url) as r:
        print(r.status, r.read(), r.headers["X-Path"])
    server.shutdown()
