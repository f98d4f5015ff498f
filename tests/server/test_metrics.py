"""Prometheus can read /metrics whatever requests came before."""
import pytest
from admin_server import FAKE, AdminServer
from prometheus_text import parse
from serving import ENDLESS, FAIL_INPUT

METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"]


@pytest.fixture(scope="module")
def server():
    with AdminServer(f"fake={FAKE}", f"victim={FAKE}") as running:
        yield running


def metrics(server):
    answer = server.get("/metrics", port=server.ports["metrics"])
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return parse(answer.body.decode())


def test_every_route_with_every_method_makes_one_series_each(server):
    metrics(server)
    expected = {}
    listeners = {name: server.get("/openapi.json", port=server.ports[name]).json["paths"] for name in ("inference", "administration")}
    listeners["metrics"] = ["/metrics", "/", "/v2/health/live", "/v2/health/ready", "/nowhere"]
    for listener, paths in listeners.items():
        for path in [*paths, "/nowhere", "/v2//x"]:
            for model in ("victim", "nobody"):
                url = path.format(model=model, version="1", region="r", set="s", number="7", file="console.js")
                for method in METHODS:
                    if path in ENDLESS and method == "GET":
                        continue
                    for body in ([b"", b"{}", b"{"] if method in ("POST", "PUT", "PATCH") else [None]):
                        answer = server.request(method, url, body, port=server.ports[listener])
                        expected[answer.status] = expected.get(answer.status, 0) + 1
    server.infer("fake", {"INPUT__0": ("FP32", [1, 4], [FAIL_INPUT, 0, 0, 0])})
    server.infer("fake", {"INPUT__0": ("FP32", [2, 4], [1] * 8)})
    found = metrics(server)
    responses = found["sconce_http_responses_total"]
    by_status = {}
    for labels, count in responses.items():
        status = int(dict(labels)["code"])
        by_status[status] = by_status.get(status, 0) + count
    assert all(by_status.get(status, 0) >= count for status, count in expected.items()), (expected, by_status)
    # A path whose methods are different actions is one series, which counts both.
    for path in ("/v2/trace/setting", "/v2/logging", "/v2/admin/models/{model}/weights", "/v2/admin/models/{model}/replicas"):
        codes = [dict(labels)["code"] for labels in responses if dict(labels)["route"] == path]
        assert codes and len(codes) == len(set(codes)), (path, codes)


def test_methods_of_a_path_are_counted_together(server):
    def count():
        return metrics(server).get("sconce_http_responses_total", {}).get((("code", "200"), ("route", "/v2/logging")), 0)

    before, port = count(), server.admin_port
    assert server.get("/v2/logging", port=port).status == 200
    assert server.post("/v2/logging", {}, port=port).status == 200
    assert count() == before + 2


@pytest.mark.parametrize("text", [
    "a 1\n", "# TYPE a counter\na 1\na 2\n", "# TYPE a counter\na{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"1\"} 1\n", "# TYPE a counter\na 1",
    "# TYPE a counter\na{x=\"1\",x=\"2\"} 1\n", "# TYPE a counter\na{x=\"\\q\"} 1\n", "# TYPE a counter\na -1\n", "# TYPE a thing\na 1\n",
    "# TYPE a counter\n# TYPE a counter\na 1\n", "# TYPE a counter\na 1\n# TYPE b gauge\nb 1\na{x=\"1\"} 1\n", "# TYPE a counter\na one\n",
    "# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n", "# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
    "# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_count 1\n", "# HELP a\n", "a{ 1\n"])
def test_the_parser_is_strict(text):
    with pytest.raises(ValueError):
        parse(text)


def test_the_parser_takes_what_is_right():
    text = ("# HELP a b c\n# TYPE a counter\na{x=\"1\\\"\\\\\\n\"} 1\na{x=\"2\"} 1e+300\n# TYPE h histogram\nh_bucket{le=\"0.5\"} 1\n"
            "h_bucket{le=\"+Inf\"} 3\nh_sum 2.5\nh_count 3\n# TYPE g gauge\ng NaN\n")
    assert set(parse(text)) == {"a", "h_bucket", "h_sum", "h_count", "g"}
