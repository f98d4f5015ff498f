"""Debian's Prometheus reads a server: what it gets, the alerts of conf/prometheus, every query of Grafana's dashboard."""
import contextlib
import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import pytest
from admin_server import FAKE, STREAM, AdminServer
from grpc_serving import Grpc
from ports import reserve_port
from sequence_serving import HAS_GRPC
from serving import ROOT, until
from test_generate import Loops
from test_golden import golden_file, of_fake
from weights_files import fake_weights

pytestmark = pytest.mark.skipif(not (shutil.which("prometheus") and shutil.which("promtool")),
                                reason="no prometheus: ./dev packages test")

CONF = ROOT / "conf/prometheus"
DASHBOARD = json.loads((ROOT / "conf/grafana/sconce.json").read_text())
ALERTS = (CONF / "alerts.yml").read_text()
INPUT = {"INPUT__0": ("FP32", [1, 4], [1, 2, 3, 4])}
GPU = re.compile(r"nv_gpu_|nv_energy_|sconce_cuda_graph")  # series of devices that this machine may lack


class WatchedServer(*([Loops, Grpc, AdminServer] if HAS_GRPC else [Loops, AdminServer])):
    pass


class Prometheus:
    """Prometheus with the settings of conf/prometheus, but each second and on a server of the tests."""

    def __init__(self, folder, target):
        port = reserve_port()
        self.url = f"http://127.0.0.1:{port}"
        text = (CONF / "prometheus.yml").read_text()
        for old, new in (("15s", "1s"), ("127.0.0.1:8002", f"127.0.0.1:{target}"), ("- alerts.yml", f"- {CONF / 'alerts.yml'}")):
            assert old in text
            text = text.replace(old, new)
        (folder / "prometheus.yml").write_text(text)
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)

    def get(self, path, **query):
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
            document = json.load(answer)
        assert document["status"] == "success", document
        return document["data"]

    def query(self, text):
        return self.get("query", query=text)["result"]

    def target(self):
        """Of the only target: its health and what is wrong with it."""
        with contextlib.suppress(OSError):
            return next(((t["health"], t["lastError"]) for t in self.get("targets")["activeTargets"]), None)
        return None

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A server that is asked all the time, and Prometheus."""
    folder = tmp_path_factory.mktemp("watched")
    golden = golden_file(folder / "golden.safetensors", of_fake(3, 1, 2, -5), rtol="0.01", atol="0.001")
    flags = [f"fake={FAKE}", "--set", "*.sets=2", "--set", f"fake.golden={golden}", "--weights-store", str(folder / "kept")]
    with WatchedServer(folder, flags=flags) as server:
        assert server.admin("POST", "fake/sets/blue", fake_weights(5), STREAM).status == 200
        prometheus = Prometheus(folder, server.ports["metrics"])
        over = threading.Event()

        def ask():
            while not over.wait(0.05):
                server.generate("explicit", [3], max_tokens=2)
                server.infer("fake@blue", INPUT)
                if HAS_GRPC:
                    grpc_ask(server)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            until(lambda: prometheus.target() == ("up", ""), 60, lambda: (prometheus.target(), prometheus.log.read_text()[-2000:]))
            yield server, prometheus
        finally:
            over.set()
            asking.join()
            prometheus.stop()


def grpc_ask(server):
    import grpc
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ServerLive", lambda body: body, lambda body: body)
        call(b"", timeout=30)


def expressions():
    """(panel, query) of the dashboard."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
            yield f"${variable['name']}", f'count by ({label}) ({metric}{{{label}!=""}})' if "{" not in metric else (
                f'count by ({label}) ({metric[:-1]},{label}!=""}})')


def filled(query):
    """With what Grafana puts in the place of its variables."""
    query = query.replace("$__rate_interval", "20s")
    query = re.sub(r"\$(job|instance|model)\b", ".*", query)
    assert "$" not in query, query
    return query


@pytest.mark.parametrize(("panel", "query"), list(expressions()))
def test_a_query_of_the_dashboard_finds_series(watched, panel, query):
    server, prometheus = watched
    if GPU.search(query):
        prometheus.query(filled(query))  # Prometheus takes it
        if not any(GPU.match(name) for name in server.metrics()):
            pytest.skip("series of GPUs: no model is on one here")
    if "sconce_otlp" in query:
        prometheus.query(filled(query))
        pytest.skip("series of a collector: tests/server/test_otlp.py has one")
    if panel == "New weights":
        assert server.push("loops.explicit", changed_weights(server)).status == 200
        assert server.admin("POST", "loops.explicit/weights/commit").status == 200
    until(lambda: prometheus.query(filled(query)), 60, lambda: filled(query))


def changed_weights(server):
    """The active weights, which are other weights as far as the server is concerned."""
    answer = server.admin("GET", "loops.explicit/weights/active")
    assert answer.status == 200
    return answer.body


def test_what_prometheus_counts_is_what_was_asked(tmp_path):
    with AdminServer(f"fake={FAKE}", f"other={FAKE}") as server:
        for _ in range(7):
            assert server.infer("fake", INPUT).status == 200
        assert server.push("fake", fake_weights(5)).status == 200
        assert server.infer("fake", {"INPUT__0": ("FP32", [1, 3], [1, 2, 3])}).status == 400
        prometheus = Prometheus(tmp_path, server.ports["metrics"])
        try:
            until(lambda: prometheus.target() == ("up", ""), 60, lambda: (prometheus.target(), prometheus.log.read_text()[-2000:]))

            def value(query):
                found = prometheus.query(query)
                return float(found[0]["value"][1]) if found else None

            until(lambda: value('nv_inference_request_success{model="fake"}') == 7, 60)
            assert value('sconce_inference_request_duration_seconds_count{model="fake"}') == 7
            assert value('sconce_inference_request_duration_seconds_bucket{model="fake",le="+Inf"}') == 7
            assert value('sconce_http_responses_total{code="400",route="/v2/models/{model}/infer"}') == 1
            assert value('sconce_weight_updates_total{state="done"}') == 1
            assert value('nv_inference_request_success{model="other"}') == 0
            assert abs(value("process_start_time_seconds") - time.time()) < 600
            # What Prometheus knows of each metric is what the program says of it.
            text = server.get("/metrics", port=server.ports["metrics"]).body.decode()
            helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
            known = prometheus.get("metadata")
            present = {name.split("{")[0] for name in server.metrics()}
            for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
                if name in present or f"{name}_count" in present:
                    assert known[name] == [{"type": kind, "help": helps[name], "unit": ""}], name
        finally:
            prometheus.stop()


def test_alerts_are_evaluated(watched):
    _, prometheus = watched

    def rules():
        return [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]

    until(lambda: rules() and all(rule["health"] == "ok" for rule in rules()), 60, rules)
    assert {rule["name"] for rule in rules()} == set(re.findall(r"alert: (\w+)", ALERTS))
    assert not [rule["name"] for rule in rules() if rule["state"] == "firing"]


def test_promtool():
    for words in (["check", "config", CONF / "prometheus.yml"], ["check", "rules", CONF / "alerts.yml"],
                  ["test", "rules", CONF / "alerts_test.yml"]):
        done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_case_that_fires_and_one_that_is_silent():
    names = re.findall(r"alert: (\w+)", ALERTS)
    cases = re.findall(r"name: (\w+) (fires|is silent)", (CONF / "alerts_test.yml").read_text())
    assert sorted(cases) == sorted((name, case) for name in names for case in ("fires", "is silent"))


def test_alerts_and_dashboard_name_metrics_that_exist(watched):
    server, _ = watched
    text = server.get("/metrics", port=server.ports["metrics"]).body.decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    known = {*kinds, *(f"{name}_{part}" for name, kind in kinds.items() if kind == "histogram" for part in ("bucket", "sum", "count"))}
    used = set(re.findall(r"\b(?:nv|sconce|process)_\w+", ALERTS + " ".join(query for _, query in expressions())))
    assert used <= known, used - known


def test_the_dashboard_is_whole():
    panels = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert len({panel["title"] for panel in panels}) == len(panels)
    places = [(p["gridPos"]["x"], p["gridPos"]["y"], p["gridPos"]["w"], p["gridPos"]["h"]) for p in DASHBOARD["panels"]]
    for i, (x, y, w, h) in enumerate(places):
        assert x + w <= 24
        for a, b, c, d in places[:i]:
            assert x >= a + c or a >= x + w or y >= b + d or b >= y + h, (places[i], (a, b, c, d))
