#!/usr/bin/env python3
"""Runs NVIDIA's perf_analyzer against `sconce serve` on the example model, in each form that its HTTP and gRPC clients have.

PyPI provides the binary (in the last tritonclient wheel that had it) and the CUDA run time that it links to; libb64
(Debian, Ubuntu: libb64-0d) must be installed. Prints perf_analyzer's output for each form; exits with 1 if it gave up
on one.

    ninja -C build/release sconce_program && tests/bench/http/perf_analyzer.py [--build DIR] [--requests N]
"""
import os
import signal
import subprocess
import sys

from run import ROOT, arguments, wait_for

WHEELS = ["tritonclient==2.49.0", "nvidia-cuda-runtime-cu12==12.6.77"]
FORMS = {
    "binary": ["--concurrency-range", "4"],
    "JSON": ["--concurrency-range", "4", "--input-tensor-format", "json", "--output-tensor-format", "json"],
    "shared memory": ["--concurrency-range", "4", "-b", "4", "--shared-memory", "system", "--output-shared-memory-size",
                      "4096"],
    "asynchronous": ["--async", "--concurrency-range", "16", "-b", "2"],
    "a given shape": ["--concurrency-range", "4", "--shape", "ARGS[0]:8,8", "--input-data", "random"],
    "a request rate": ["--request-rate-range", "300"],
    "metrics": ["--concurrency-range", "2", "--collect-metrics", "--metrics-url"],  # the address follows
}

GRPC_FORMS = {
    "gRPC": ["--concurrency-range", "4"],
    "gRPC, streams": ["--streaming", "--async", "--concurrency-range", "8"],
    "gRPC, asynchronous": ["--async", "--concurrency-range", "16", "-b", "2"],
    "gRPC, shared memory": ["--concurrency-range", "4", "--shared-memory", "system", "--output-shared-memory-size", "4096"],
    "gRPC, compressed": ["--concurrency-range", "4", "--grpc-compression-algorithm", "gzip"],
    "gRPC, a request rate": ["--request-rate-range", "300"],
}


def install(folder):
    """The program, and the environment that its linker needs."""
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, *WHEELS], check=True)
        (folder / "complete").touch()
    program = folder / "bin/perf_analyzer"
    program.chmod(0o755)
    env = {**os.environ, "LD_LIBRARY_PATH": f"{folder / 'nvidia/cuda_runtime/lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    linked = subprocess.run(["ldd", program], env=env, capture_output=True, text=True, check=True).stdout
    missing = [line.split()[0] for line in linked.splitlines() if "not found" in line]
    if missing:
        sys.exit(f"perf_analyzer needs {', '.join(missing)}, of the package libb64-0d")
    return program, env


def main():
    parser = arguments(__doc__)
    parser.add_argument("--requests", type=int, default=500)
    args = parser.parse_args()
    program, env = install(args.build / "bench-peers/perf_analyzer")
    port = 18900 + os.getpid() % 90
    metrics = f"127.0.0.1:{port + 100}"
    grpc = f"127.0.0.1:{port + 200}"
    has_grpc = (args.build / "src/libsconcegrpc.so.0").exists()
    server = subprocess.Popen([args.build / "server/sconce", "serve", ROOT / "examples/digits/digits.pt2", "--http",
                               f"127.0.0.1:{port}", "--metrics", metrics, "--admin", "off", "--drain-grace", "0",
                               "--allow-shared-memory", "true", *(["--grpc", grpc] if has_grpc else [])], stderr=subprocess.DEVNULL)
    failed = 0
    try:
        wait_for(port, "/v2/health/ready")
        for form, flags in (FORMS | GRPC_FORMS if has_grpc else FORMS).items():
            protocol = ["-u", grpc, "-i", "grpc"] if form in GRPC_FORMS else ["-u", f"127.0.0.1:{port}", "-i", "http"]
            # Windows of this many requests, without waiting until two agree: this is no measurement.
            command = [program, "-m", "digits", *protocol, "--measurement-mode", "count_windows",
                       "--measurement-request-count", str(args.requests), "-s", "999", *flags]
            if form == "metrics":
                command.append(f"{metrics}/metrics")
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            good = [line for line in lines if "throughput" in line]
            failed += not good or done.returncode != 0
            print(f"{form:22} {good[-1] if good else 'FAILED: ' + ' '.join(lines[-2:])}", flush=True)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    if not has_grpc:
        print("libsconce_grpc is not built: gRPC was not tried")
    print(f"{len(FORMS) + len(GRPC_FORMS) * has_grpc - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
