#!/usr/bin/env python3
"""Compares `sconce serve` with LitServe, MLServer and the Triton inside nvidia-pytriton on the same model, in one run.

The model is y = x * w + b on rows of four floats, so this measures the server. Each peer comes from PyPI into its own
virtual environment below the build folder and gets requests in its fastest form: binary tensors for Sconce and Triton,
JSON for the others. Triton runs as its server binary with a model of its Python backend, which is faster than through
PyTriton's processes. The servers take turns, several times over. Prints requests per second, latencies, the memory of
all processes of a server, and the ratios.

    ninja -C build/release http_bench && tests/bench/http/peers.py [--build DIR] [--seconds S] [--only NAME,...]
"""
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

from run import arguments, request_bytes, wait_for

HERE = pathlib.Path(__file__).parent
PEERS = {"litserve": "litserve", "mlserver": "mlserver", "triton": "nvidia-pytriton"}
FEATURES = 4


def json_request(path, body):
    text = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(text)}\r\n\r\n").encode() + text


def environment(build, name):
    """The Python of a virtual environment that contains the peer."""
    folder = build / "bench-peers" / name
    python = folder / "bin/python"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "numpy", PEERS[name]], check=True)
        (folder / "complete").touch()
    return python


def memory_bytes(pid):
    """Proportional memory of a process and its descendants."""
    total = 0
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                total += memory_bytes(int(child))
    except (FileNotFoundError, ProcessLookupError):
        pass
    return total


class Server:
    def __init__(self, name, command, port, ready, request, cwd=None, env=None):
        self.name, self.command, self.port, self.ready, self.request = name, command, port, ready, request
        self.cwd, self.env = cwd, env

    def measure(self, build, connections, seconds):
        process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.cwd,
                                   env={**os.environ, **(self.env or {})}, start_new_session=True)
        try:
            wait_for(self.port, self.ready, 90)
            results = {}
            for count in connections:
                with tempfile.NamedTemporaryFile() as file:
                    file.write(self.request)
                    file.flush()
                    out = subprocess.run([build / "tests/bench/http/http_load", str(self.port), str(count), str(seconds),
                                          file.name], stdout=subprocess.PIPE, check=True)
                results[count] = json.loads(out.stdout)
            results["memory"] = memory_bytes(process.pid)
            return results
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def triton(python, folder, port):
    """The server of nvidia-pytriton's wheel, with its Python backend laid out as the server expects."""
    site = next((python.parent.parent / "lib").glob("python*/site-packages"))
    shipped = site / "pytriton/tritonserver"
    backend = folder / "backends/python"
    shutil.copytree(shipped / "backends/python", backend)
    shutil.copy(shipped / f"python_backend_stubs/{site.parent.name.removeprefix('python')}/triton_python_backend_stub",
                backend)
    model = folder / "triton/model"
    (model / "1").mkdir(parents=True)
    shutil.copy(HERE / "triton_model.py", model / "1/model.py")
    (model / "config.pbtxt").write_text(
        'backend: "python"\nmax_batch_size: 64\n'
        f'input [{{ name: "INPUT__0", data_type: TYPE_FP32, dims: [{FEATURES}] }}]\n'
        f'output [{{ name: "OUTPUT__0", data_type: TYPE_FP32, dims: [{FEATURES}] }}]\n'
        'instance_group [{ kind: KIND_CPU, count: 1 }]\n')
    command = [shipped / "bin/tritonserver", "--model-repository", folder / "triton", "--backend-directory",
               folder / "backends", "--http-address", "127.0.0.1", "--http-port", str(port), "--allow-grpc", "false",
               "--allow-metrics", "false"]
    return command, {"LD_LIBRARY_PATH": str(site / "nvidia_pytriton.libs"),
                     "PATH": f"{python.parent}:{os.environ['PATH']}"}


def servers(build, names, folder):
    port = 18500 + os.getpid() % 400
    model = folder / "models/model"
    model.mkdir(parents=True)
    (model / "model-settings.json").write_text(json.dumps({"name": "model", "implementation": "peer_models.Mlserver"}))
    (folder / "models/settings.json").write_text(json.dumps({
        "host": "127.0.0.1", "http_port": port + 2, "grpc_port": port + 402, "metrics_port": port + 802,
        "parallel_workers": 0, "debug": False}))
    row = [1.0] * FEATURES
    made = []
    for name in names:
        if name == "sconce":
            made.append(Server(name, [build / "server/sconce", "serve", f"model={build / 'tests/fake_model/fake_model.so'}",
                                      "--http", f"127.0.0.1:{port}", "--metrics", "off", "--admin", "off", "--drain-grace",
                                      "0"], port, "/v2/health/ready", request_bytes("model", 1, FEATURES)))
        elif name == "litserve":
            made.append(Server(name, [environment(build, name), HERE / "peer_models.py", str(port + 1)], port + 1,
                               "/health", json_request("/predict", {"input": row})))
        elif name == "mlserver":
            made.append(Server(name, [environment(build, name).parent / "mlserver", "start", folder / "models"], port + 2,
                               "/v2/health/ready", json_request("/v2/models/model/infer", {
                                   "inputs": [{"name": "x", "shape": [1, FEATURES], "datatype": "FP32", "data": row}]}),
                               cwd=HERE))
        elif name == "triton":
            command, env = triton(environment(build, name), folder, port + 3)
            made.append(Server(name, command, port + 3, "/v2/models/model/ready", request_bytes("model", 1, FEATURES),
                               env=env))
        else:
            sys.exit(f"no such server: {name}")
    return made


def main():
    parser = arguments(__doc__, seconds=3, rounds=3)
    parser.add_argument("--connections", default="1,64")
    parser.add_argument("--only", default="sconce,litserve,mlserver,triton")
    args = parser.parse_args()
    connections = [int(c) for c in args.connections.split(",")]
    names = args.only.split(",")
    with tempfile.TemporaryDirectory() as folder:
        everyone = servers(args.build, names, pathlib.Path(folder))
        results = {s.name: [] for s in everyone}
        for _ in range(args.rounds):
            for server in everyone:
                results[server.name].append(server.measure(args.build, connections, args.seconds))

    def median(name, connections, key):
        return statistics.median(r[connections][key] for r in results[name])

    print(f"median of {args.rounds} rounds of {args.seconds:g} s, servers in turn")
    print(f"{'':10} {'connections':>11} {'requests/s':>11} {'p50 us':>9} {'p99 us':>9} {'MiB':>7} {'sconce is':>10}")
    for name in results:
        memory = statistics.median(r["memory"] for r in results[name]) / 2**20
        for count in connections:
            rate = median(name, count, "requests_per_second")
            ratio = f"{median('sconce', count, 'requests_per_second') / rate:.1f}x" if "sconce" in results else ""
            print(f"{name:10} {count:11} {rate:11.0f} {median(name, count, 'p50_us'):9.0f} {median(name, count, 'p99_us'):9.0f} "
                  f"{memory:7.0f} {ratio:>10}")


if __name__ == "__main__":
    main()
