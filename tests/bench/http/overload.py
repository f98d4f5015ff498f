#!/usr/bin/env python3
"""Sends ten times the load that a model can serve: measures refusals, and whether served requests are as fast as before.

The model takes 1 ms per run and has one replica; 16 requests may wait. First runs at full speed, then at ten times that
rate whatever the answers are, then at full speed again.

    ninja -C build/release http_bench && tests/bench/http/overload.py [--build DIR] [--seconds S]
"""
import json
import os
import signal
import subprocess
import tempfile

from run import arguments, request_bytes, wait_for


def main():
    args = arguments(__doc__, seconds=3).parse_args()
    programs = args.build / "tests/bench/http"
    port = 18600 + os.getpid() % 200
    server = subprocess.Popen([args.build / "server/sconce", "serve",
                               f"model={args.build / 'tests/fake_model/fake_model.so'}", "--http", f"127.0.0.1:{port}",
                               "--metrics", "off", "--admin", "off", "--io-threads", "1", "--drain-grace", "0",
                               "--set", "model.queue=16"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**os.environ, "FAKE_MODEL_SLEEP_US": "1000"})

    def run(program, *arguments):
        return json.loads(subprocess.run([programs / program, str(port), *arguments, str(args.seconds), request.name],
                                         stdout=subprocess.PIPE, check=True).stdout)

    with tempfile.NamedTemporaryFile() as request:
        request.write(request_bytes("model", 1, 4))
        request.flush()
        try:
            wait_for(port, "/v2/health/ready")
            before = run("http_load", "8")["requests_per_second"]
            over = run("http_overload", str(10 * before))
            after = run("http_load", "8")["requests_per_second"]
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
    print(f"capacity {before} requests/s; {after} after the overload")
    for name in ("served", "refused"):
        part = over[name]
        print(f"{name:8} {part['count'] / over['seconds']:8.0f} requests/s  p50 {part['p50_us']:8.0f} us  "
              f"p99 {part['p99_us']:8.0f} us  most {part['most_us']:8.0f} us")


if __name__ == "__main__":
    main()
