"""The simulations of a fleet against closed forms and against what is known of the autoscaler."""
import json
import math
import pathlib
import subprocess
import sys

import autoscaler
import pods
import push_cost
import pytest
import queues

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
COUNT = 300_000


def waited(rate, services, servers):
    found = queues.waits(queues.poisson(rate, COUNT, 7), services, servers)
    return found[COUNT // 10:]


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (1, 0.8), (2, 0.7), (8, 0.9)])
def test_random_service_times(servers, load):
    """M/M/c: the mean wait, the share that waits at all, the share that waits longer than a service takes."""
    service, rate = 0.01, load * servers / 0.01
    found = waited(rate, queues.exponential(service, COUNT, 8), servers)
    assert sum(found) / len(found) == pytest.approx(queues.mean_wait_of_mmc(rate, service, servers), rel=0.06)
    assert sum(w > 0 for w in found) / len(found) == pytest.approx(queues.erlang_c(rate * service, servers), rel=0.04)
    late = queues.late_share_of_mmc(rate, service, servers, service)
    assert sum(w > service for w in found) / len(found) == pytest.approx(late, rel=0.08)


@pytest.mark.parametrize("load", [0.3, 0.7, 0.9])
def test_constant_service_times(load):
    """M/D/1."""
    service, rate = 0.02, load / 0.02
    found = waited(rate, queues.constant(service, COUNT), 1)
    assert sum(found) / len(found) == pytest.approx(queues.mean_wait_of_md1(rate, service), rel=0.06)


def test_the_closed_forms_are_those_of_the_books():
    """M/M/1: a customer waits with the probability rho, and rho / (1 - rho) services. Erlang's own C(2 servers, load 1) = 1/3."""
    assert queues.erlang_c(0.8, 1) == pytest.approx(0.8)
    assert queues.mean_wait_of_mmc(80, 0.01, 1) == pytest.approx(0.04)
    assert queues.erlang_c(1, 2) == pytest.approx(1 / 3)
    assert queues.mean_wait_of_md1(80, 0.01) == pytest.approx(0.02)


def test_nobody_waits_where_there_is_a_server_for_each():
    assert queues.waits([0.0, 0.1, 0.2], [1.0, 1.0, 1.0], 3) == [0.0, 0.0, 0.0]
    assert queues.waits([0.0, 0.1, 0.2], [1.0, 1.0, 1.0], 1) == pytest.approx([0.0, 0.9, 1.8])
    assert queues.quantile(range(1, 101), 0.99) == 99


def test_pods():
    model = pods.Model("x", 0.01, 0.05)
    assert pods.pods(model, 10_000, 2, 0.5) == 100
    most = pods.most_of_a_pod(model, 1)
    assert 0 < most < 1 and pods.slowest_of_100(model, most * 100, 1) <= model.bound < pods.slowest_of_100(model, (most + 0.05) * 100, 1)
    assert pods.most_of_a_pod(pods.Model("x", 0.01, 0.009), 1) == 0  # the bound is shorter than a request


def test_pushes():
    costs = push_cost.Costs(link=1e9, stage=1e8, hop=0.001, stage_each=0.002, commit_each=0.003)
    large = push_cost.direct(costs, 1e8, 1000)
    assert (large.sent, large.staged, large.committed) == (1e11, 100.0, 3.0)
    assert push_cost.direct(costs, 10, 1000).staged == 2.0
    relayed = push_cost.relayed(costs, 1e8, 1000)
    assert relayed.sent == 1e8 and relayed.staged == pytest.approx(1 + 0.999)
    assert push_cost.relayed(costs, 1e8, 1).staged == push_cost.direct(costs, 1e8, 1).staged == 1.0


def test_the_longest_relay_is_the_programs():
    """A list of servers has so many bytes at most, commas included."""
    url = "http://10.0.0.1:8003"
    count = push_cost.longest_relay(url)
    assert len(",".join([url] * count)) <= push_cost.LIST < len(",".join([url] * (count + 1)))
    assert "8,000 bytes is not sent" in (ROOT / "docs/pushes.md").read_text()


def given(**more):
    return autoscaler.Settings(**{"service": 0.05, "maximum": 100, **more})


def test_a_steady_load_has_its_pods():
    """As many as keep replicas as busy as the target says, whatever there were at first."""
    for load, begin in ((100, 2), (100, 30), (28, 10)):
        outcome = autoscaler.simulate(given(), lambda now, load=load: load, begin, 2400, 0)
        assert outcome.last_pods == pytest.approx(math.ceil(load * 0.05 / 0.7), abs=1), (load, begin)


def test_what_waits_and_what_is_refused_is_what_comes_too_much():
    """No pods are added: a pod's queue grows by what it cannot do, then the rest is refused."""
    settings = given(maximum=2, queue=100)
    outcome = autoscaler.simulate(settings, lambda now: 60, 2, 100, 0)
    assert outcome.offered == pytest.approx(6000)
    assert outcome.refused == pytest.approx(60 * 100 - 2 * 20 * 100 - 2 * 100, rel=0.01)
    assert outcome.longest_wait == pytest.approx(100 * 0.05) and outcome.enough is None and outcome.over is None


def test_more_pods_come_as_fast_as_the_policies_allow():
    """Threefold in each 15 seconds, or four more."""
    settings = given(start=0.0, sync=15.0, scrape=15.0)
    outcome = autoscaler.simulate(settings, lambda now: 0 if now < 60 else 4000, 2, 200, 60)
    counts = [count for _, count in outcome.pods]
    assert counts == [2, 6, 18, 54, 100]
    times = [now for now, _ in outcome.pods[1:]]
    assert [late - early for early, late in zip(times, times[1:])] == pytest.approx([15] * 3, abs=0.2)


def test_fewer_pods_only_after_the_stabilisation():
    settings = given()
    outcome = autoscaler.simulate(settings, lambda now: 200 if now < 600 else 40, 15, 1500, 600)
    shrunk = [now for now, count in outcome.pods if now > 600 and count < 15]
    assert min(shrunk) >= 600 + settings.stabilisation - settings.sync and outcome.last_pods <= 4


def test_a_pod_takes_its_time_to_start():
    late, early = (autoscaler.simulate(given(start=start), lambda now: 20 if now < 300 else 200, 2, 900, 300) for start in (60.0, 5.0))
    assert late.enough - early.enough == pytest.approx(55, abs=15.1) and late.refused >= early.refused


def test_the_settings_are_the_manifests():
    yaml = pytest.importorskip("yaml")
    spec = yaml.safe_load((ROOT / "examples/kubernetes/components/hpa/autoscaler.yaml").read_text())["spec"]
    settings = autoscaler.Settings(service=1)
    busy, waiting = (float(m["pods"]["target"]["averageValue"].replace("700m", "0.7")) for m in spec["metrics"] if m["type"] == "Pods")
    assert (busy, waiting) == (settings.busy_target, settings.waiting_target)
    assert (spec["minReplicas"], spec["maxReplicas"]) == (settings.minimum, settings.maximum)
    up, down = spec["behavior"]["scaleUp"], spec["behavior"]["scaleDown"]
    assert {p["type"]: p["value"] for p in up["policies"]} == {"Percent": settings.up_percent, "Pods": settings.up_pods}
    assert up["stabilizationWindowSeconds"] == 0 and down["stabilizationWindowSeconds"] == settings.stabilisation
    rules = (ROOT / "examples/kubernetes/components/hpa/rules.yaml").read_text()
    assert "[1m]" in rules and settings.busy_window == 60 and "[30s]" in rules and settings.waiting_window == 30


def test_the_tables_of_the_document():
    """docs/fleet.md shows what the script prints now."""
    told = subprocess.run([sys.executable, HERE / "simulate.py"], capture_output=True, text=True, check=True).stdout
    document = (ROOT / "docs/fleet.md").read_text()
    rows = [line for line in told.splitlines() if line.startswith("| ")]
    assert len(rows) > 10
    for row in rows:
        assert row in document, row


def test_figures_are_those_of_the_benchmarks():
    figures = json.loads((HERE / "measured.json").read_text())["documents"]
    text = (ROOT / "docs/benchmarks.md").read_text()
    cells = [cell.strip() for cell in next(line for line in text.splitlines() if line.startswith("| bert-base |")).split("|")[1:-1]]
    assert float(cells[3]) == figures["bert_s"] * 1000 and float(cells[5].split(" / ")[0]) == figures["bert_load_s"] * 1000
    assert int(cells[7]) * 10**6 == figures["bert_bytes"]
    staged = int(next(line for line in text.splitlines() if line.startswith("| staged, with Content-Digest |")).split("|")[2])
    assert staged * 2**20 == pytest.approx(figures["stage_bytes_per_s"], rel=0.01)
