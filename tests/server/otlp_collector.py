"""A collector for tests: takes OTLP over HTTP with JSON, and reads it by opentelemetry-proto's messages, strictly."""
import base64
import http.server
import json
import re
import ssl
import threading
import time

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

REQUESTS = {"/v1/traces": trace_service_pb2.ExportTraceServiceRequest,
            "/v1/metrics": metrics_service_pb2.ExportMetricsServiceRequest}
HEX = {"traceId": 32, "spanId": 16, "parentSpanId": 16}


def with_base64(value):
    """OTLP's JSON has ids as hexadecimal digits, protobuf's has bytes as base64."""
    if isinstance(value, list):
        return [with_base64(one) for one in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for key, one in value.items():
        if key in HEX:
            assert one == "" and key == "parentSpanId" or re.fullmatch(f"[0-9a-f]{{{HEX[key]}}}", one), (key, one)
            one = base64.b64encode(bytes.fromhex(one)).decode()
        result[key] = with_base64(one)
    return result


def parse(path, body):
    """A field that the message does not have, or of another type, is an error."""
    return json_format.ParseDict(with_base64(json.loads(body)), REQUESTS[path](), ignore_unknown_fields=False)


def attributes(owner):
    """As {key: value}; a key twice is an error."""
    pairs = [(a.key, getattr(a.value, a.value.WhichOneof("value"))) for a in owner.attributes]
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


class Collector:
    """answer(path, number): what it says to the request of this number, from 0: (status, headers, body), or None to say
    nothing until it ends. certificate: (certificate, key) files for https."""

    def __init__(self, answer=lambda path, number: (200, {}, b"{}"), certificate=None, port=0):
        self.answer, self.over = answer, threading.Event()
        self.requests, self.problems = [], []  # (path, headers, message), in the order in which they came
        self.times = []
        self.lock = threading.Lock()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with collector.lock:
                    number = len(collector.requests)
                    try:
                        assert self.headers["Content-Type"] == "application/json"
                        message = parse(self.path, body)
                    except Exception as problem:  # told to the test, not to the server
                        collector.problems.append(problem)
                        message = None
                    collector.requests.append((self.path, self.headers, message))
                    collector.times.append(time.monotonic())
                said = collector.answer(self.path, number)
                if said is None:
                    collector.over.wait(60)
                    return
                status, fields, text = said
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **fields}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.scheme = "https"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server.server_address[1]}"

    def messages(self, path):
        with self.lock:
            assert not self.problems, self.problems
            return [message for name, _, message in self.requests if name == path]

    def spans(self):
        return [span for message in self.messages("/v1/traces") for resource in message.resource_spans
                for scope in resource.scope_spans for span in scope.spans]

    def metrics(self):
        """Of the last push: {name: metric}."""
        messages = self.messages("/v1/metrics")
        return {m.name: m for r in messages[-1].resource_metrics for s in r.scope_metrics for m in s.metrics} if messages else {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
