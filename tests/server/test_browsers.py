"""What pages in browsers may make them send, and read (server/http/access/web_pages.h, docs/security.md)."""
import json
import pathlib

import numpy as np
import pytest
from sequence_serving import Sequences
from serving import FAKE_MODELS, Server, read_all, run_serve

FAKE = FAKE_MODELS / "fake_model.so"
EVIL = "http://evil.example"
TOKEN = "0123456789abcdef"
ROW = {"inputs": [{"name": "INPUT__0", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
GETS = {"inference": ["/v2", "/v2/health/live", "/v2/models/fake", "/v1/models", "/openapi.json", "/", "/nowhere"],
        "metrics": ["/metrics", "/v2/health/ready"],
        "administration": ["/v2/admin/log", "/v2/admin/models/fake/weights", "/v2/admin/models/fake/weights/active",
                           "/v2/admin/traces", "/console", "/v2/admin/live"]}


@pytest.fixture(scope="module")
def server():
    with Server(f"fake={FAKE}", flags=["--http-cors-origins", "https://app.example,http://localhost:3000"]) as running:
        yield running


def test_a_rebound_name_reads_nothing(server):
    """A page of evil.example whose name was made to point here sends it as Host, and no Origin with a GET."""
    for listener, paths in GETS.items():
        port = server.ports[listener]
        for path in paths:
            for host in (f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}"):
                answer = server.get(path, headers={"Host": host}, port=port)
                assert answer.status == 403 and "allowed_hosts" in answer.json["error"], (path, host)
            if not path.endswith("live") and path != "/nowhere":
                for host in (f"127.0.0.1:{port}", f"LOCALHOST:{port}", "[::1]", "192.0.2.7:80"):
                    assert server.get(path, headers={"Host": host}, port=port).status == 200, (path, host)
    answer = server.post("/v2/models/fake/infer", ROW, {"Host": "evil.example"})
    assert answer.status == 403
    assert server.request("HEAD", "/v2", headers={"Host": "evil.example"}).status == 403
    assert server.request("DELETE", "/v2/admin/operations/1", headers={"Host": "evil.example"},
                          port=server.admin_port).status == 403
    with server.connect() as connection:  # HTTP/1.0 without the field
        connection.sendall(b"GET /v2 HTTP/1.0\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")
    # A connection that has shown a good name does not pass with another one.
    with server.connect() as connection:
        connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v2 HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert read_all(connection).count(b"HTTP/1.1 403 ") == 1


def test_names_of_the_setting_and_listeners_with_tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"infer,admin {TOKEN}\n")
    with Server(f"fake={FAKE}", flags=["--allowed-hosts", "models.example", "--token-file", str(path)]) as server:
        bearer = {"Authorization": f"Bearer {TOKEN}", "Host": "proxied.example"}
        assert server.get("/v2", headers=bearer).status == 200
        assert server.get("/v2", headers={"Host": "proxied.example"}).status == 401
        assert server.get("/metrics", headers={"Host": "proxied.example"}, port=server.ports["metrics"]).status == 403
        assert server.get("/metrics", headers={"Host": "models.example:1"}, port=server.ports["metrics"]).status == 200


@pytest.fixture(scope="module")
def region():
    path = pathlib.Path("/dev/shm/sconce_test_browsers")
    path.write_bytes(bytes(64))
    yield path
    path.unlink()


def test_pages_have_no_shared_memory(region):
    register = {"key": f"/{region.name}", "byte_size": 64}
    request = {**ROW, "outputs": [{"name": "OUTPUT__0", "parameters": {"shared_memory_region": "r",
                                                                       "shared_memory_byte_size": 16}}]}
    page = {"Origin": EVIL, "Content-Type": "text/plain"}
    with Server(f"fake={FAKE}", flags=["--allow-shared-memory", "true"]) as server:
        url = "/v2/systemsharedmemory/region/r"
        assert server.post(f"{url}/register", register, page).status == 403
        assert server.get("/v2/systemsharedmemory/status").json == []
        assert server.post(f"{url}/register", register).status == 200
        answer = server.post("/v2/models/fake/infer", request, page)
        assert answer.status == 403 and "web pages" in answer.json["error"]
        assert region.read_bytes() == bytes(64)
        assert server.post(f"{url}/unregister", {}, page).status == 403
        assert server.post("/v2/cudasharedmemory/unregister", {}, page).status == 403
        assert len(server.get("/v2/systemsharedmemory/status").json) == 1
        assert server.post("/v2/models/fake/infer", ROW, page).status == 200  # its answer is unread
        own = {"Origin": f"http://127.0.0.1:{server.port}"}
        assert server.post("/v2/models/fake/infer", request, own).status == 200
        assert np.frombuffer(region.read_bytes()[:16], np.float32).any()


class SequenceServer(Sequences, Server):
    pass


def test_pages_change_no_sequences():
    with SequenceServer() as server:
        assert server.step(1, start=True).status == 200
        request = {**ROW, "parameters": {"sequence_id": 1, "sequence_start": True}}
        answer = server.post("/v2/models/state/infer", request, {"Origin": EVIL})
        assert answer.status == 403 and "web pages" in answer.json["error"], answer.json
        assert server.step(1).status == 200  # the sequence went on


def test_two_origins_are_refused(server):
    for second in (b"http://127.0.0.1", b""):
        data = server.raw(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nOrigin:\r\nOrigin: " + second + b"\r\n\r\n")
        assert data.startswith(b"HTTP/1.1 400 ") and b"two Origin fields" in data


def preflight(server, path, origin, method="POST", headers="content-type,authorization", port=None):
    fields = {"Origin": origin, "Access-Control-Request-Method": method}
    if headers:
        fields["Access-Control-Request-Headers"] = headers
    return server.request("OPTIONS", path, headers=fields, port=port)


def test_pages_of_the_setting_may_call_models(server):
    page = "https://app.example"
    answer = preflight(server, "/v2/models/fake/infer", page)
    assert (answer.status, answer.body) == (204, b"") and "Content-Length" not in answer.headers
    assert answer.headers["Access-Control-Allow-Origin"] == page
    assert answer.headers["Access-Control-Allow-Methods"] == "POST"
    assert answer.headers["Access-Control-Allow-Headers"] == "content-type,authorization"
    assert answer.headers["Access-Control-Allow-Credentials"] == "true"
    assert int(answer.headers["Access-Control-Max-Age"]) > 0
    assert answer.headers["Vary"] == "Origin, Access-Control-Request-Headers"
    for path in ("/v1/models/fake:predict", "/v2/models/fake/generate_stream", "/v2/repository/index"):
        assert preflight(server, path, page).status == 204
    assert preflight(server, "/v2/models/fake", page, "GET", None).status == 204

    answer = server.post("/v2/models/fake/infer", ROW, {"Origin": page})
    assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == page
    assert "Inference-Header-Content-Length" in answer.headers["Access-Control-Expose-Headers"]
    assert answer.headers["Vary"] == "Origin"
    # Errors can be read too.
    answer = server.post("/v2/models/fake/infer", {"inputs": []}, {"Origin": page})
    assert answer.status == 400 and answer.headers["Access-Control-Allow-Origin"] == page
    answer = server.get("/v2/models/nobody", headers={"Origin": page})
    assert answer.status == 404 and answer.headers["Access-Control-Allow-Origin"] == page
    # Caches keep answers to other pages, and to none, apart.
    for fields in ({}, {"Origin": EVIL}):
        answer = server.get("/v2/models/fake", headers=fields)
        assert answer.headers["Vary"] == "Origin" and "Access-Control-Allow-Origin" not in answer.headers


def test_other_pages_and_other_routes_get_no_permission(server):
    for origin in (EVIL, "null", "https://app.example:444", "https://app.example.evil.example"):
        answer = preflight(server, "/v2/models/fake/infer", origin)
        assert answer.status == 403 and "http_cors_origins" in answer.json["error"]
        assert "Access-Control-Allow-Origin" not in answer.headers
    page = "https://app.example"
    for path, method in (("/v2/repository/models/fake/unload", "POST"), ("/v2/logging", "POST"),
                         ("/v2/systemsharedmemory/region/r/register", "POST"), ("/v2/systemsharedmemory/status", "GET"),
                         ("/nowhere", "POST"), ("/v2/models/fake/infer", "DELETE")):
        answer = preflight(server, path, page, method)
        assert answer.status in (404, 405) and "Access-Control-Allow-Methods" not in answer.headers, path
    answer = server.get("/v2/systemsharedmemory/status", headers={"Origin": page})
    assert "Access-Control-Allow-Origin" not in answer.headers
    for listener in ("administration", "metrics"):
        answer = preflight(server, "/v2/models/fake/infer", page, port=server.ports[listener])
        assert answer.status in (404, 405) and "Access-Control-Allow-Origin" not in answer.headers
    assert server.request("OPTIONS", "/v2/models/fake/infer").status == 405
    assert server.request("PATCH", "/v2/models/fake/infer", headers={
        "Origin": page, "Access-Control-Request-Method": "POST"}).status == 405


def test_streams_of_tokens_have_the_fields_too(server):
    answer = server.post("/v2/models/fake/generate_stream", {"INPUT__0": [1, 2, 3, 4]}, {"Origin": "https://app.example"})
    assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"


def test_any_origin_and_none(tmp_path):
    with Server(f"fake={FAKE}", flags=["--http-cors-origins", "*"]) as server:
        answer = server.post("/v2/models/fake/infer", ROW, {"Origin": EVIL})
        assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in answer.headers
        answer = preflight(server, "/v2/models/fake/infer", "null")
        assert answer.status == 204 and answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in answer.headers
    with Server(f"fake={FAKE}") as server:
        answer = preflight(server, "/v2/models/fake/infer", EVIL)
        assert answer.status == 405 and "Access-Control-Allow-Origin" not in answer.headers
        answer = server.post("/v2/models/fake/infer", ROW, {"Origin": EVIL})
        assert answer.status == 200 and "Access-Control-Allow-Origin" not in answer.headers and "Vary" not in answer.headers
    status, output = run_serve(f"fake={FAKE}", "--http-cors-origins", "https://app.example/path")
    assert status != 0 and "http_cors_origins" in output


def test_no_get_ends_a_recording():
    with Server(f"fake={FAKE}") as server:
        url = "/v2/admin/models/fake/golden"
        admin = {"port": server.admin_port}
        assert server.post(f"{url}/record", {"requests": 5}, **admin).status == 200
        assert server.post("/v2/models/fake/infer", ROW).status == 200
        assert server.get(f"{url}/recording?now=true", **admin).status == 400
        assert server.get(url, **admin).json["recording"]["state"] == "running"
        assert server.post(f"{url}/recording", b"", {"Origin": EVIL}, **admin).status == 403
        answer = server.post(f"{url}/recording", b"", **admin)
        assert answer.status == 200 and answer.json["state"] == "ended"
        assert json.loads(server.get(url, **admin).body)["recording"]["state"] == "ended"
