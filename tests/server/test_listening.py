"""Addresses of both families: `[::]`, and a host that has IPv6 alone, as pods of a cluster of IPv6 alone are."""
import http.client
import os
import shutil
import socket
import subprocess

import grpc
import pytest
from grpc_serving import GrpcServer
from serving import FAKE_MODELS, PROGRAM, Server, until

PLAIN = FAKE_MODELS / "fake_model.so"


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")


def status(host, port, path):
    connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_unspecified_address_of_ipv6_takes_both_families():
    flags = ["--http", "[::]:0", "--metrics", "[::]:0", "--metrics-open", "true", "--grpc", "[::]:0"]
    with GrpcServer(f"m={PLAIN}", flags=flags) as server:
        for host in ("127.0.0.1", "::1"):
            assert status(host, server.port, "/v2/health/ready") == 200
            assert status(host, server.ports["metrics"], "/metrics") == 200
        for target in (f"127.0.0.1:{server.grpc_port}", f"[::1]:{server.grpc_port}"):
            with grpc.insecure_channel(target) as channel:
                grpc.channel_ready_future(channel).result(30)


ALONE = ["unshare", "-n", "sh", "-c", 'ip link set lo up && ip addr del 127.0.0.1/8 dev lo && exec "$@"', "sh"]


def may_have_namespaces():
    return os.geteuid() == 0 and all(map(shutil.which, ("unshare", "nsenter", "ip"))) and subprocess.run(
        [*ALONE, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not may_have_namespaces(), reason="needs a network of its own")
def test_a_host_with_ipv6_alone():
    flags = ["--http", "[::]:0", "--metrics", "[::]:0", "--metrics-open", "true", "--admin", "[::1]:0"]
    with Server(f"m={PLAIN}", flags=flags, prefix=ALONE, wait=False) as server:
        def inside(*command, **environment):
            return subprocess.run(["nsenter", "-t", str(server.process.pid), "-n", str(PROGRAM), *command], text=True,
                                  capture_output=True, env={**os.environ, **environment})

        until(lambda: inside("health", f"http://[::1]:{server.port}").returncode == 0)
        # The listener of its own environment, as the images' health check asks it.
        asked = inside("health", SCONCE_HTTP=f"[::]:{server.port}")
        assert asked.returncode == 0, asked.stderr
        told = inside("weights", "status", "--model", "m", "--to", f"http://[::1]:{server.admin_port}")
        assert told.returncode == 0, told.stderr
