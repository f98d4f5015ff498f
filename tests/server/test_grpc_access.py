"""gRPC with tokens, TLS and certificates: as HTTP's public listener."""
import pytest
from certificates import authority, stranger  # noqa: F401
from grpc_serving import GrpcServer
from serving import FAKE_MODELS, PROGRAM, run_serve, until
from test_tls import tls_flags

grpc = pytest.importorskip("grpc", reason="tritonclient[grpc] is not installed: ./dev test installs it into .venv")
pytest.importorskip("tritonclient.grpc")
from tritonclient.grpc import service_pb2 as pb  # noqa: E402
from tritonclient.grpc import service_pb2_grpc  # noqa: E402

pytestmark = pytest.mark.skipif(not list(PROGRAM.parent.parent.glob("src/libsconcegrpc.so*")),
                                reason="libsconce_grpc is not built: libgrpc++-dev is missing")
FAKE = FAKE_MODELS / "fake_model.so"
INFER, ADMIN = "infer-infer-infer-1", "admin-admin-admin-1"
Code = grpc.StatusCode


def infer_request():
    request = pb.ModelInferRequest(model_name="fake")
    request.inputs.add(name="INPUT__0", datatype="FP32", shape=[1, 4]).contents.fp32_contents.extend([1, 1, 1, 1])
    return request


# Method, request, and the scope without which it is refused; None: needs none; "off": http_admin is needed.
METHODS = [
    ("ServerLive", pb.ServerLiveRequest(), None), ("ServerReady", pb.ServerReadyRequest(), None),
    ("ModelReady", pb.ModelReadyRequest(name="fake"), "infer"), ("ServerMetadata", pb.ServerMetadataRequest(), "infer"),
    ("ModelMetadata", pb.ModelMetadataRequest(name="fake"), "infer"), ("ModelConfig", pb.ModelConfigRequest(name="fake"), "infer"),
    ("ModelStatistics", pb.ModelStatisticsRequest(), "infer"), ("ModelInfer", infer_request(), "infer"),
    ("RepositoryIndex", pb.RepositoryIndexRequest(), "infer"),
    ("SystemSharedMemoryStatus", pb.SystemSharedMemoryStatusRequest(), "infer"),
    ("SystemSharedMemoryUnregister", pb.SystemSharedMemoryUnregisterRequest(), "infer"),
    ("CudaSharedMemoryStatus", pb.CudaSharedMemoryStatusRequest(), "infer"),
    ("CudaSharedMemoryUnregister", pb.CudaSharedMemoryUnregisterRequest(), "infer"),
    ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name="fake"), "admin"),
    ("TraceSetting", pb.TraceSettingRequest(), "admin"), ("LogSettings", pb.LogSettingsRequest(), "admin"),
    ("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(model_name="fake"), "admin"),
]


def code(stub, method, request, token=None, timeout=20):
    metadata = [("authorization", f"Bearer {token}")] if token else []
    try:
        getattr(stub, method)(request, metadata=metadata, timeout=timeout)
    except grpc.RpcError as error:
        return error.code()
    return Code.OK


@pytest.mark.parametrize("http_admin", [True, False])
def test_every_method_asks_for_its_scope(tmp_path, http_admin):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"infer {INFER}\nadmin {ADMIN}\n")
    with GrpcServer(f"fake={FAKE}", wait=False, flags=["--token-file", str(tokens), "--http-admin", str(http_admin).lower()]) as server:
        with grpc.insecure_channel(server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            until(lambda: stub.ServerReady(pb.ServerReadyRequest()).ready)
            for method, request, scope in METHODS:
                if scope is None:
                    assert code(stub, method, request) == Code.OK
                    continue
                needs_admin = scope == "admin" and http_admin
                right, wrong = (ADMIN, INFER) if needs_admin else (INFER, ADMIN)
                assert code(stub, method, request) == Code.UNAUTHENTICATED, method
                assert code(stub, method, request, "no-such-token-at-all") == Code.PERMISSION_DENIED, method
                assert code(stub, method, request, wrong) == Code.PERMISSION_DENIED, method
                expected = Code.PERMISSION_DENIED if scope == "admin" and not http_admin else Code.OK
                assert code(stub, method, request, right) == expected, method
            streamed = stub.ModelStreamInfer(iter([infer_request()]))
            assert "token" in next(streamed).error_message.lower()


def test_shared_memory_is_off_unless_allowed():
    with GrpcServer(f"fake={FAKE}") as server, grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        register = pb.SystemSharedMemoryRegisterRequest(name="x", key="/x", byte_size=8)
        over_http = server.post("/v2/systemsharedmemory/region/x/register", {"key": "/x", "byte_size": 8}).status
        assert over_http in (403, 501)
        assert code(stub, "SystemSharedMemoryRegister", register) in (Code.PERMISSION_DENIED, Code.UNIMPLEMENTED)
        request = infer_request()
        request.inputs[0].ClearField("contents")
        request.inputs[0].parameters["shared_memory_region"].string_param = "x"
        request.inputs[0].parameters["shared_memory_byte_size"].int64_param = 16
        assert code(stub, "ModelInfer", request) == Code.PERMISSION_DENIED


def credentials(authority, certificate=None):
    chain = {} if certificate is None else {"private_key": certificate[1].read_bytes(), "certificate_chain": certificate[0].read_bytes()}
    return grpc.ssl_channel_credentials(root_certificates=authority.ca.read_bytes(), **chain)


def live(server, chosen, timeout=20):
    with grpc.secure_channel(f"localhost:{server.grpc_port}", chosen) as channel:
        return code(service_pb2_grpc.GRPCInferenceServiceStub(channel), "ServerLive", pb.ServerLiveRequest(), timeout=timeout)


def test_tls_and_certificates(authority, stranger):
    pair = authority.issue("grpc-server")
    with GrpcServer(f"fake={FAKE}", wait=False, flags=tls_flags(*pair, modes=("on", "off", "off"))) as server:
        assert live(server, credentials(authority)) == Code.OK
        assert live(server, credentials(stranger), timeout=3) in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
        with grpc.insecure_channel(server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            assert code(stub, "ServerLive", pb.ServerLiveRequest(), timeout=3) in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
    flags = tls_flags(*pair, modes=("mutual", "off", "off"), ca=authority.ca)
    with GrpcServer(f"fake={FAKE}", wait=False, flags=flags) as server:
        assert live(server, credentials(authority, authority.issue("grpc-client"))) == Code.OK
        assert live(server, credentials(authority), timeout=3) in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
        assert live(server, credentials(authority, stranger.issue("grpc-stranger")), timeout=3) in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)


def test_an_open_address_needs_a_token_for_what_it_needs_over_http():
    for flags in (["--http-admin", "true"], ["--allow-shared-memory", "true"]):
        status, log = run_serve("--grpc", "0.0.0.0:0", *flags, f"fake={FAKE}")
        assert status != 0 and "others can reach" in log
