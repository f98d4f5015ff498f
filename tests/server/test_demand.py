"""Models that are loaded on demand (docs/lazy_loading.md): what is known, loaded, waits, goes and stays."""
import contextlib
import http.client
import json
import random
import socket

import pytest
from admin_server import LARGE, AdminServer
from admin_server import expected as pushed_answer
from demand_serving import (ANSWER, BATCHED, FOLDED, ONES, PLAIN, ROW, STATE, DemandServer, HeldDemandServer, budget_for, fill, folder,
                            loads_that_run, put)
from serving import PACKAGES, SANITIZED, numbers, run_serve, threads, until
from weights_files import fake_weights

assert folder  # a fixture


# What is known

def test_models_are_known_by_name_and_loaded_by_a_request(folder):
    put(PLAIN, folder / "a.pt2")
    put(PLAIN, folder / "b/1/model.pt2")
    put(FOLDED, folder / "b/2/model.pt2")
    with DemandServer(folder) as server:
        assert server.states() == {name: ("known", "not loaded: a request for it loads it") for name in "ab"}
        assert server.post("/v2/repository/index", {"ready": True}).json == []
        assert server.get("/v2/health/ready").status == 200
        ready = server.get("/v2/models/a/ready")
        assert (ready.status, ready.json) == (200, {"name": "a", "ready": True, "on_demand": "known"})
        status = server.get("/v1/models/b")
        assert status.status == 200 and status.json["model_version_status"][0]["state"] == "AVAILABLE"
        assert sorted(server.get("/v1/models").json["models"]) == ["a", "b"]
        assert server.get("/v2/models/a/stats").json == {"model_stats": []}
        assert server.value("demand_models", state="known") == 2 and server.loads() == 0 and server.bytes() == 0
        server.check("a")
        assert server.state("a") == "loaded" and server.state("b") == "known"
        assert server.get("/v2/models/a/ready").json == {"name": "a", "ready": True}
        assert server.loads() == 1 and server.bytes() > 0
        assert server.value("demand_models", state="known") == 1
        assert server.value("demand_models", state="loaded") == 1
        assert server.value("demand_load_seconds_total") > 0
        server.check("a")
        assert server.loads() == 1
        assert server.infer("b", ONES).json["model_version"] == "2"
        assert server.infer("b/versions/1", ONES).status == 404
        for name in ("c", "a.x", "b.1"):
            assert server.ask(name).status == 404
        assert server.get("/v2/models/c/ready").status == 404
        assert server.get("/v2/health/ready").status == 200


@pytest.mark.parametrize("path", ["/v2/models/{}", "/v2/models/{}/config", "/v2/models/{}/versions/1",
                                  "/v1/models/{}/metadata"])
def test_what_describes_a_model_loads_it(folder, path):
    fill(folder, 2)
    with DemandServer(folder) as server:
        answer = server.get(path.format("m0"))
        assert answer.status == 200, answer.body
        assert server.loaded() == {"m0"}


def test_every_protocol_of_http(folder):
    fill(folder, 4, BATCHED)
    with DemandServer(folder) as server:
        call = server.post("/v1/models/m0:call", {"args": [[ROW]]})
        assert call.status == 200 and call.json == [ANSWER], call.body
        assert server.loaded() == {"m0"}
        assert server.post("/v1/models/m1:predict", {"instances": [ROW]}).json == {"predictions": [ANSWER]}
        generate = server.post("/v2/models/m2/generate", {"INPUT__0": ROW})
        assert generate.status == 200, generate.body
        server.check("m3")
        assert server.loaded() == {"m0", "m1", "m2", "m3"}


def test_a_package_of_several_models(folder):
    put(PACKAGES / "several.pt2", folder / "several.pt2")
    with DemandServer(folder) as server:
        assert set(server.states()) == {"several"}
        answer = server.ask("several.none")
        assert answer.status == 404 and "has other models" in answer.json["error"]
        assert "several.calls" in server.states() and "several" not in server.states()
        assert server.get("/v2/models/several.calls").status == 200
        assert server.loaded() == {"several.calls"}
        assert server.ask("several").status == 404


def test_some_repositories_and_pinned_models(tmp_path):
    at_start, on_demand = tmp_path / "start", tmp_path / "demand"
    put(PLAIN, at_start / "s.pt2")
    fill(on_demand, 3)
    with AdminServer(at_start, on_demand, f"named={PLAIN}",
                     flags=["--load-on-demand", str(on_demand), "--set", "m1.pinned=true"]) as server:
        states = {m["name"]: (m["state"], m.get("on_demand")) for m in server.post("/v2/repository/index", b"").json}
        assert states == {"s": ("READY", None), "named": ("READY", None), "m1": ("READY", "loaded"),
                          "m0": ("UNAVAILABLE", "known"), "m2": ("UNAVAILABLE", "known")}
        assert server.infer("m0", ONES).status == 200


def test_load_on_demand_names_a_repository(folder):
    status, log = run_serve(folder, "--load-on-demand", folder / "other")
    assert status != 0 and "load_on_demand" in log and "no repository" in log


# Waiting

def test_many_clients_load_a_model_once(folder):
    fill(folder, 1, BATCHED)
    with HeldDemandServer(folder, flags=loads_that_run(folder)) as server:
        server.hold()
        with threads(*[lambda: server.check("m0")] * 40):
            until(lambda: server.value("demand_waiting_requests") == 40)
            assert server.state("m0") == "loading"
            assert server.get("/v2/models/m0/ready").json["on_demand"] == "loading"
            assert server.get("/v2/health/ready").status == 200
            server.release()
        assert server.loads() == 1


def test_deadline_while_a_model_is_loaded(folder):
    fill(folder, 2, BATCHED)
    with HeldDemandServer(folder, flags=[*loads_that_run(folder), "--set", "m0.request_timeout=200ms"]) as server:
        server.hold()
        answer = server.ask("m0")
        assert answer.status == 504 and "was not loaded in time" in answer.json["error"]
        assert server.value("demand_waiting_requests") == 0
        server.release()
        until(lambda: server.ask("m0").status == 200)
        server.check("m1")


def test_queue_limit_while_a_model_is_loaded(folder):
    fill(folder, 2, BATCHED)
    with HeldDemandServer(folder, flags=[*loads_that_run(folder), "--load-queue", "2"]) as server:
        server.hold()
        with threads(*[lambda: server.check("m0")] * 2):
            until(lambda: server.value("demand_waiting_requests") == 2)
            answer = server.ask("m0")
            assert answer.status == 429 and answer.headers["Retry-After"] == "1"
            assert "load_queue" in answer.json["error"]
            server.release()
        server.check("m0")


def test_clients_that_leave_while_a_model_is_loaded(folder):
    fill(folder, 2, BATCHED)
    body = json.dumps(numbers(ROW))
    with HeldDemandServer(folder, flags=loads_that_run(folder)) as server:
        server.hold()
        leaving = [server.connect() for _ in range(10)]
        for connection in leaving:
            connection.sendall(f"POST /v2/models/m0/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                               .encode())
        until(lambda: server.value("demand_waiting_requests") == 10)
        for connection in leaving:
            connection.close()
        until(lambda: server.value("demand_waiting_requests") == 0)
        server.release()
        server.check("m0")
        server.check("m1")


def test_the_server_ends_while_models_are_loaded(folder):
    fill(folder, 3, BATCHED)
    with HeldDemandServer(folder, flags=[*loads_that_run(folder), "--load-threads", "1", "--drain-timeout", "1s"]) as server:
        server.hold()
        answers = []
        with threads(*[lambda i=i: answers.append(server.ask(f"m{i}").status) for i in range(3)]):
            until(lambda: server.value("demand_waiting_requests") == 3)
            server.release()
            assert server.stop() == 0
        assert set(answers) <= {200, 503}


def test_large_requests_to_a_cold_model(folder):
    fill(folder, 1, BATCHED)
    with DemandServer(folder, flags=["--set", "m0.max_batch_size=4"]) as server:
        rows = 60_000
        answer = server.post("/v2/models/m0/infer", numbers([1.0] * 4 * rows), timeout=60)
        assert answer.status in (400, 413), answer.status
        server.check("m0")


# Going

def test_the_least_recently_used_goes(folder):
    names = fill(folder, 4)
    with DemandServer(folder, flags=budget_for(folder, 2)) as server:
        for name in names[:2]:
            server.check(name)
        server.check("m0")
        server.check("m2")
        assert server.loaded() == {"m0", "m2"} and server.evictions() == 1
        assert server.state("m1") == "known"
        server.check("m1")
        assert server.loaded() == {"m1", "m2"}
        assert server.bytes() <= server.value("model_memory_budget_bytes", device="host")


def test_random_requests_to_many_models_with_room_for_few(folder):
    names = fill(folder, 30, BATCHED)
    with DemandServer(folder, flags=[*budget_for(folder, 5, BATCHED), "--load-threads", "3"]) as server:
        problems, asked = [], 12 if SANITIZED else 60

        def client(seed):
            chosen = random.Random(seed)
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            for _ in range(asked):
                name = chosen.choice(names)
                connection.request("POST", f"/v2/models/{name}/infer", json.dumps(numbers(ROW)))
                response = connection.getresponse()
                answer = response.read()
                if response.status != 200 or json.loads(answer)["model_name"] != name:
                    problems.append((name, response.status, answer))
            connection.close()

        with threads(*[lambda i=i: client(i) for i in range(8)]):
            pass
        assert not problems, problems[:3]
        assert server.evictions() > 10
        assert server.bytes() <= server.value("model_memory_budget_bytes", device="host")
        assert len(server.loaded()) <= 5
        assert server.get("/v2/health/ready").status == 200


def test_a_model_in_use_stays(folder):
    names = fill(folder, 3)
    flags = budget_for(folder, 1)
    with HeldDemandServer(folder, flags=flags) as server:
        server.check("m0")
        server.hold()
        with threads(lambda: server.check("m0")):
            until(lambda: server.metrics()["sconce_http_inflight_body_bytes"] > 0)
            with threads(lambda: server.check("m1")):
                until(lambda: server.value("demand_waiting_requests") == 1)
                assert server.state("m0") == "loaded" and server.evictions() == 0
                server.release()
        assert server.loaded() == {"m1"} and server.evictions() == 1
        assert names


def test_models_without_room_keep_no_other_waiting(folder):
    """Two loads that wait for room, as many as there are threads: a model that has room is loaded at once, and they are
    loaded when the model that is in use may go."""
    fill(folder, 2)
    fill(folder, 2, LARGE, "large")
    with DemandServer(folder) as server:
        server.check("m0")
        small = server.bytes()
        assert server.control("large0", "load").status == 200
        large = server.bytes() - small
    with HeldDemandServer(folder, flags=["--memory-budget", str(large + small // 2), "--load-threads", "2"]) as server:
        server.check("m0")
        server.hold()
        told = []

        def describe(model):
            told.append((model, server.get(f"/v2/models/{model}").status))

        with threads(lambda: server.check("m0")):
            until(lambda: server.metrics()["sconce_http_inflight_body_bytes"] > 0)
            with threads(lambda: describe("large0"), lambda: describe("large1")):
                until(lambda: server.value("demand_waiting_requests") == 2)
                describe("m1")
                assert told == [("m1", 200)] and server.loaded() == {"m0", "m1"}
                assert server.state("large0") == server.state("large1") == "loading"
                server.release()
        assert sorted(told) == [("large0", 200), ("large1", 200), ("m1", 200)]
        assert len(server.loaded()) == 1  # the one that came first went for the other one


def test_a_model_that_never_fits(folder):
    put(PLAIN, folder / "a.pt2")
    with DemandServer(folder, flags=["--memory-budget", "1K"]) as server:
        answer = server.ask("a")
        assert answer.status == 507 and "memory_budget is 1024" in answer.json["error"]
        assert server.state("a") == "failed"
        assert server.control("a", "load").status == 507


def test_pinned_models_stay(folder):
    fill(folder, 3)
    with DemandServer(folder, flags=[*budget_for(folder, 2), "--set", "m0.pinned=true"]) as server:
        assert server.loaded() == {"m0"}
        for name in ("m1", "m2", "m1", "m2"):
            server.check(name)
        assert server.loaded() == {"m0", "m2"} and server.evictions() == 3
    with DemandServer(folder, flags=[*budget_for(folder, 1), "--set", "m0.pinned=true"]) as server:
        answer = server.ask("m1")
        assert answer.status == 503 and "none of the loaded models may be unloaded" in answer.json["error"]
        server.check("m0")


# What must not be lost

def test_pushed_weights_survive(folder):
    fill(folder, 4)
    with DemandServer(folder, flags=budget_for(folder, 2)) as server:
        pushed = server.push("m0", fake_weights(5), "commit=true")  # the model is cold
        assert pushed.status == 200, pushed.body
        assert server.ones("m0")[0] == pushed_answer(5)
        for name in ("m1", "m2", "m3", "m1"):
            server.check(name)
        state, reason = server.states()["m0"]
        assert state == "loaded" and reason == ("it stays loaded: weights that were pushed to it are not stored on disk "
                                                "(setting weights_store)")
        assert server.evictions() == 3
        assert server.ones("m0")[0] == pushed_answer(5)
        staged = server.push("m1", fake_weights(7))
        assert staged.status == 200, staged.body
        assert server.states()["m1"][1] == "it stays loaded: a set of weights is staged"
        answer = server.ask("m2")
        assert answer.status == 503, answer.body
        assert server.admin("POST", "m1/weights/abort").status == 200
        server.check("m2")
        assert server.loaded() == {"m0", "m2"}


def test_stored_weights_come_back(folder, tmp_path):
    fill(folder, 3)
    with DemandServer(folder, flags=[*budget_for(folder, 1), "--weights-store", str(tmp_path / "kept")]) as server:
        assert server.push("m0", fake_weights(5), "commit=true&label=five").status == 200
        server.check("m1")
        assert server.loaded() == {"m1"}
        assert server.served("m0") == (pushed_answer(5), 2, "five")
        assert server.loaded() == {"m0"}


def test_a_live_sequence_stays(folder):
    put(STATE, folder / "s.pt2")
    fill(folder, 4)
    flags = [*budget_for(folder, 2, STATE), "--set", "s.sequences=4"]

    def step(server, number, **more):
        answer = server.infer("s", {"INPUT__0": ("FP32", [1, 4], [0] * 4)}, parameters={"sequence_id": number, **more})
        assert answer.status == 200, answer.body
        return answer.json["outputs"][0]["data"][0]

    with DemandServer(folder, flags=flags) as server:
        first = step(server, 7, sequence_start=True)  # cold
        for i in range(1, 4):
            for name in ("m0", "m1", "m2", "m3"):
                server.check(name)
            assert server.state("s") == "loaded"
            assert server.states()["s"][1] == "it stays loaded: it has live sequences"
            assert step(server, 7) == first + i
        assert server.evictions() > 8
        assert step(server, 7, sequence_end=True) == first + 4
        for name in ("m0", "m1", "m2"):
            server.check(name)
        assert server.state("s") == "known"
        assert step(server, 7, sequence_start=True) == first


def test_state_of_runs_stays(folder):
    put(STATE, folder / "s.pt2")
    fill(folder, 3)
    with DemandServer(folder, flags=budget_for(folder, 2, STATE)) as server:
        first = server.infer("s", ONES).json["outputs"][0]["data"][0]
        for name in ("m0", "m1", "m2"):
            server.check(name)
        assert server.states()["s"] == ("loaded", "it stays loaded: its runs leave state in its buffers")
        assert server.infer("s", ONES).json["outputs"][0]["data"][0] == first + 1


def loops(folder):
    put(PACKAGES / "loops.pt2", folder / "loops.pt2")
    loop = folder.parent / "loop.json"
    loop.write_text(json.dumps({"token": {"input": "INPUT__0", "output": "OUTPUT__0"},
                                "feed": {"OUTPUT__1": "INPUT__2"}, "stop": {"steps": 1_000_000}}))
    return ["--set", f"loops.explicit.loop={loop}"]


def test_a_stream_of_tokens(folder):
    pytest.importorskip("numpy")
    flags = loops(folder)
    fill(folder, 3)
    with DemandServer(folder, flags=flags) as server:
        server.control("loops.explicit", "load")
        of_loop = server.bytes()
        server.check("m0")
        budget = server.bytes() + (server.bytes() - of_loop) // 2  # for the loop and one more
    with DemandServer(folder, flags=[*flags, "--memory-budget", str(budget)]) as server:
        body = json.dumps({"prompt": [3], "INPUT__1": [5], "max_tokens": 6})
        answer = server.post("/v2/models/loops.explicit/generate_stream", body.encode())  # cold
        assert answer.status == 200, answer.body
        assert answer.body.count(b"data:") >= 6 and b"error" not in answer.body
        endless = json.dumps({"prompt": [3], "INPUT__1": [5], "max_tokens": 1_000_000})
        with contextlib.closing(socket.create_connection(("127.0.0.1", server.port), timeout=20)) as stream:
            stream.sendall(f"POST /v2/models/loops.explicit/generate_stream HTTP/1.1\r\nHost: localhost\r\n"
                           f"Content-Length: {len(endless)}\r\n\r\n{endless}".encode())
            assert stream.recv(4096).startswith(b"HTTP/1.1 200")
            # It is not the one that goes, though it was asked for before the others.
            for name in ("m0", "m1", "m2"):
                server.check(name)
            assert server.evictions() == 2 and server.state("loops.explicit") == "loaded"
            assert b"error" not in stream.recv(1 << 16)


# By hand

def test_loading_and_unloading_by_hand(folder):
    fill(folder, 2)
    with DemandServer(folder) as server:
        assert server.control("m0", "load").status == 200
        assert server.state("m0") == "loaded"
        assert server.control("m0", "unload").status == 200
        assert server.states()["m0"] == ("unloaded", "unloaded")
        answer = server.ask("m0")
        assert answer.status == 404 and "has no available versions" in answer.json["error"]
        assert server.get("/v2/models/m0/ready").status == 503
        assert server.control("m1", "unload").status == 200  # never loaded
        assert server.state("m1") == "unloaded"
        assert server.ask("m1").status == 404
        assert server.value("demand_models", state="unloaded") == 2
        for name in ("m0", "m1"):
            assert server.control(name, "load").status == 200
            server.check(name)
        for action in ("load", "unload"):
            assert server.control("nope", action).status == 404


def test_a_model_that_came_after_the_start(folder):
    fill(folder, 1)
    with DemandServer(folder) as server:
        put(PLAIN, folder / "new.pt2")
        assert server.ask("new").status == 404
        assert server.control("new", "load").status == 200
        server.check("new")
        assert server.control("new", "unload").status == 200
        assert server.control("new", "load").status == 200


# Files

def test_files_that_come_change_and_go(folder):
    fill(folder, 2)
    other = [2 * x * (1 + i) + 10 * i for i, x in enumerate(ROW)]  # of FOLDED

    def answer(model):
        got = server.ask(model)
        return got.json["outputs"][0]["data"] if got.status == 200 else got.status

    with DemandServer(folder, flags=["--watch", "50ms"]) as server:
        put(PLAIN, folder / "new.pt2")
        until(lambda: "new" in server.states())
        assert server.state("new") == "known"
        server.check("new")
        server.check("m0")
        put(FOLDED, folder / "m0.pt2")  # is loaded
        until(lambda: answer("m0") == other)
        put(FOLDED, folder / "m1.pt2")  # is not
        until(lambda: answer("m1") == other)
        for name in ("m0", "new"):
            (folder / f"{name}.pt2").unlink()
        until(lambda: set(server.states()) == {"m1"})
        assert answer("m0") == 404
        server.control("m1", "unload")
        assert answer("m1") == 404
        put(PLAIN, folder / "m1.pt2")  # a new package may be asked for again
        until(lambda: answer("m1") == ANSWER)


def test_broken_packages(folder):
    fill(folder, 2)
    (folder / "broken.pt2").write_bytes(b"PK\x03\x04 no package")
    (folder / "empty.pt2").write_bytes(b"")
    with DemandServer(folder, flags=["--watch", "50ms"]) as server:
        for name in ("broken", "empty"):
            for _ in range(3):
                answer = server.ask(name)
                assert answer.status in (400, 500) and answer.json["error"], answer.body
            state, reason = server.states()[name]
            assert state == "failed" and reason
            assert server.get(f"/v2/models/{name}/ready").status == 503
        assert server.value("demand_models", state="failed") == 2
        assert server.get("/v2/health/ready").status == 200
        server.check("m0")
        put(PLAIN, folder / "broken.pt2")
        until(lambda: server.ask("broken").status == 200)
        server.check("broken")


def test_a_package_that_went_before_it_was_asked_for(folder):
    fill(folder, 2)
    with DemandServer(folder) as server:
        (folder / "m0.pt2").unlink()
        answer = server.ask("m0")
        assert answer.status in (404, 500) and "m0.pt2" in answer.json["error"], answer.body
        server.check("m1")


def test_hostile_names(folder):
    fill(folder, 1)
    put(PLAIN, folder.parent / "outside.pt2")
    (folder / "broken.pt2").write_bytes(b"no package")
    names = ["..%2Foutside", "%2e%2e/outside", "..", ".", "%00", "m0%00", "m0/../m0", "m0.pt2", "m0" + ".x" * 60, "%ff",
             "a" * 4000, "*", "m0@x", "outside", "M0"]
    with DemandServer(folder) as server:
        for name in names:
            status = server.ask(name).status
            assert status in (400, 404, 414, 431) or name == "m0/../m0", (name, status)
        for i in range(300):
            assert server.ask(f"m0.x{i}").status == 404
            assert server.ask(f"broken.x{i}").status in (400, 404, 501)
        assert server.loaded() <= {"m0"}
        assert set(server.states()) == {"m0", "broken"}
        server.check("m0")
