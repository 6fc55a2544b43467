"""What the service says about itself: limits, profiles, metrics, its specification, its pages."""

from __future__ import annotations

import re

import pytest

from answers import references
from api_execute import samples
from harness import Service
from http_client import Connection, ask, execute, get, post


@pytest.mark.parametrize(
    "method,path,allow",
    [
        ("PUT", "/v1/execute", "POST"),
        ("DELETE", "/health", "GET, HEAD"),
        ("PATCH", "/v1/files", "POST, GET, HEAD"),
        ("POST", "/v1/files/x", "GET, HEAD, DELETE"),
        ("HEAD", "/v1/execute", "POST"),
    ],
)
def test_another_method_is_a_405(service: Service, method: str, path: str, allow: str) -> None:
    reply = ask(service.port, method, path, b"" if method != "HEAD" else None)
    assert (reply.status, reply.header("allow")) == (405, allow)
    if method != "HEAD":
        assert reply.json["error"]["code"] == "bad_method"


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/execute/x", "/v2/execute", "/%2e%2e/"])
def test_another_path_is_a_404(service: Service, path: str) -> None:
    reply = get(service.port, path)
    assert (reply.status, reply.json["detail"]) == (404, "Not Found")
    assert reply.json["error"]["code"] == "no_route"


@pytest.mark.parametrize(
    "path", ["/health", "/v1/info", "/v1/files", "/openapi.json", "/metrics", "/docs", "/"]
)
def test_head_is_get_without_the_body(service: Service, path: str) -> None:
    with Connection(service.port) as connection:
        head = connection.ask("HEAD", path)
        whole = connection.ask("GET", path)
    assert head.status == whole.status == 200
    assert head.header("content-type") == whole.header("content-type")
    assert int(head.header("content-length") or 0) > 0


def test_info_tells_the_limits(service: Service) -> None:
    info = get(service.port, "/v1/info").json
    names = {
        "timeout_ms",
        "memory_mb",
        "cpu_seconds",
        "cpus",
        "pids",
        "disk_mb",
        "open_files",
        "output_bytes",
    }
    assert set(info["defaults"]) == set(info["maxima"]) == names
    defaults = info["defaults"]
    assert (defaults["timeout_ms"], defaults["cpu_seconds"]) == (60000, 5)
    assert (defaults["memory_mb"], defaults["output_bytes"]) == (256, 1000000)
    assert info["version"] == get(service.port, "/health").json["version"]
    assert info["files"] == {"max_mb": 100, "ttl_seconds": 3600}


def test_profiles_tell_their_modules(service: Service) -> None:
    profiles = {p["name"]: p for p in get(service.port, "/v1/profiles").json["profiles"]}
    assert set(profiles) == {"base", "data"}
    assert profiles["data"]["state"] == "ready"
    assert "pandas" in profiles["data"]["modules"]


def test_profiles_come_in_pages(service: Service) -> None:
    whole = get(service.port, "/v1/profiles").json
    names = [p["name"] for p in whole["profiles"]]
    assert len(names) == 2 and whole["next"] is None
    first = get(service.port, "/v1/profiles?limit=1").json
    assert ([p["name"] for p in first["profiles"]], first["next"]) == (names[:1], names[0])
    last = get(service.port, f"/v1/profiles?limit=1&after={first['next']}").json
    assert ([p["name"] for p in last["profiles"]], last["next"]) == (names[1:], None)
    for wrong in ("limit=0", "after=nothing"):
        assert get(service.port, f"/v1/profiles?{wrong}").status == 422


def test_metrics_count(service: Service) -> None:
    ok = ("cloche_executions_total", 'status="ok",profile="base"')
    asked = ("cloche_requests_total", 'method="POST",route="/v1/execute",status="200"')
    refused = ("cloche_requests_total", 'method="POST",route="/v1/execute",status="422"')
    seconds = ("cloche_execution_seconds_count", "")
    before = samples(service)
    for _ in range(3):
        execute(service.port, "1", profile="base")
    post(service.port, "/v1/execute", {})
    after = samples(service)
    for key, more in ((ok, 3), (asked, 3), (refused, 1), (seconds, 3)):
        assert after[key] == before.get(key, 0) + more, key


def test_histograms_add_up(service: Service) -> None:
    execute(service.port, "1")
    found = samples(service)
    for name in ("request_seconds", "execution_seconds", "queue_seconds"):
        buckets = [v for (n, _), v in found.items() if n == f"cloche_{name}_bucket"]
        assert buckets == sorted(buckets) and len(buckets) > 5
        assert buckets[-1] == found[f"cloche_{name}_count", ""] > 0


def test_the_specification_is_consistent(service: Service) -> None:
    spec = get(service.port, "/openapi.json").json
    assert spec["openapi"].startswith("3.1") and spec["info"]["version"]
    found = list(references(spec))
    assert found
    for reference in found:
        node = spec
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]
    ids = [op["operationId"] for path in spec["paths"].values() for op in path.values()]
    assert len(ids) == len(set(ids))
    for path, operations in spec["paths"].items():
        for operation in operations.values():
            names = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert names == set(re.findall(r"\{(\w+)\}", path))
            assert operation["responses"] and operation["summary"]


ROUTES = {
    "/v1/execute": {"post"},
    "/v1/execute/stream": {"get", "post"},
    "/v1/execute/batch": {"post"},
    "/v1/executions/{id}": {"get"},
    "/v1/executions/{id}/events": {"get"},
    "/v1/files": {"get", "post"},
    "/v1/files/{file_id}": {"get", "delete"},
    "/v1/info": {"get"},
    "/v1/profiles": {"get", "post"},
    "/health": {"get"},
    "/metrics": {"get"},
    "/openapi.json": {"get"},
    "/docs": {"get"},
    "/": {"get"},
}


def test_the_specification_has_every_route_and_every_route_is_there(service: Service) -> None:
    paths = get(service.port, "/openapi.json").json["paths"]
    assert {path: set(paths[path]) for path in ROUTES} == ROUTES
    for path, operations in paths.items():
        for method in operations:
            real = re.sub(r"\{\w+\}", "x", path)
            reply = ask(service.port, method.upper(), real, b"" if method == "post" else None)
            if path == "/mcp" and reply.status == 405:
                continue  # of MCP: nothing is sent that nobody asked for
            assert reply.status not in (405, 500, 501), (method, path)
            if reply.status == 404:
                assert reply.json["error"]["code"] != "no_route", (method, path)


def test_the_specification_tells_what_is_enforced(service: Service) -> None:
    schemas = get(service.port, "/openapi.json").json["components"]["schemas"]
    request = schemas["ExecuteRequest"]
    assert request["required"] == ["code"]
    assert request["properties"]["timeout_ms"]["minimum"] == 1
    assert request["properties"]["timeout_ms"]["default"] == 2000
    assert request["properties"]["on_disconnect"]["enum"] == ["interrupt", "continue"]


def test_the_specification_tells_what_a_query_has(service: Service) -> None:
    paths = get(service.port, "/openapi.json").json["paths"]
    listing = paths["/v1/sandboxes/{id}/files/{path}"]["get"]["parameters"]
    query = {p["name"]: p["schema"] for p in listing if p["in"] == "query"}
    assert set(query) == {"recursive", "limit", "after"}
    assert query["limit"] == {"type": "integer", "minimum": 1, "maximum": 10000, "default": 1000}
    for path, method in [
        ("/v1/sandboxes/x/files/a?recursiv=1", "GET"),
        ("/v1/sandboxes?a=1", "GET"),
    ]:
        reply = ask(service.port, method, path)
        assert reply.status == 422 and reply.json["error"]["code"] == "bad_value"
        assert "limit, after" in reply.json["error"]["message"]


def test_the_specification_tells_each_status_of_success(service: Service) -> None:
    paths = get(service.port, "/openapi.json").json["paths"]
    for path, method, statuses in [
        ("/v1/sandboxes/{id}/commands", "post", {"200", "202"}),
        ("/v1/sandboxes/{id}/files/{path}", "put", {"200", "201"}),
        ("/v1/sandboxes/{id}/files/{path}", "get", {"200", "206", "304"}),
        ("/v1/files", "post", {"201"}),
    ]:
        assert {s for s in paths[path][method]["responses"] if s < "400"} == statuses


def test_the_specification_tells_where_a_body_may_be_left_out(service: Service) -> None:
    paths = get(service.port, "/openapi.json").json["paths"]
    for path, required in [
        ("/v1/execute", True),
        ("/v1/files", True),
        ("/v1/sessions", True),
        ("/v1/sandboxes", False),
        ("/v1/sandboxes/{id}/restart", False),
    ]:
        assert paths[path]["post"]["requestBody"]["required"] == required, path


def test_the_specification_tells_of_keys(service: Service) -> None:
    spec = get(service.port, "/openapi.json").json
    operations = [op for path in spec["paths"].values() for op in path.values()]
    lists = [spec["security"], *(op.get("security", []) for op in operations)]
    used = {name for one in lists for choice in one for name in choice}
    assert used == set(spec["components"]["securitySchemes"])
    assert spec["paths"]["/health"]["get"]["security"] == []
    assert "security" not in spec["paths"]["/v1/execute"]["post"]


def test_the_specification_tells_what_a_form_has(service: Service) -> None:
    spec = get(service.port, "/openapi.json").json
    content = spec["paths"]["/v1/files"]["post"]["requestBody"]["content"]
    form = spec["components"]["schemas"][content["multipart/form-data"]["schema"]["$ref"][21:]]
    assert (form["type"], form["required"]) == ("object", ["file"])
    assert form["properties"]["file"]["format"] == "binary"


def test_the_first_page_is_json_unless_a_browser_asks(service: Service) -> None:
    for accept in ("*/*", "application/json", ""):
        reply = get(service.port, "/", Accept=accept) if accept else get(service.port, "/")
        assert (reply.status, reply.json["name"]) == (200, "cloche")
        assert "accept" in (reply.header("vary") or "").lower()
    page = get(service.port, "/", Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert page.status == 200
    assert (page.header("content-type") or "").startswith("text/html")
    assert "accept" in (page.header("vary") or "").lower()
    assert "default-src 'self'" in (page.header("content-security-policy") or "")
    assert b"<html" in page.body.lower()


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_the_pages_load_nothing_from_elsewhere(service: Service, path: str) -> None:
    page = get(service.port, path, Accept="text/html").body.decode()
    for link in re.findall(r"""(?:src|href)=["']([^"']+)["']""", page):
        assert not re.match(r"(https?:)?//", link) or "<a " in page, link
    for asset in re.findall(r"""<(?:script|link|img)[^>]+(?:src|href)=["']([^"']+)["']""", page):
        assert asset.startswith(("/", "data:")) and not asset.startswith("//")
        if asset.startswith("/"):
            assert get(service.port, asset).status == 200, asset


def test_every_reply_names_its_request(service: Service) -> None:
    ids = {get(service.port, path).header("x-request-id") for path in ("/health", "/nope", "/")}
    assert len(ids) == 3 and None not in ids
