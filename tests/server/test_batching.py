"""Requests that share runs, and the queue they wait in."""
import concurrent.futures
import functools
import json
import re
import socket
import struct
import subprocess
import threading
import zipfile

import pytest
from admin_server import AdminServer
from serving import (FAIL_INPUT, FAKE_MODELS, PACKAGES, PROGRAM, HeldServer, Server, binary, fake_expected, numbers, raw_post,
                     read_all, read_answer, threads, unread, until)
from weights_files import fake_weights

BATCHING = FAKE_MODELS.parent / "server/batching"
BATCHED = FAKE_MODELS / "fake_batched.pt2"


def rows_of(*rows):
    return {"INPUT__0": ("FP32", [len(rows), 4], [x for row in rows for x in row])}


def row(number):
    return [float(number), 1.0, 2.0, 3.0]


def check(answer, *rows):
    assert answer.status == 200, answer.body
    output = answer.json["outputs"][0]
    assert output["shape"] == [len(rows), 4]
    assert output["data"] == [x for r in rows for x in fake_expected(r)]


def request(body, model="m", extra=b""):
    return raw_post(f"/v2/models/{model}/infer".encode(), json.dumps(body).encode(), extra)


def one_row(number, **parameters):
    return numbers(row(number), **({"parameters": parameters} if parameters else {}))


def stats(server, model="m"):
    return server.get(f"/v2/models/{model}/stats").json["model_stats"][0]


def pending(server):
    return server.metrics()['nv_inference_pending_request_count{model="m",version="1"}']


def occupy(server):
    """A connection whose request holds the model's only replica until server.release()."""
    server.hold()
    connection = server.connect()
    connection.sendall(request(one_row(0)))
    replicas = "/v2/admin/models/m/replicas"
    until(lambda: server.get(replicas, port=server.admin_port).json["replicas"][0]["load"] == 1
             and pending(server) == 0)
    return connection


@pytest.fixture(scope="module")
def batched():
    with HeldServer(f"m={BATCHED}") as running:
        yield running


def at_once(server, one, count):
    """Calls one(i) for all i while the replica is busy; returns the sum of the results."""
    with occupy(server) as first, concurrent.futures.ThreadPoolExecutor(count) as pool:
        try:
            results = [pool.submit(one, i) for i in range(count)]
            until(lambda: pending(server) == count)
        finally:
            server.release()
        assert read_answer(first)[0] == 200
        return sum(result.result() or 0 for result in results)


def test_the_signature_alone_is_enough(batched):
    config = batched.get("/v2/models/m/config").json
    assert config["dynamic_batching"]["default_queue_policy"]["max_queue_size"] == 1000
    assert config["max_batch_size"] == 2**31 - 1 and config["input"][0]["dims"] == [4]
    assert any("requests share runs of up to 64 rows" in line for line in batched.log)
    before = stats(batched)
    count = 40

    def one(number):
        rows = [row(number * 10 + i) for i in range(1 + number % 3)]
        check(batched.infer("m", rows_of(*rows)), *rows)
        return len(rows)

    rows = 1 + at_once(batched, one, count)
    after = stats(batched)
    runs = after["execution_count"] - before["execution_count"]
    assert runs == 3  # one for the first request, two for 79 rows in runs of at most 64
    assert after["inference_count"] - before["inference_count"] == rows
    for key in ("success", "queue", "compute_infer"):
        assert after["inference_stats"][key]["count"] - before["inference_stats"][key]["count"] == count + 1

    def of(state):
        return {b["batch_size"]: b["compute_infer"]["count"] for b in state["batch_stats"]}

    grown = {size: n - of(before).get(size, 0) for size, n in of(after).items()}
    assert sum(grown.values()) == runs and sum(size * n for size, n in grown.items()) == rows
    for batch in after["batch_stats"]:
        assert batch["compute_input"]["count"] == batch["compute_output"]["count"] == batch["compute_infer"]["count"]
    metrics = batched.metrics()
    label = '{model="m",version="1"}'
    assert metrics["nv_inference_exec_count" + label] == after["execution_count"]
    assert metrics["nv_inference_count" + label] == after["inference_count"]
    assert metrics["sconce_inference_batch_rows_count" + label] == after["execution_count"]
    assert metrics["sconce_inference_batch_rows_sum" + label] == sum(s * n for s, n in of(after).items())
    assert metrics["nv_inference_pending_request_count" + label] == 0


def test_binary_answers_are_rows_of_one_tensor(batched):
    def one(number):
        answer = batched.post("/v2/models/m/infer", *binary(
            struct.pack("<4f", *row(number)), outputs=[{"name": "OUTPUT__0", "parameters": {"binary_data": True}}]))
        assert answer.status == 200, answer.body
        assert list(struct.unpack("<4f", answer.body[-16:])) == fake_expected(row(number))

    before = stats(batched)["execution_count"]
    at_once(batched, one, 16)
    assert stats(batched)["execution_count"] - before == 2


def test_calls_and_inferences_share_runs(batched):
    before = stats(batched)["execution_count"]

    def one(number):
        if number % 2:
            return check(batched.infer("m", rows_of(row(number))), row(number))
        answer = batched.post("/v1/models/m:call", {"args": [[row(number)]]})
        assert answer.status == 200 and answer.json == [fake_expected(row(number))], answer.body

    at_once(batched, one, 24)
    assert stats(batched)["execution_count"] - before == 2


def test_one_bad_request_fails_by_itself():
    with HeldServer(f"m={BATCHED}") as server:
        connections = [occupy(server), *[server.connect() for _ in range(4)]]
        first, bad, *good = connections
        bad.sendall(request({"inputs": [{"name": "INPUT__0", "shape": [1, 4], "datatype": "FP32",
                                         "data": [FAIL_INPUT, 0, 0, 0]}]}))
        until(lambda: pending(server) == 1)
        for i, connection in enumerate(good):
            connection.sendall(request(one_row(i)))
        until(lambda: pending(server) == 4)
        server.release()
        # The four share a run, which fails, and then run by halves: the bad one fails with its neighbour, then alone.
        code, _, body, _ = read_answer(bad)
        assert code == 500 and b"told to fail by its input" in body
        for i, connection in enumerate(good):
            code, _, body, _ = read_answer(connection)
            assert code == 200 and json.loads(body)["outputs"][0]["data"] == fake_expected(row(i))
        assert read_answer(first)[0] == 200
        state = stats(server)
        assert state["inference_stats"]["fail"]["count"] == 1 and state["inference_stats"]["success"]["count"] == 4
        assert [(b["batch_size"], b["compute_infer"]["count"]) for b in state["batch_stats"]] == [(1, 2), (2, 1)]
        for connection in connections:
            connection.close()


def test_more_rows_than_the_package_or_a_setting_allows():
    with Server(f"m={BATCHED}", flags=["--set", "m.max_batch_size=3"]) as server:
        assert server.get("/v2/models/m/config").json["max_batch_size"] == 3
        check(server.infer("m", rows_of(row(1), row(2), row(3))), row(1), row(2), row(3))
        answer = server.infer("m", rows_of(row(1), row(2), row(3), row(4)))
        assert answer.status == 400 and "inference request batch-size must be <= 3 for 'm'" in answer.json["error"]


def test_off():
    with HeldServer(f"m={BATCHED}", flags=["--set", "m.batching=off"]) as server:
        assert "dynamic_batching" not in server.get("/v2/models/m/config").json
        at_once(server, lambda n: check(server.infer("m", rows_of(row(n))), row(n)), 8)
        state = stats(server)
        assert state["execution_count"] == state["inference_count"] == 9


def test_models_whose_signature_does_not_allow_it():
    with Server(f"bare={FAKE_MODELS / 'fake_model.so'}", f"state={FAKE_MODELS / 'fake_state.so'}",
                PACKAGES / "several.pt2") as server:
        for model, shared in (("bare", False), ("state", False), ("several.calls", False), ("several.channels_last", True)):
            assert ("dynamic_batching" in server.get(f"/v2/models/{model}/config").json) == shared, model
        log = "".join(server.log)
        assert re.search(r"model several.calls version 1: requests run one by one: its inputs share no variable", log)


def test_channels_last_batches_are_exact():
    """Rows that are copied together in other strides than row-major, with two outputs that are taken apart."""
    with Server(PACKAGES / "several.pt2", flags=["--set", "several.channels_last.batch_delay=50ms"]) as server:
        def one(number):
            rows = 1 + number % 3
            data = [float((number * 7 + i) % 50) for i in range(60 * rows)]
            answer = server.infer("several.channels_last", {"ARGS[0]": ("FP32", [rows, 3, 4, 5], data)})
            assert answer.status == 200, answer.body
            total, double = (o["data"] for o in answer.json["outputs"])
            assert double == [2 * x for x in data]
            for r in range(rows):
                for i in range(20):
                    assert total[r * 20 + i] == sum(data[r * 60 + c * 20 + i] for c in range(3))

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(one, range(64)))
        state = stats(server, "several.channels_last")
        assert state["execution_count"] < 64
        assert max(b["batch_size"] for b in state["batch_stats"]) <= 8


def test_a_delay_and_preferred_sizes():
    flags = ["--set", "m.batch_delay=10s", "--set", "m.preferred_batch_sizes=4"]
    with Server(f"m={BATCHED}", flags=flags) as server:
        policy = server.get("/v2/models/m/config").json["dynamic_batching"]
        assert policy["preferred_batch_size"] == [4] and policy["max_queue_delay_microseconds"] == 10_000_000
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: check(server.infer("m", rows_of(row(n))), row(n)), range(8)))
        assert {b["batch_size"]: b["compute_infer"]["count"] for b in stats(server)["batch_stats"]} == {4: 2}


def ask_together(server, rows, shared):
    """Each row as a client's request, two of them at a time; the answers."""
    def one(values):
        answer = server.infer("m", {"ARGS[0]": ("FP32", [1, len(values)], values)})
        assert answer.status == 200, answer.body
        return answer.json["outputs"][0]["data"]

    before = stats(server)["execution_count"]
    with concurrent.futures.ThreadPoolExecutor(len(rows)) as pool:
        answers = list(pool.map(one, rows))
    assert stats(server)["execution_count"] - before == (len(rows) // 2 if shared else len(rows))
    return answers


SHARED_BY_TWO = ["--set", "m.batch_delay=10s", "--set", "m.preferred_batch_sizes=2"]


def neighbours():
    """A client's row, and one a thousand times larger."""
    values = [((37 * i) % 19 - 9) / 10 for i in range(64)]
    return values, [1000 * v for v in values]


@pytest.mark.parametrize("batching", ["on", "auto"])
def test_quantised_by_all_rows_each_client_gets_its_own_numbers(batching):
    """If the user turns sharing on, the small row is quantised to zero. In a run of its own, it gives a thousandth of the large
    row's answer."""
    small, large = neighbours()
    with Server(f"m={BATCHING / 'dynamic_int8_64.pt2'}", flags=[*SHARED_BY_TWO, "--set", f"m.batching={batching}"]) as server:
        of_small, of_large = ask_together(server, [small, large], shared=batching == "on")
        assert any(abs(x) > 1 for x in of_large)
        if batching == "on":
            assert not any(of_small)
        else:
            assert of_small == pytest.approx([x / 1000 for x in of_large], rel=0.02, abs=max(map(abs, of_large)) / 50000)
            assert any("requests run one by one: it is not proved that rows do not influence each other" in line
                       for line in server.log)
            config = server.get("/v2/models/m/config").json
            assert "dynamic_batching" not in config
            assert config["parameters"]["requests_run_alone"]["string_value"].startswith("it is not proved that rows do not")
        parameters = server.get("/v2/models/m/config").json["parameters"]
        assert parameters["rows_proof"]["string_value"] == {"on": "setting", "auto": "none"}[batching]


def test_a_trial_that_contradicts_a_proof_ends_sharing_while_the_model_is_served(tmp_path):
    """The package says that it is proved, as if the prover of sconce.export were wrong."""
    with zipfile.ZipFile(BATCHING / "dynamic_int8_64.pt2") as archive:
        archive.extractall(tmp_path)
    for metadata in tmp_path.rglob("*.wrapper_metadata.json"):
        proof = json.dumps({"version": 1, "independent": True})
        metadata.write_text(json.dumps({**json.loads(metadata.read_text()), "sconce_rows": proof}))
    subprocess.run([PROGRAM, "pack", tmp_path / "dynamic_int8_64", tmp_path / "m.pt2"], check=True)
    small, large = neighbours()
    with Server(tmp_path / "m.pt2", flags=SHARED_BY_TWO) as server:
        assert any("requests share runs of up to 64 rows: proved by sconce.export" in line for line in server.log)
        until(lambda: any("requests run one by one from now on: a try showed" in line for line in server.log))
        config = server.get("/v2/models/m/config").json
        assert "dynamic_batching" not in config
        parameters = {key: value["string_value"] for key, value in config["parameters"].items()}
        assert parameters["rows_proof"] == "export"
        assert parameters["requests_run_alone"] == "a try showed that a row's outputs depend on the other rows"
        of_small, of_large = ask_together(server, [small, large], shared=False)
        assert of_small == pytest.approx([x / 1000 for x in of_large], rel=0.02, abs=max(map(abs, of_large)) / 50000)
        assert server.stop() == 0


def test_quantised_by_row_two_clients_share_a_run():
    small, large = neighbours()
    with Server(f"m={BATCHING / 'per_row_int8.pt2'}", flags=["--set", "m.batching=off"]) as server:
        expected = ask_together(server, [small, large], shared=False)
    with Server(f"m={BATCHING / 'per_row_int8.pt2'}", flags=SHARED_BY_TWO) as server:
        assert ask_together(server, [small, large], shared=True) == expected
        assert any("requests share runs of up to 64 rows" in line for line in server.log)


def test_a_full_queue_is_refused_at_once():
    with HeldServer(f"m={BATCHED}", flags=["--set", "m.queue=4", "--set", "m.max_batch_size=1"]) as server:
        waiting = [occupy(server), *[server.connect() for _ in range(4)]]
        for i, connection in enumerate(waiting[1:]):
            connection.sendall(request(one_row(i)))
        until(lambda: pending(server) == 4)
        refused = server.infer("m", rows_of(row(9)))
        assert refused.status == 429 and refused.headers["Retry-After"] == "1"
        assert refused.json["error"] == "Exceeds maximum queue size: model 'm' has 4 requests waiting"
        server.release()
        for connection in waiting:
            assert read_answer(connection)[0] == 200
            connection.close()
        assert server.metrics()['nv_inference_request_failure{model="m",reason="REJECTED",version="1"}'] == 1


def test_a_timeout_of_waiting():
    with HeldServer(f"m={BATCHED}") as server:
        first = occupy(server)
        late = server.infer("m", rows_of(row(1)), parameters={"timeout": 1000})  # microseconds
        assert late.status == 504 and late.json["error"].startswith("Request timeout expired: waited ")
        server.release()
        assert read_answer(first)[0] == 200
        check(server.infer("m", rows_of(row(2)), parameters={"timeout": 10**9}), row(2))
        assert stats(server)["execution_count"] == 2  # the late one did not run
        assert server.metrics()['nv_inference_request_failure{model="m",reason="REJECTED",version="1"}'] == 1


def test_a_timeout_of_the_whole_request():
    with HeldServer(f"m={BATCHED}", flags=["--set", "m.request_timeout=300ms"]) as server:
        with occupy(server) as running, server.connect() as waiting:
            waiting.sendall(request(one_row(1)))
            for connection, head_has in ((running, True), (waiting, False)):
                code, head, body, _ = read_answer(connection)
                assert code == 504 and b"not answered in time" in body
                # A connection whose request is still being run cannot take another one.
                assert (b"Connection: close" in head) == head_has
            server.release()
            until(lambda: stats(server)["execution_count"] == 1)
            waiting.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_answer(waiting)[0] == 200


def test_priorities():
    # One io thread: it answers, and logs, in the order of the runs.
    flags = ["--set", "m.priority_levels=2", "--set", "m.default_priority=2", "--set", "m.max_batch_size=1",
             "--io-threads", "1", "--access-log", "true"]
    with HeldServer(f"m={BATCHED}", flags=flags) as server:
        connections = [occupy(server)]
        for i in range(4):
            connections.append(server.connect())
            connections[-1].sendall(request(one_row(i, priority=1 if i >= 2 else 0), extra=b"X-Request-Id: nr-%d\r\n" % i))
            until(lambda: pending(server) == i + 1)
        server.release()
        for connection in connections:
            assert read_answer(connection)[0] == 200
            connection.close()

        def order():
            return re.findall(r"id=nr-(\d)", "".join(server.log))

        until(lambda: len(order()) == 4)
        assert order() == ["2", "3", "0", "1"]


@pytest.mark.parametrize("reset", [False, True])
def test_queued_work_of_clients_that_leave_is_dropped(reset):
    with HeldServer(f"m={BATCHED}", flags=["--set", "m.max_batch_size=1"]) as server:
        first = occupy(server)
        gone = [server.connect() for _ in range(10)]
        stays = server.connect()
        for i, connection in enumerate([*gone, stays]):
            connection.sendall(request(one_row(i)))
        until(lambda: pending(server) == 11)
        for connection in gone:
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        until(lambda: pending(server) == 1)
        server.release()
        assert read_answer(stays)[0] == 200 and read_answer(first)[0] == 200
        assert stats(server)["execution_count"] == 2
        failures = server.metrics()
        assert failures['nv_inference_request_failure{model="m",reason="CANCELED",version="1"}'] == 10
        stays.close()
        first.close()


def test_a_client_that_has_said_all_is_answered_and_the_connection_closed(batched):
    with occupy(batched) as connection:
        connection.shutdown(socket.SHUT_WR)
        until(lambda: unread(connection) == 0)
        batched.release()
        answer = read_all(connection)  # ends at once, not at the idle timeout
    assert answer.count(b"HTTP/1.1 200 OK") == 1


def test_pipelined_requests_behind_one_that_waits(batched):
    with occupy(batched) as connection:
        # While the first request runs, the next ones arrive in pieces.
        rest = b"".join(request(one_row(i)) for i in range(1, 6))
        for at in range(0, len(rest), 37):
            connection.sendall(rest[at:at + 37])
        batched.release()
        data = b""
        for i in range(6):
            code, _, body, data = read_answer(connection, data)
            assert code == 200 and json.loads(body)["outputs"][0]["data"] == fake_expected(row(i))
        assert data == b""
    # The body of a request arrives while the request before it runs.
    large = request({"inputs": [{"name": "INPUT__0", "shape": [9000, 4], "datatype": "FP32", "data": [1.5] * 36000}]})
    with occupy(batched) as connection:
        connection.sendall(large[:1000])
        until(lambda: unread(connection) == 0)
        connection.sendall(large[1000:])
        batched.release()
        code, _, _, data = read_answer(connection)
        assert code == 200
        code, _, body, data = read_answer(connection, data)
        assert code == 200 and len(json.loads(body)["outputs"][0]["data"]) == 36000 and data == b""


def test_each_batch_has_one_set_of_weights():
    """While weights change under load, each answer is entirely that of the weight version it names."""
    stop, answers = threading.Event(), []

    def client(server, number):
        rows = [row(number), row(number + 1)]
        while not stop.is_set():
            answer = server.infer("m", rows_of(*rows))
            assert answer.status == 200, answer.body
            answers.append((rows, int(answer.headers["Sconce-Weight-Version"]), answer.json["outputs"][0]["data"]))

    with AdminServer(f"m={BATCHED}", environment={"FAKE_MODEL_SLEEP_US": "2000"}) as server:
        values = {}
        with threads(*[functools.partial(client, server, i) for i in range(12)], stop=stop):
            for value in range(2, 22):
                assert server.push("m", fake_weights(value)).status == 200
                committed = server.admin("POST", "m/weights/commit")
                values[committed.json["generation"]] = value
        assert stats(server)["execution_count"] < len(answers)
    assert len({weight_version for _, weight_version, _ in answers}) > 2
    for rows, weight_version, output in answers:
        value = values.get(weight_version)
        expected = [x for r in rows for x in (fake_expected(r) if value is None else [value * x + value for x in r])]
        assert output == expected, weight_version


def test_nothing_is_lost_when_models_are_replaced_unloaded_and_drained():
    codes, stop = [], threading.Event()

    def client(server, number):
        while not stop.is_set():
            answer = server.infer("m", rows_of(row(number)))
            if answer.status == 200:
                assert answer.json["outputs"][0]["data"] == fake_expected(row(number))
            codes.append(answer.status)

    with Server(f"m={BATCHED}", environment={"FAKE_MODEL_SLEEP_US": "3000"}) as server:
        def control(action):
            answer = server.post(f"/v2/repository/models/m/{action}", b"", port=server.admin_port)
            assert answer.status == 200, answer.body

        with threads(*[functools.partial(client, server, i) for i in range(24)], stop=stop):
            for _ in range(5):
                control("load")
            assert set(codes) == {200}
            control("unload")
            until(lambda: 404 in codes)
            control("load")
        assert set(codes) <= {200, 404, 503}  # 503 while it is loaded again
        # A drain answers waiting requests.
        connections = [server.connect() for _ in range(20)]
        for i, connection in enumerate(connections):
            connection.sendall(request(one_row(i)))
        until(lambda: not any(map(unread, connections)))
        assert server.stop() == 0
        for connection in connections:
            assert read_answer(connection)[0] == 200
            connection.close()
