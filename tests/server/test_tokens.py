"""Who may ask for what: every kind of route on every listener, with every kind of token."""
import os
import signal
import threading

import pytest
from admin_server import FAKE, GOOD, AdminServer
from serving import no_descriptors, run_serve, threads, until

INFER, METRICS, ADMIN, ALL = "infer-infer-infer-1", "metrics-metrics-1", "admin-admin-admin-1", "everything-everything"
TOKENS = f"""# who: what
infer {INFER}

metrics\t{METRICS}
 admin   {ADMIN}
infer,metrics,admin {ALL}
"""
BODY = '{"inputs": [{"name": "INPUT__0", "shape": [1, 4], "datatype": "FP32", "data": [1, 1, 1, 1]}]}'

# Method, path, body, and the scope without which it is refused; None: needs none; reading: admin or metrics.
ROUTES = {
    "inference": [
        ("GET", "/v2/health/live", None, None), ("GET", "/v2/health/ready", None, None), ("HEAD", "/v2/health/ready", None, None),
        ("GET", "/", None, "infer"), ("GET", "/v2", None, "infer"), ("GET", "/v2/models/fake", None, "infer"),
        ("GET", "/v2/models/fake/ready", None, "infer"), ("GET", "/v2/models/fake/config", None, "infer"),
        ("GET", "/v2/models/fake/stats", None, "infer"), ("POST", "/v2/repository/index", "", "infer"),
        ("POST", "/v2/models/fake/infer", BODY, "infer"), ("POST", "/v2/models/fake/versions/1/infer", BODY, "infer"),
        ("POST", "/v1/models/fake:call", '{"args": [[1, 1, 1, 1]]}', "infer"), ("POST", "/v2/models/%66ake/infer", BODY, "infer"),
        ("GET", "/nowhere", None, "infer"), ("DELETE", "/v2", None, "infer"),
        ("POST", "/v2/repository/models/fake/load", "{}", "admin"), ("POST", "/v2/repository/models/nobody/unload", "{}", "admin"),
    ],
    "metrics": [("GET", "/v2/health/live", None, None), ("GET", "/metrics", None, "metrics"), ("GET", "/nowhere", None, "metrics")],
    "administration": [
        ("GET", "/v2/health/live", None, None), ("GET", "/console", None, None), ("GET", "/console/console.js", None, None),
        ("GET", "/v2/admin/models/fake/weights", None, "reading"), ("GET", "/v2/admin/access", None, "reading"),
        ("GET", "/v2/admin/models/fake/weights/active", None, "admin"), ("GET", "/v2/logging", None, "reading"),
        ("POST", "/v2/logging", "{}", "admin"), ("POST", "/v2/repository/index", "", "reading"),
        ("POST", "/v2/admin/models/fake/weights/rollback", "", "admin"), ("POST", "/v2/admin/models/fake/weights", GOOD, "admin"),
        ("POST", "/v2/repository/models/fake/load", "{}", "admin"), ("GET", "/v2/models/fake", None, "reading"),
        ("GET", "/nowhere", None, "admin"),
    ],
}

GOOD_FOR = {"reading": ("admin", "metrics")}


@pytest.fixture(scope="module")
def token_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.write_text(TOKENS)
    return path


@pytest.fixture(scope="module")
def server(token_file):
    with AdminServer(f"fake={FAKE}", flags=["--token-file", str(token_file), "--http-admin", "true"]) as running:
        yield running


@pytest.mark.parametrize("listener", ROUTES)
def test_matrix(server, listener):
    port = server.ports[listener]

    def status(route, authorization):
        method, path, body, _ = route
        headers = {"Authorization": authorization} if authorization is not None else {}
        if method == "POST" and path.endswith("/weights"):
            headers["Content-Type"] = "application/octet-stream"
        answer = server.request(method, path, body, headers, port=port)
        assert (answer.status == 401) == ("WWW-Authenticate" in answer.headers)
        return answer.status

    for route in ROUTES[listener]:
        scope = route[3]
        for authorization in (None, "", "Bearer", f"Basic {ALL}", ALL, f"Token {ALL}"):
            got = status(route, authorization)
            assert (got == 401) == (scope is not None), (route[:2], authorization, got)
        wrong = [f"Bearer {t}" for t in (INFER[:-1], INFER + "1", INFER.upper(), "nonsense-nonsense", INFER + " " + ADMIN, "\xe9")]
        wrong += [f"Bearer {t}" for name, t in (("infer", INFER), ("metrics", METRICS), ("admin", ADMIN))
                  if name not in GOOD_FOR.get(scope, (scope,))]
        for authorization in wrong:
            got = status(route, authorization)
            assert (got == 403) == (scope is not None), (route[:2], authorization, got)
        right = {"infer": INFER, "metrics": METRICS, "admin": ADMIN}
        for token in (*(right[name] for name in GOOD_FOR.get(scope, (scope,)) if name), ALL):
            for scheme in ("Bearer ", "bearer ", "BEARER  "):
                assert status(route, scheme + token) not in (401, 403), route[:2]


def test_two_authorizations_are_refused(server):
    answer = server.raw(f"GET /v2 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ALL}\r\nAuthorization: Bearer {ALL}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_refused_body_is_not_read(server):
    with server.connect() as connection:
        connection.sendall(b"POST /v2/models/fake/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 100)
        assert connection.recv(1000).startswith(b"HTTP/1.1 401 ")


def test_no_token_is_logged(server):
    for token in (INFER, METRICS, ADMIN, ALL):
        assert token not in "".join(server.log)


def test_what_no_token_is_for_is_open(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"metrics {METRICS}\n")
    with AdminServer(f"fake={FAKE}", flags=["--token-file", str(path), "--metrics", "0.0.0.0:0"]) as server:
        assert server.ones()[0] and server.admin("GET", "fake/weights").status == 200
        assert server.get("/metrics", port=server.ports["metrics"]).status == 401
        assert server.get("/metrics", port=server.ports["metrics"], headers={"Authorization": f"Bearer {METRICS}"}).status == 200


def test_control_routes_of_the_public_listener_stay_closed(token_file):
    with AdminServer(f"fake={FAKE}", flags=["--token-file", str(token_file)]) as server:
        for token in (INFER, ADMIN, ALL):
            answer = server.post("/v2/repository/models/fake/unload", "{}", {"Authorization": f"Bearer {token}"})
            assert answer.status == 403


def test_web_pages_may_change_nothing_on_the_public_listener():
    with AdminServer(f"fake={FAKE}", flags=["--http-admin", "true"]) as server:
        page = {"Origin": "http://evil.example"}
        assert server.post("/v2/repository/models/fake/unload", "{}", page).status == 403
        assert server.post("/v2/models/fake/infer", BODY, page).status == 200
        assert server.post("/v2/repository/models/fake/load", "{}").status == 200


@pytest.mark.parametrize("flags, text", [
    (["--metrics", "0.0.0.0:0"], "metrics_open"), (["--admin", "0.0.0.0:0"], "admin_token_file"),
    (["--metrics", "[::]:0"], "metrics_open"), (["--admin", "[::]:0"], "admin_token_file"),
])
def test_other_addresses_need_a_token(tmp_path, flags, text):
    status, output = run_serve(f"fake={FAKE}", *flags)
    assert status != 0 and text in output
    path = tmp_path / "tokens"
    path.write_text(f"infer {INFER}\n")  # its scope is not enough
    status, output = run_serve(f"fake={FAKE}", *flags, "--token-file", str(path))
    assert status != 0 and text in output


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
@pytest.mark.parametrize("flag, key, scope, other", [("--http-admin", "http_admin", "admin", "infer"),
                                                     ("--allow-shared-memory", "allow_shared_memory", "infer", "admin")])
def test_what_others_could_do_to_the_server_needs_a_token(tmp_path, host, flag, key, scope, other):
    """On the public listener, control routes and shared memory need more than network access."""
    token_file = tmp_path / "tokens"
    for text in (None, f"{other} {INFER}\n", f"metrics {INFER}\n"):
        if text:
            token_file.write_text(text)
        status, output = run_serve(f"fake={FAKE}", "--http", f"{host}:0", flag, "true", *(["--token-file", token_file] if text else []))
        assert status != 0 and f"setting {key}" in output and "token of scope " + scope in output, output
    token_file.write_text(f"{scope} {INFER}\n")
    for flags in (["--http", f"{host}:0", "--token-file", token_file], ["--http", "127.0.0.1:0"], ["--http", "[::1]:0"]):
        with AdminServer(f"fake={FAKE}", flags=[*flags, flag, "true"], wait=False) as server:
            assert server.ports["inference"]
    with AdminServer(f"fake={FAKE}", flags=["--http", f"{host}:0"]) as server:  # without these features, the port may be open
        assert server.post("/v2/models/fake/infer", BODY).status == 200


def test_metrics_may_be_opened():
    with AdminServer(f"fake={FAKE}", flags=["--metrics", "0.0.0.0:0", "--metrics-open", "true"]) as server:
        assert server.get("/metrics", port=server.ports["metrics"]).status == 200


@pytest.mark.parametrize("text", ["", "# nothing\n", INFER, "infer short\n", f"infer,what {INFER}\n", f", {INFER}\n", f"infer, {INFER}\n",
                                  f"infer {INFER} more-of-it-than-one\n", f"infer {'x' * 5000}\n", f"infer {INFER}\x01\n", "x" * 2_000_000],
                         ids=range(11))
def test_wrong_token_files(tmp_path, text):
    path = tmp_path / "tokens"
    path.write_text(text)
    status, output = run_serve(f"fake={FAKE}", "--token-file", str(path))
    assert status != 0 and "token_file" in output and INFER not in output


def test_rotation_under_load(tmp_path):
    path = tmp_path / "tokens"

    def write(*tokens):
        (tmp_path / "next").write_text("".join(f"infer {t}\n" for t in tokens))
        os.replace(tmp_path / "next", path)

    def settle(how):
        if how == "signal":
            server.process.send_signal(signal.SIGHUP)
        until(lambda: count() != before)

    def count():
        return "".join(server.log).count("tokens ")

    old, new = "old-old-old-old-old-1", "new-new-new-new-new-2"
    write(old)
    with AdminServer(f"fake={FAKE}", flags=["--token-file", str(path)]) as server:
        token, stop = [old], threading.Event()

        def ask():
            while not stop.is_set():
                used = token[0]
                answer = server.post("/v2/models/fake/infer", BODY, {"Authorization": f"Bearer {used}"})
                assert answer.status == 200 or used != token[0]  # a request may arrive after its token was removed

        with threads(*[ask] * 4, stop=stop):
            for how in ("signal", "time"):
                before = count()
                write(old, new)
                settle(how)
                until(lambda: server.get("/v2", headers={"Authorization": f"Bearer {new}"}).status == 200)
                token[0] = new
                before = count()
                write(new)
                settle(how)
                until(lambda: server.get("/v2", headers={"Authorization": f"Bearer {old}"}).status == 403)
                old, new = new, old
            # The server ignores files that have no valid list of tokens, or would leave routes without a token.
            for text in ("", "infer x\n", f"admin {ADMIN}\n"):
                before = count()
                path.write_text(text)
                settle("signal")
                assert server.get("/v2").status == 401
                assert server.get("/v2", headers={"Authorization": f"Bearer {old}"}).status == 200
        assert "stay as they were" in "".join(server.log)


def test_tokens_that_could_not_be_read_are_read_later(tmp_path):
    path, old, new = tmp_path / "tokens", "old-old-old-old-old-1", "new-new-new-new-new-2"
    path.write_text(f"infer {old}\n")
    with AdminServer(f"fake={FAKE}", flags=["--token-file", str(path)]) as server:
        def status(token):
            return server.get("/v2", headers={"Authorization": f"Bearer {token}"}).status

        with no_descriptors(server):
            path.write_text(f"infer {new}\n")
            server.process.send_signal(signal.SIGHUP)
            until(lambda: "tokens stay as they were" in "".join(server.log))
        # One signal is enough.
        until(lambda: status(new) == 200)
        assert status(old) == 403
        assert "".join(server.log).count("tokens stay as they were") == 1
