"""A `sconce serve` process that also speaks gRPC, for the tests of it."""
import re

from serving import HeldServer, Server

SERVICE = "inference.GRPCInferenceService"


class Grpc:
    """Of a class of servers, with the address of gRPC."""

    def __init__(self, *serve, flags=(), **more):
        super().__init__(*serve, flags=["--grpc", "127.0.0.1:0", *flags], **more)
        self.grpc_port = int(re.search(r"inference by gRPC on \S+:(\d+)", "".join(self.log)).group(1))

    @property
    def grpc(self):
        return f"127.0.0.1:{self.grpc_port}"


class GrpcServer(Grpc, Server):
    pass


class HeldGrpcServer(Grpc, HeldServer):
    pass
