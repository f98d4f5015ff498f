"""Models that come, go and change while others serve: Triton's control routes, and watched directories."""
import os
import shutil

import pytest
from serving import FAKE_MODELS, PACKAGES, SLEEP_INPUT, Clients, Server, fake_expected, numbers, threads, until

PLAIN = FAKE_MODELS / "fake_model.so"
FOLDED = FAKE_MODELS / "fake_folded.so"  # multiplies by twice as much
ROW = [1.0, 2.0, 3.0, 4.0]
INPUT = {"INPUT__0": ("FP32", [1, 4], ROW)}
ANSWER = {PLAIN: fake_expected(ROW), FOLDED: [2 * x * (1 + i) + 10 * i for i, x in enumerate(ROW)]}


def put(package, path):
    """Renames a copy into place, which is how packages should be replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(package, path.with_name(".new"))
    os.rename(path.with_name(".new"), path)


def control(server, model, action, body=b"", port=None):
    return server.post(f"/v2/repository/models/{model}/{action}", body, port=port or server.admin_port)


def load(server, model, body=b""):
    answer = control(server, model, "load", body)
    assert (answer.status, answer.body) == (200, b""), answer.body
    return answer


def unload(server, model):
    answer = control(server, model, "unload", {"parameters": {"unload_dependents": False}})
    assert (answer.status, answer.body) == (200, b""), answer.body


def index(server):
    return {(m["name"], m["version"]): (m["state"], m.get("reason", "")) for m in
            server.post("/v2/repository/index", b"").json}


def result(server, model, version=None):
    path = f"/v2/models/{model}" + (f"/versions/{version}" if version else "") + "/infer"
    answer = server.post(path, numbers(ROW))
    return answer.json["outputs"][0]["data"] if answer.status == 200 else answer.status


@pytest.fixture()
def repository(tmp_path):
    put(PLAIN, tmp_path / "a.pt2")
    put(PLAIN, tmp_path / "b/1/model.pt2")
    return tmp_path


@pytest.fixture()
def server(repository):
    with Server(repository, flags=["--versions", "all"]) as running:
        yield running


def test_unload_and_load(server, repository):
    assert index(server) == {("a", "1"): ("READY", ""), ("b", "1"): ("READY", "")}
    unload(server, "a")
    assert index(server)[("a", "1")] == ("UNAVAILABLE", "unloaded")
    answer = server.infer("a", INPUT)
    assert answer.status == 404 and answer.json["error"] == "Request for unknown model: 'a' has no available versions"
    assert result(server, "a", "1") == 503
    assert server.get("/v2/models/a/ready").status == 503
    assert server.get("/v2/models/a").status == 404
    assert [m["name"] for m in server.post("/v2/repository/index", {"ready": True}).json] == ["b"]
    assert server.get("/v2/health/ready").status == 200  # an unloaded model does not make the server unready
    unload(server, "a")
    assert result(server, "b") == ANSWER[PLAIN]
    load(server, "a", {"parameters": {}})
    assert index(server)[("a", "1")] == ("READY", "")
    assert result(server, "a") == ANSWER[PLAIN]
    extensions = server.get("/v2").json["extensions"]
    assert "model_repository" in extensions and "model_repository(unload_dependents)" in extensions


def test_load_takes_what_is_new_and_what_changed(server, repository):
    put(FOLDED, repository / "b/2/model.pt2")
    loaded = server.metrics()['nv_model_load_duration_secs{model="b",version="1"}']
    load(server, "b")
    assert index(server)[("b", "1")] == index(server)[("b", "2")] == ("READY", "")
    assert result(server, "b") == result(server, "b", "2") == ANSWER[FOLDED]
    assert result(server, "b", "1") == ANSWER[PLAIN]
    assert server.metrics()['nv_model_load_duration_secs{model="b",version="1"}'] == loaded  # b was not loaded again
    put(FOLDED, repository / "b/1/model.pt2")
    load(server, "b")
    assert result(server, "b", "1") == ANSWER[FOLDED]
    (repository / "b/2/model.pt2").unlink()
    load(server, "b")
    assert index(server)[("b", "2")] == ("UNAVAILABLE", "unloaded")
    assert server.get("/v2/models/b").json["versions"] == ["1"]
    load(server, "b")  # the file is unchanged, but an explicit load always loads
    assert server.metrics()['nv_model_load_duration_secs{model="b",version="1"}'] != loaded
    put(PLAIN, repository / "several.x.pt2")
    load(server, "several.x")
    assert result(server, "several.x") == ANSWER[PLAIN]


def test_latest_version_takes_over(repository):
    with Server(repository) as server, Clients(server, "b") as clients:
        put(FOLDED, repository / "b/7/model.pt2")
        load(server, "b")
        assert server.get("/v2/models/b").json["versions"] == ["7"]
        assert index(server)[("b", "1")] == ("UNAVAILABLE", "unloaded")
        assert result(server, "b") == ANSWER[FOLDED]
    assert list(clients.counts) == [200]
    assert clients.answers <= {tuple(a) for a in ANSWER.values()}


def test_models_of_one_package(tmp_path):
    shutil.copy(PACKAGES / "several.pt2", tmp_path / "several.pt2")
    with Server(tmp_path) as server:
        unload(server, "several.calls")
        assert server.get("/v2/models/several.checked/ready").status == 200
        load(server, "several.calls")
        assert server.get("/v2/models/several.calls/ready").status == 200
        answer = control(server, "several", "load")
        assert answer.status == 404 and "no package of a model 'several'" in answer.json["error"]
        assert control(server, "several.none", "load").status == 404
        assert len(index(server)) == 4


def test_single_packages_are_loaded_again(repository):
    with Server(f"x={repository / 'a.pt2'}", repository / "b/1/model.pt2") as server:
        put(FOLDED, repository / "a.pt2")
        assert result(server, "x") == ANSWER[PLAIN]
        load(server, "x")
        assert result(server, "x") == ANSWER[FOLDED]
        load(server, "model")
        assert control(server, "a", "load").status == 404


def test_a_server_whose_models_were_all_unloaded_is_not_ready(server, repository):
    unload(server, "a")
    assert server.get("/v2/health/ready").status == 200
    unload(server, "b")
    assert server.get("/v2/health/ready").status == 503
    assert server.get("/v2/health/ready").json == {"ready": False}
    load(server, "b")
    assert server.get("/v2/health/ready").status == 200


def test_a_package_named_beside_a_watched_repository_stays(repository, tmp_path_factory):
    own = tmp_path_factory.mktemp("named") / "own.pt2"
    shutil.copy(PLAIN, own)
    with Server(own, repository, flags=["--versions", "all", "--watch", "20ms"]) as server:
        (repository / "a.pt2").unlink()
        until(lambda: ("a", "1") not in index(server))
        assert result(server, "own") == ANSWER[PLAIN]
        own.unlink()
        (repository / "b/1/model.pt2").unlink()
        until(lambda: ("b", "1") not in index(server))
        assert result(server, "own") == ANSWER[PLAIN]


def test_a_server_whose_packages_are_all_gone_is_not_ready(repository):
    with Server(repository, flags=["--versions", "all", "--watch", "50ms"]) as server:
        (repository / "a.pt2").rename(repository / "away")
        (repository / "b/1/model.pt2").unlink()
        (repository / "b/1").rmdir()
        (repository / "b").rmdir()
        until(lambda: index(server) == {})
        assert server.get("/v2/health/ready").status == 503
        (repository / "away").rename(repository / "a.pt2")
        until(lambda: server.get("/v2/health/ready").status == 200)
        assert result(server, "a") == ANSWER[PLAIN]


def test_a_failed_load_leaves_the_old_serving(server, repository):
    with Clients(server, "a") as clients:
        (repository / ".new").write_bytes(PLAIN.read_bytes()[:2000])
        os.rename(repository / ".new", repository / "a.pt2")
        for _ in range(3):
            answer = control(server, "a", "load")
            assert answer.status in (400, 500) and answer.json["error"]
            state, reason = index(server)[("a", "1")]
            assert state == "READY" and reason == answer.json["error"]
            assert result(server, "a") == ANSWER[PLAIN]
        assert server.get("/v2/health/ready").status == 200
        put(FOLDED, repository / "a.pt2")
        load(server, "a")
        assert index(server)[("a", "1")] == ("READY", "")
        assert result(server, "a") == ANSWER[FOLDED]
    assert list(clients.counts) == [200]
    (repository / "d.pt2").write_bytes(b"nothing that could be a package")
    answer = control(server, "d", "load")
    assert answer.status == 501 and "d.pt2" in answer.json["error"]
    assert index(server)[("d", "1")] == ("UNAVAILABLE", answer.json["error"])
    assert server.get("/v2/health/ready").status == 200
    assert server.infer("d", INPUT).status == 503
    answer = control(server, "d.x", "load")
    assert answer.status == 501
    assert ("d.x", "1") not in index(server)


def test_a_reload_that_fails_after_the_package_was_opened(server, repository):
    """The new package imports a function that does not exist."""
    content = PLAIN.read_bytes().replace(b"\0aoti_torch_empty_strided\0", b"\0aoti_torch_empty_nothing\0")
    assert content != PLAIN.read_bytes()
    (repository / ".new").write_bytes(content)
    os.rename(repository / ".new", repository / "a.pt2")
    answer = control(server, "a", "load")
    assert answer.status == 400 and "aoti_torch_empty_nothing" in answer.json["error"]
    assert index(server)[("a", "1")] == ("READY", answer.json["error"])
    assert result(server, "a") == ANSWER[PLAIN]


def test_a_package_that_cannot_be_opened_at_the_start(repository):
    (repository / "d.pt2").write_bytes(b"nothing that could be a package")
    with Server(repository, flags=["--exit-on-error", "false"], wait=False) as server:
        until(lambda: index(server)[("d", "1")][0] == "UNAVAILABLE")
        assert "d.pt2" in index(server)[("d", "1")][1]
        assert result(server, "a") == ANSWER[PLAIN]
        assert server.get("/v2/health/ready").status == 503
        put(FOLDED, repository / "d.pt2")
        load(server, "d")
        assert server.get("/v2/health/ready").status == 200
        assert result(server, "d") == ANSWER[FOLDED]
    (repository / "d.pt2").write_bytes(b"nothing that could be a package")
    with pytest.raises(RuntimeError, match="d.pt2"):
        Server(repository)


def test_requests_under_way_finish_on_what_they_began_with(server, repository):
    answers = []

    def ask():
        """Sends requests until the model is gone."""
        while not answers or answers[-1].status == 200:
            answers.append(server.post("/v2/models/a/infer", numbers([SLEEP_INPUT, 2, 3, 4])))

    with threads(*[ask] * 8):
        until(lambda: answers)
        put(FOLDED, repository / "a.pt2")
        control(server, "a", "unload")
    # Requests under way finished on the old model.
    assert {a.status for a in answers} == {200, 404}
    assert all(a.json["outputs"][0]["data"][1] == ANSWER[PLAIN][1] for a in answers if a.status == 200)
    assert result(server, "a") == 404
    control(server, "a", "load")
    assert result(server, "a") == ANSWER[FOLDED]


def test_clients_of_one_model_do_not_notice_another(server, repository):
    with Clients(server, "a", 8) as clients:
        for i in range(50):
            if i % 3 == 0:
                put(FOLDED if i % 2 else PLAIN, repository / "b/1/model.pt2")
            load(server, "b")
            if i % 5 == 0:
                unload(server, "b")
    assert list(clients.counts) == [200] and clients.counts[200] > 100
    assert clients.answers == {tuple(ANSWER[PLAIN])}


def test_clients_of_a_model_that_comes_and_goes(server):
    """Under unloading only 200, 404 and 503 may appear; under reloading only 200."""
    with Clients(server, "b", 8) as clients:
        for _ in range(30):
            load(server, "b")
    assert list(clients.counts) == [200]
    with Clients(server, "b", 8) as clients:
        for _ in range(30):
            unload(server, "b")
            load(server, "b")
    assert set(clients.counts) <= {200, 404, 503} and {200, 404} <= set(clients.counts)


def test_many_at_once(server):
    """Loads and unloads of the same models from many threads: each is answered, the last word is READY."""
    def client(model):
        for action in ("unload", "load") * 10:
            answer = control(server, model, action)
            assert answer.status == 200, answer.body

    with threads(*[lambda: client("a"), lambda: client("b")] * 8):
        pass
    assert result(server, "a") == result(server, "b") == ANSWER[PLAIN]


def test_loading_holds_nobody_up(tmp_path):
    """A load that takes its time (a package whose checksums are verified) delays neither health nor other models."""
    put(PLAIN, tmp_path / "a.pt2")
    put(FAKE_MODELS / "fake_large.so", tmp_path / "large.pt2")
    with Server(tmp_path) as server, Clients(server, "a", 2) as clients:
        for _ in range(10):
            load(server, "large")
            assert server.get("/v2/health/ready").status == 200
    assert list(clients.counts) == [200]


def test_loading_again_and_again_keeps_nothing(server, repository):
    def measure():
        files = os.listdir(f"/proc/{server.process.pid}/fd")
        threads = os.listdir(f"/proc/{server.process.pid}/task")
        with open(f"/proc/{server.process.pid}/maps") as maps:
            lines = maps.read().splitlines()
        return len(files), len(threads), sum("memfd" in line or ".pt2" in line for line in lines)

    def cycle(count):
        for _ in range(count):
            load(server, "a")
            unload(server, "b")
            load(server, "b")

    cycle(20)
    before = measure()
    server.assert_settles(lambda: cycle(50), 1024)
    until(lambda: all(now <= then for now, then in zip(measure(), before)))


def test_statistics_outlive_a_reload_and_end_with_an_unload(server):
    def success():
        return server.metrics().get('nv_inference_request_success{model="b",version="1"}')

    for _ in range(3):
        server.infer("b", INPUT)
    load(server, "b")
    server.infer("b", INPUT)
    assert success() == 4
    assert server.get("/v2/models/b/stats").json["model_stats"][0]["inference_stats"]["success"]["count"] == 4
    unload(server, "b")
    assert not [key for key in server.metrics() if 'model="b"' in key]
    assert {m["name"] for m in server.get("/v2/models/stats").json["model_stats"]} == {"a"}
    load(server, "b")
    assert success() == 0


def test_control_routes_are_closed_on_the_public_listener(repository):
    with Server(repository) as server:
        for action in ("load", "unload"):
            answer = control(server, "a", action, port=server.port)
            assert answer.status == 403 and "admin" in answer.json["error"]
        # Refused before the body is read.
        head = b"POST /v2/repository/models/a/load HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
        assert server.raw(head).startswith(b"HTTP/1.1 403 ")
        assert server.get("/v2/repository/models/a/load").status == 405
        assert control(server, "a", "load", port=server.ports["metrics"]).status == 404
        assert result(server, "a") == ANSWER[PLAIN]
    with Server(repository, flags=["--http-admin", "true"]) as server:
        assert control(server, "a", "unload", port=server.port).status == 200
        assert control(server, "a", "load", port=server.port).status == 200
        assert control(server, "a", "load").status == 200


@pytest.mark.parametrize("name, status", [
    ("nope", 404), ("A", 404), ("a.pt2", 404), ("a..b", 404), ("1", 404), ("model", 404), ("outside", 404),
    ("..", 400), (".", 400), ("%2e%2e", 400), ("..%2foutside", 400), ("../outside", 400), (".hidden", 400),
    ("a%00", 400), ("%00", 400), ("a%0a", 400), ("a%20b", 400), ("%20", 400), ("a%5cb", 400), ("%c3%28", 400),
    ("%ff", 400), ("*", 400), ("", 400), ("a" * 128, 404), ("a" * 129, 400), ("a" * 5000, 400), ("a" * 20000, 431),
    ("a%2fb", 400), ("%2fetc%2fpasswd", 400), ("b%2f1", 400), ("b/1", 404), ("%F0%9F%94%A5", 400),
])
def test_hostile_names(tmp_path_factory, name, status):
    root = tmp_path_factory.mktemp("names")
    put(PLAIN, root / "outside.pt2")
    put(PLAIN, root / "repository/a.pt2")
    put(PLAIN, root / "repository/b/1/model.pt2")
    put(PLAIN, root / "repository/.hidden.pt2")
    with Server(root / "repository") as server:
        before = index(server)
        for action in ("load", "unload"):
            answer = control(server, name, action)
            assert answer.status == status, answer.body
            assert answer.json["error"]
        assert index(server) == before
        assert server.get("/v2/health/live").status == 200


@pytest.mark.parametrize("action, body, text", [
    ("load", b'{"parameters":{"file:1/model.pt2":"AAAA"}}', "file:1/model.pt2"),
    ("load", b'{"parameters":{"config":"{}","file:../../x":"AAAA"}}', "config"),
    ("load", b'{"parameters":{"config":"/etc/passwd"}}', "config"),
    ("load", b'{"parameters":{"colour":"red"}}', "colour"),
    ("load", b'{"parameters":7}', "parameters"),
    ("load", b"[]", "an object"),
    ("load", b"{", ""),
    ("load", b"x", ""),
    ("load", b'{"x":' + b"[" * 200 + b"]" * 200 + b"}", "nested"),
    ("unload", b'{"parameters":{"unload_dependents":1}}', "unload_dependents"),
    ("unload", b'{"parameters":{"colour":true}}', "colour"),
])
def test_wrong_requests(server, action, body, text):
    answer = control(server, "a", action, body)
    assert answer.status == 400 and text in answer.json["error"]
    assert index(server)[("a", "1")] == ("READY", "")
    assert control(server, "a", action, b" {} ").status == 200


def test_ending_while_loading(repository):
    with Server(repository) as server:
        statuses = []

        def client():
            try:
                statuses.append(control(server, "a", "load").status)
            except OSError:
                pass  # the server had stopped listening

        with threads(*[client] * 50):
            until(lambda: statuses)
            assert server.stop() == 0
        assert set(statuses) <= {200, 503}


class TestWatch:
    FLAGS = ["--watch", "150ms", "--versions", "all"]

    def test_comes_changes_goes(self, repository):
        with Server(repository, flags=self.FLAGS) as server:
            put(FOLDED, repository / "c.pt2")
            put(FOLDED, repository / "b/2/model.pt2")
            until(lambda: result(server, "c") == ANSWER[FOLDED] and result(server, "b") == ANSWER[FOLDED])
            assert result(server, "b", "1") == ANSWER[PLAIN]
            with Clients(server, "c") as clients:
                put(PLAIN, repository / "c.pt2")
                until(lambda: result(server, "c") == ANSWER[PLAIN])
            assert list(clients.counts) == [200]
            (repository / "c.pt2").unlink()
            until(lambda: ("c", "1") not in index(server))
            assert result(server, "c") == 404
            (repository / "b/2/model.pt2").unlink()
            until(lambda: index(server)[("b", "2")] == ("UNAVAILABLE", "unloaded"))
            shutil.rmtree(repository / "b")
            until(lambda: ("b", "1") not in index(server))
            assert index(server) == {("a", "1"): ("READY", "")}

    def test_same_size_and_time_but_another_file(self, repository):
        """A rename is noticed even if size and time are the same."""
        old = (repository / "a.pt2").stat()
        with Server(repository, flags=self.FLAGS) as server:
            content = bytearray(PLAIN.read_bytes())
            (repository / ".new").write_bytes(content)
            os.utime(repository / ".new", ns=(old.st_atime_ns, old.st_mtime_ns))
            loaded = server.metrics()['nv_model_load_duration_secs{model="a",version="1"}']
            os.rename(repository / ".new", repository / "a.pt2")
            assert (repository / "a.pt2").stat().st_size == old.st_size
            until(lambda: server.metrics()['nv_model_load_duration_secs{model="a",version="1"}'] != loaded)

    def test_unfinished_files_are_left_alone(self, repository):
        with Server(repository, flags=["--watch", "400ms", "--versions", "all"]) as server:
            content = FOLDED.read_bytes()
            for name in ("c.pt2.tmp", ".c.pt2", "c.part"):
                (repository / name).write_bytes(content)
            with open(repository / "d.pt2", "wb", buffering=0) as file:
                file.write(content[:1000])
                # The server takes what two looks find unchanged. The file grows all the while; another one does not.
                put(PLAIN, repository / "e.pt2")
                while ("e", "1") not in (names := index(server)):
                    assert set(names) == {("a", "1"), ("b", "1")}
                    file.write(content[file.tell():][:16])
                assert ("d", "1") not in index(server) and 1000 < file.tell() < len(content)
                file.write(content[file.tell():])
            until(lambda: result(server, "d") == ANSWER[FOLDED])
            assert {name for name, _ in index(server)} == {"a", "b", "d", "e"}
            assert not [line for line in server.log if "cannot" in line]

    def test_a_bad_package_leaves_the_old_serving(self, repository):
        with Server(repository, flags=self.FLAGS) as server:
            (repository / ".new").write_bytes(b"no package")
            os.rename(repository / ".new", repository / "a.pt2")
            (repository / "e.pt2").write_bytes(b"no package")
            until(lambda: index(server)[("a", "1")][1] and ("e", "1") in index(server))
            assert index(server)[("a", "1")][0] == "READY" and index(server)[("e", "1")][0] == "UNAVAILABLE"
            assert result(server, "a") == ANSWER[PLAIN]
            put(FOLDED, repository / "a.pt2")
            until(lambda: result(server, "a") == ANSWER[FOLDED])
            assert index(server)[("a", "1")] == ("READY", "")

    def test_what_was_unloaded_stays_so_until_it_changes(self, repository):
        with Server(repository, flags=self.FLAGS) as server:
            unload(server, "a")
            put(PLAIN, repository / "c.pt2")
            until(lambda: result(server, "c") == ANSWER[PLAIN])  # found by a later look
            assert result(server, "a") == 404
            put(FOLDED, repository / "a.pt2")
            until(lambda: result(server, "a") == ANSWER[FOLDED])

    def test_several_models_of_a_package(self, repository):
        with Server(repository, flags=self.FLAGS) as server:
            put(PACKAGES / "several.pt2", repository / "s.pt2")
            until(lambda: ("s.calls", "1") in index(server))
            until(lambda: all(state == ("READY", "") for state in index(server).values()))
            put(PLAIN, repository / "s.pt2")
            until(lambda: result(server, "s") == ANSWER[PLAIN])
            until(lambda: {name for name, _ in index(server)} == {"a", "b", "s"})

    def test_without_it_nothing_is_noticed(self, repository):
        with Server(repository) as server, Server(repository, flags=self.FLAGS) as other:
            put(PLAIN, repository / "c.pt2")
            until(lambda: ("c", "1") in index(other))
            assert ("c", "1") not in index(server)


class TestTritonClient:
    @pytest.mark.parametrize("public", [False, True])
    def test_load_and_unload(self, repository, public):
        httpclient = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
        utils = pytest.importorskip("tritonclient.utils")
        with Server(repository, flags=["--http-admin", "true"] if public else []) as server:
            port = server.port if public else server.admin_port
            with httpclient.InferenceServerClient(f"127.0.0.1:{port}") as client:
                states = {m["name"]: m["state"] for m in client.get_model_repository_index()}
                assert states == {"a": "READY", "b": "READY"}
                client.unload_model("a")
                client.unload_model("b", unload_dependents=True)
                assert not client.is_model_ready("a")
                assert {m["reason"] for m in client.get_model_repository_index()} == {"unloaded"}
                client.load_model("a")
                assert client.is_model_ready("a")
                with pytest.raises(utils.InferenceServerException, match="no package of a model 'nope'"):
                    client.load_model("nope")
                with pytest.raises(utils.InferenceServerException, match="settings are those of the server"):
                    client.load_model("a", config="{}")
                with pytest.raises(utils.InferenceServerException, match="unknown model"):
                    client.unload_model("nope")
        with Server(repository) as server, httpclient.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
            with pytest.raises(utils.InferenceServerException, match="administration listener"):
                client.load_model("a")

    def test_aio(self, repository):
        aio = pytest.importorskip("tritonclient.http.aio", reason="tritonclient[http] is not installed")
        import asyncio

        async def run(port):
            async with aio.InferenceServerClient(f"127.0.0.1:{port}") as client:
                await client.unload_model("a")
                assert not await client.is_model_ready("a")
                await asyncio.gather(client.load_model("a"), client.load_model("b"), client.load_model("a"))
                assert await client.is_model_ready("a")
                assert len(await client.get_model_repository_index()) == 2

        with Server(repository) as server:
            asyncio.run(run(server.admin_port))


# The administrator of this machine reads every folder, unless these capabilities are taken away.
CONFINED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.fixture()
def unreadable(tmp_path):
    """A repository with a model and, on request, a folder that cannot be read."""
    put(PLAIN, tmp_path / "good.pt2")
    (tmp_path / "private").mkdir(mode=0)
    yield tmp_path
    (tmp_path / "private").chmod(0o700)


def test_a_folder_that_cannot_be_read_concerns_one_model(unreadable):
    with Server(unreadable, flags=["--exit-on-error", "false"], prefix=CONFINED, wait=False) as server:
        until(lambda: index(server)["good", "1"][0] == "READY")
        until(lambda: index(server)["private", "1"][0] == "UNAVAILABLE")
        assert "cannot read directory" in index(server)["private", "1"][1] and "Permission denied" in index(server)["private", "1"][1]
        assert result(server, "good") == ANSWER[PLAIN] and result(server, "private") == 503
        assert server.get("/v2/health/ready").status == 503
        (unreadable / "private").chmod(0o700)
        put(PLAIN, unreadable / "private/1/model.pt2")
        load(server, "private")
        assert result(server, "private") == ANSWER[PLAIN] and server.get("/v2/health/ready").status == 200


def test_a_folder_that_cannot_be_read_ends_the_server_with_its_name(unreadable):
    with pytest.raises(RuntimeError, match="cannot read directory: .*/private: Permission denied"):
        Server(unreadable, prefix=CONFINED)


def test_watching_goes_on_beside_a_folder_that_cannot_be_read(unreadable):
    (unreadable / "private").rmdir()
    with Server(unreadable, flags=["--watch", "50ms"], prefix=CONFINED) as server:
        put(PLAIN, unreadable / "private/1/model.pt2")
        until(lambda: result(server, "private") == ANSWER[PLAIN])
        (unreadable / "private").chmod(0)
        # A model that was loaded goes on.
        until(lambda: "Permission denied" in index(server)["private", "1"][1])
        assert result(server, "private") == ANSWER[PLAIN]
        put(PLAIN, unreadable / "new.pt2")
        until(lambda: result(server, "new") == ANSWER[PLAIN])
        put(FOLDED, unreadable / "good.pt2")
        until(lambda: result(server, "good") == ANSWER[FOLDED])
        (unreadable / "new.pt2").unlink()
        until(lambda: ("new", "1") not in index(server))
        put(FOLDED, unreadable / ".put.pt2")
        (unreadable / "private").chmod(0o700)
        put(FOLDED, unreadable / "private/1/model.pt2")
        until(lambda: result(server, "private") == ANSWER[FOLDED])
        assert index(server)["private", "1"] == ("READY", "")


def test_on_demand_a_folder_that_cannot_be_read_concerns_one_model(unreadable):
    with Server(unreadable, flags=["--load", "demand"], prefix=CONFINED) as server:
        assert result(server, "good") == ANSWER[PLAIN]
        answer = server.post("/v2/models/private/infer", numbers(ROW))
        assert answer.status == 503 and b"cannot read directory" in answer.body
