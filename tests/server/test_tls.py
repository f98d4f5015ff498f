"""TLS on every listener: access, reloading, and that everything else works as without TLS."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest
from admin_server import FAKE, GOOD, LARGE, LARGE_FEATURES, AdminServer, chunks, expected
from certificates import authority, stranger  # noqa: F401
from serving import PROGRAM, binary, fake_expected, numbers, read_all, read_answer, run_serve, threads, untaken, until
from weights_files import fake_weights

LISTENERS = {"inference": ("http", "/v2"), "metrics": ("metrics", "/metrics"), "administration": ("admin", "/v2/admin/models/fake/weights")}


class TlsServer(AdminServer):
    def __init__(self, *serve, context, **more):
        self.context = context
        super().__init__(*serve, **more)

    def client(self, port, timeout, context=None):
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout, context=context or self.context)

    def connect(self, timeout=30, context=None, listener="inference"):
        plain = socket.create_connection(("127.0.0.1", self.ports[listener]), timeout=timeout)
        return (context or self.context).wrap_socket(plain, server_hostname="127.0.0.1")

    def connect_admin(self):
        return self.connect(20, listener="administration")


def tls_flags(certificate, key, modes=("on", "on", "on"), ca=None):
    http_tls, metrics_tls, admin_tls = modes
    return ["--http-tls", http_tls, "--metrics-tls", metrics_tls, "--admin-tls", admin_tls, "--tls-certificate", str(certificate),
            "--tls-key", str(key), *(["--tls-client-ca", str(ca)] if ca else [])]


@pytest.fixture(scope="module")
def pair(authority):
    return authority.issue("server")


@pytest.fixture(scope="module")
def server(authority, pair):
    with TlsServer(f"fake={FAKE}", f"large={LARGE}", context=authority.context(),
                   flags=[*tls_flags(*pair), "--tls-handshake-timeout", "500ms", "--upload-timeout", "500ms"]) as running:
        yield running


# As without TLS.

def test_every_listener_speaks_it(server):
    for listener, (_, path) in LISTENERS.items():
        assert server.get(path, port=server.ports[listener]).status == 200
        assert f"{listener} on https://" in "".join(server.log)
    assert server.ones()[0]
    assert b"https://127.0.0.1" in server.get("/").body


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_bodies_of_all_sizes_on_one_connection(server, authority, version):
    context = authority.context()
    context.minimum_version = context.maximum_version = version
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30, context=context)
    connection.connect()
    first = connection.sock
    for rows in (1, 2, 1000, 4096, 100_000):
        values = [float(i % 50) for i in range(4 * rows)]
        connection.request("POST", "/v2/models/fake/infer",
                           *binary(struct.pack(f"<{4 * rows}f", *values), parameters={"binary_data_output": True}))
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200 and connection.sock is first
        data = body[int(answer.headers["Inference-Header-Content-Length"]):]
        assert struct.unpack("<4f", data[-16:]) == tuple(fake_expected(values[-4:])) or server.ones()[1] > 1
        assert len(data) == 16 * rows
    assert connection.sock.version() == {ssl.TLSVersion.TLSv1_2: "TLSv1.2", ssl.TLSVersion.TLSv1_3: "TLSv1.3"}[version]
    connection.close()


def test_pieces_and_pipelines(server):
    one = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with server.connect() as connection:
        for byte in one:
            connection.sendall(bytes([byte]))
        assert read_answer(connection)[0] == 200
        connection.sendall(50 * one)
        rest = b""
        for _ in range(50):
            status, _, _, rest = read_answer(connection, rest)
            assert status == 200
        connection.sendall(b"POST /v2/models/fake/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
                           chunks(json.dumps(numbers([1] * 4)).encode(), 7))
        assert read_answer(connection)[0] == 200
        connection.sendall(b"BROKEN\r\n\r\n")
        assert read_answer(connection)[0] == 400
        assert connection.recv(100) == b""  # the server closed TLS properly


def test_a_client_that_reads_slowly(server):
    rows = 1_000_000
    body, fields = binary(bytes(16 * rows), parameters={"binary_data_output": True})
    fields = {"Host": "localhost", "Content-Length": len(body), **fields}
    with server.connect(30) as connection:
        connection.sendall(b"POST /v2/models/fake/infer HTTP/1.1\r\n"
                           + "".join(f"{key}: {value}\r\n" for key, value in fields.items()).encode() + b"\r\n" + body)
        until(lambda: untaken(connection) > 50_000)  # what the sockets hold; the answer is larger than they can be
        status, _, body, _ = read_answer(connection)
        assert status == 200 and len(body) > 16 * rows
    assert server.get("/v2/health/ready").status == 200


# Weights.

def test_uploads(server):
    data = fake_weights(9, LARGE_FEATURES)
    assert server.push("large", data, "commit=true").status == 200
    assert server.push("large", iter([data[i:i + 70_000] for i in range(0, len(data), 70_000)]), "commit=true").status == 200
    with server.begin_push("fake", GOOD, 0, "dry_run=true", "Expect: 100-continue\r\n") as connection:
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        for i in range(0, len(GOOD), 25):
            connection.sendall(GOOD[i:i + 25])
        assert read_answer(connection)[0] == 200
        connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_answer(connection)[0] == 200
    server.admin("POST", "large/weights/release")
    before = server.ones(), server.sets("large")
    with server.begin_push("fake", GOOD, 50) as connection:
        status, _, body, _ = read_answer(connection)
        assert status == 408 and b"50 of" in body
    with server.begin_push("large", data, 1_000_000, "commit=true"):
        until(server.running)
    until(lambda: not server.running())
    assert (server.ones(), server.sets("large")) == before


@pytest.fixture()
def weights(tmp_path):
    path = tmp_path / "new.safetensors"
    path.write_bytes(fake_weights(6))
    return path


def sconce_weights(*arguments):
    done = subprocess.run([PROGRAM, "weights", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_the_client(server, authority, stranger, weights):
    port = server.admin_port
    for host in ("127.0.0.1", "localhost"):
        status, output = sconce_weights("push", weights, "--model", "fake", "--to", f"https://{host}:{port}", "--ca", authority.ca)
        assert status == 0, output
    assert server.ones()[0] == expected(6)
    assert sconce_weights("status", "--model", "fake", "--to", f"https://127.0.0.1:{port}", "--ca", authority.ca)[0] == 0
    for ca in (["--ca", stranger.ca], []):
        status, output = sconce_weights("status", "--model", "fake", "--to", f"https://127.0.0.1:{port}", *ca)
        assert status == 1 and "certificate was refused" in output
    assert sconce_weights("status", "--model", "fake", "--to", f"http://127.0.0.1:{port}")[0] == 1
    status, output = sconce_weights("status", "--model", "fake", "--to", f"https://127.0.0.1:{port}", "--ca", "/nowhere")
    assert status == 2 and "/nowhere" in output


def test_the_client_asks_for_the_right_host(authority, weights):
    with TlsServer(f"fake={FAKE}", context=unchecked(), flags=tls_flags(*authority.issue("elsewhere", "DNS:elsewhere"))) as server:
        status, output = sconce_weights("push", weights, "--model", "fake", "--ca", authority.ca, "--to",
                                        f"https://127.0.0.1:{server.ports['administration']}")
        assert status == 1 and "certificate was refused" in output
        assert server.ones()[1] == 1


def unchecked():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# Refused clients.

def test_what_is_no_tls(server):
    for data in (b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\xff\xff" + os.urandom(1000), b"\x80" * 100, os.urandom(500)):
        for listener in LISTENERS:
            with socket.create_connection(("127.0.0.1", server.ports[listener]), timeout=30) as connection:
                connection.sendall(data)
                assert b"HTTP/1.1 200" not in read_all(connection)
    assert server.get("/v2/health/ready").status == 200


def test_old_versions(server):
    context = unchecked()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        server.connect(context=context)


def test_handshakes_have_a_time_limit(server):
    start = time.time()
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(20)]
    half = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    half.sendall(b"\x16\x03\x01\x02\x00\x01")
    assert server.get("/v2/health/live").status == 200  # stalled handshakes delay nobody
    for connection in (*silent, half):
        assert read_all(connection) == b""
        connection.close()
    assert 0.4 < time.time() - start < 20


@pytest.mark.parametrize("listener", LISTENERS)
def test_certificates_of_clients(authority, stranger, pair, listener):
    modes = ["mutual" if name == listener else "on" for name in LISTENERS]
    own, foreign = authority.issue("client"), stranger.issue("foreigner")
    with TlsServer(f"fake={FAKE}", context=authority.context(), wait=listener != "inference",
                   flags=tls_flags(*pair, modes, authority.ca)) as server:
        for name, (_, path) in LISTENERS.items():
            port = server.ports[name]
            assert server.request("GET", path, port=port, context=authority.context(own)).status in (200, 503)
            if name != listener:
                assert server.request("GET", path, port=port).status in (200, 503)
                continue
            for context in (authority.context(), authority.context(foreign)):
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    server.request("GET", path, port=port, context=context)
        if listener == "administration":
            address = ["--to", f"https://127.0.0.1:{server.ports[listener]}", "--ca", authority.ca]
            assert sconce_weights("status", "--model", "fake", *address)[0] == 1
            assert sconce_weights("status", "--model", "fake", *address, "--certificate", own[0], "--key", own[1])[0] == 0
            assert sconce_weights("status", "--model", "fake", *address, "--certificate", own[0])[0] != 0


def test_a_client_certificate_opens_other_addresses(authority, pair):
    for key, mode in (("metrics", 1), ("admin", 2)):
        modes = ["off", "off", "off"]
        modes[mode] = "mutual"
        with TlsServer(f"fake={FAKE}", context=None, wait=False,
                       flags=[*tls_flags(*pair, modes, authority.ca), f"--{key}", "0.0.0.0:0"]) as server:
            assert len(server.ports) == 3
        modes[mode] = "on"
        status, output = run_serve(f"fake={FAKE}", *tls_flags(*pair, modes), f"--{key}", "0.0.0.0:0")
        assert status != 0 and f"setting {key}" in output


def refused(server, context, listener, path):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        server.request("GET", path, port=server.ports[listener], context=context)
    return True


def test_clients_of_one_listener_are_none_of_another(authority, stranger, pair):
    """Each listener trusts an authority of its own: who may ask for inference is no administrator."""
    of_inference, of_admin = authority.issue("asks"), stranger.issue("administers")
    asks, administers = authority.context(of_inference), authority.context(of_admin)
    flags = [*tls_flags(*pair, ("mutual", "mutual", "mutual"), authority.ca), "--admin-tls-client-ca", stranger.ca]
    with TlsServer(f"fake={FAKE}", context=asks, flags=flags) as server:
        paths = {name: path for name, (_, path) in LISTENERS.items()}
        port = server.admin_port
        for listener in ("inference", "metrics"):
            assert server.request("GET", paths[listener], port=server.ports[listener], context=asks).status == 200
            assert refused(server, administers, listener, paths[listener])
        assert server.request("GET", paths["administration"], port=port, context=administers).status == 200
        assert refused(server, asks, "administration", paths["administration"])
        # Resuming a session of another listener does not help either.
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = authority.context(of_inference)
            context.minimum_version = context.maximum_version = version
            with server.connect(context=context) as first:
                first.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert read_answer(first)[0] == 200
                session = first.session
            plain = socket.create_connection(("127.0.0.1", port), timeout=10)
            with pytest.raises((ssl.SSLError, ConnectionError)):
                with context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as second:
                    second.sendall(b"GET /v2/admin/models/fake/weights HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert read_answer(second)[0] == 200


@pytest.mark.parametrize("own", [["http"], ["metrics"], ["http", "metrics", "admin"]])
def test_an_authority_for_each_listener(authority, stranger, pair, own):
    with TlsServer(f"fake={FAKE}", context=authority.context(stranger.issue("x")), wait=False,
                   flags=[*tls_flags(*pair, [("mutual" if key in own else "on") for key in ("http", "metrics", "admin")]),
                          *[flag for key in own for flag in (f"--{key}-tls-client-ca", stranger.ca)],
                          *(["--admin-token-file", token(authority)] if "admin" in own else [])]) as server:
        bearer = {"Authorization": "Bearer an-admin-of-the-tests"}
        for name, (key, path) in LISTENERS.items():
            assert server.request("GET", path, headers=bearer, port=server.ports[name]).status in (200, 503)
            if key in own:
                assert refused(server, authority.context(authority.issue("y")), name, path)


def token(authority):
    path = authority.folder / "admin-token"
    path.write_text("an-admin-of-the-tests\n")
    return path


def test_one_authority_for_inference_and_administration_needs_a_token(authority, stranger, pair, tmp_path):
    both = tmp_path / "both.pem"
    both.write_text(stranger.ca.read_text() + "\n" + authority.ca.read_text().replace("\n", "\r\n"))
    copy = tmp_path / "copy.pem"
    copy.write_text("a comment\n" + authority.ca.read_text())
    for modes in (("mutual", "off", "mutual"), ("off", "mutual", "mutual"), ("mutual", "mutual", "mutual")):
        base = tls_flags(*pair, modes, authority.ca)
        for extra in ([], ["--admin-tls-client-ca", authority.ca], ["--admin-tls-client-ca", copy], ["--admin-tls-client-ca", both]):
            status, output = run_serve(f"fake={FAKE}", *base, *extra, "--metrics", "127.0.0.1:0", "--admin", "127.0.0.1:0")
            assert status != 0 and "would be administrators" in output and "admin_tls_client_ca" in output, output
    with TlsServer(f"fake={FAKE}", context=authority.context(authority.issue("asks")), wait=False,
                   flags=[*tls_flags(*pair, ("mutual", "off", "mutual"), authority.ca), "--admin-token-file", token(authority)]) as server:
        port = server.admin_port
        assert server.get("/v2/admin/models/fake/weights", port=port).status == 401
        bearer = {"Authorization": "Bearer an-admin-of-the-tests"}
        assert server.get("/v2/admin/models/fake/weights", port=port, headers=bearer).status in (200, 503)


@pytest.mark.parametrize("flags, text", [
    (["--admin-tls", "on", "--admin-tls-client-ca", "C", "--tls-certificate", "C", "--tls-key", "K"], "admin_tls_client_ca needs admin_tls = mutual"),
    (["--http-tls-client-ca", "C"], "http_tls_client_ca needs http_tls = mutual"),
    (["--metrics-tls", "mutual", "--metrics-tls-client-ca", "K", "--tls-certificate", "C", "--tls-key", "K"], "no certificates"),
    (["--metrics-tls", "mutual", "--http-tls", "off", "--tls-certificate", "C", "--tls-key", "K"], "metrics_tls_client_ca"),
    (["--http-tls", "on"], "tls_certificate"), (["--http-tls", "mutual", "--tls-certificate", "C", "--tls-key", "K"], "tls_client_ca"),
    (["--admin-tls", "on", "--tls-certificate", "/nowhere", "--tls-key", "K"], "/nowhere"),
    (["--admin-tls", "on", "--tls-certificate", "K", "--tls-key", "K"], "not a certificate"),
    (["--admin-tls", "on", "--tls-certificate", "C", "--tls-key", "C"], "key"),
    (["--admin-tls", "on", "--tls-certificate", "C", "--tls-key", "OTHER"], "not"),
    (["--admin-tls", "mutual", "--tls-certificate", "C", "--tls-key", "K", "--tls-client-ca", "K"], "no certificates"),
    (["--admin-tls", "perhaps"], "one of off, on, mutual"),
])
def test_wrong_settings(authority, stranger, pair, flags, text):
    files = {"C": pair[0], "K": pair[1], "OTHER": stranger.key}
    status, output = run_serve(f"fake={FAKE}", *[files.get(f, f) for f in flags])
    assert status != 0 and text in output


# New certificates.

def serial(connection):
    return connection.getpeercert()["serialNumber"]


@pytest.mark.parametrize("signalled", [True, False])
def test_new_certificates_without_a_break(authority, stranger, tmp_path, signalled):
    for source, name in zip(authority.issue("first"), ("cert.pem", "key.pem")):
        shutil.copy(source, tmp_path / name)
    second = authority.issue("second")

    def replace(source, name):
        shutil.copy(source, tmp_path / "next")
        os.replace(tmp_path / "next", tmp_path / name)

    def settle(condition):
        if signalled:
            server.process.send_signal(signal.SIGHUP)
        until(condition)

    def refusals():
        return "".join(server.log).count("certificates stay as they were")

    def served():
        with server.connect() as connection:
            return serial(connection)

    with TlsServer(f"fake={FAKE}", context=authority.context(), flags=tls_flags(tmp_path / "cert.pem", tmp_path / "key.pem")) as server:
        stop = threading.Event()

        def ask():
            connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=10, context=authority.context())
            while not stop.is_set():
                connection.request("GET", "/v2/models/fake")
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200 and not answer.will_close

        with threads(*[ask] * 3, stop=stop), server.connect() as old:
            first = serial(old)
            # Certificate and key do not match yet, so the old ones stay.
            replace(second[0], "cert.pem")
            settle(lambda: refusals() > 0)
            assert served() == first
            replace(second[1], "key.pem")
            settle(lambda: served() != first)
            before = refusals()
            (tmp_path / "cert.pem").write_text("nonsense")
            settle(lambda: refusals() > before)
            assert served() != first
            old.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_answer(old)[0] == 200
        assert server.stop() == 0


def test_a_storm_of_reloads(authority, tmp_path):
    """Many SIGHUPs with whole, broken, partial, missing or unreadable files: clients notice nothing."""
    cert, key, tokens = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "tokens"
    pairs = [[source.read_bytes() for source in authority.issue(name)] for name in ("storm-a", "storm-b")]
    good = b"infer,metrics,admin a-token-of-the-storm\n"

    def put(pair, text):
        cert.write_bytes(pair[0])
        key.write_bytes(pair[1])
        tokens.write_bytes(text)

    put(pairs[0], good)
    bearer = {"Authorization": "Bearer a-token-of-the-storm"}
    flags = [*tls_flags(cert, key), "--token-file", str(tokens)]
    with TlsServer(f"fake={FAKE}", context=authority.context(), flags=flags, wait=False) as server:
        until(lambda: server.request("GET", "/v2/health/ready", headers=bearer).status == 200)
        files = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        stop, answered = threading.Event(), threading.Event()

        def ask(lasting):
            connection = None
            while not stop.is_set():
                connection = connection or http.client.HTTPSConnection("127.0.0.1", server.port, timeout=20,
                                                                       context=authority.context())
                connection.request("GET", "/v2/models/fake", headers=bearer)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200
                answered.set()
                if not lasting:
                    connection.close()
                    connection = None

        half = len(pairs[0][0]) // 2
        with threads(lambda: ask(True), lambda: ask(False), stop=stop):
            for turn in range(60):
                damage = [lambda: cert.write_bytes(pairs[turn % 2][0][:half]), lambda: key.write_bytes(b""),
                          lambda: cert.unlink(missing_ok=True), lambda: key.write_bytes(bytes(100_000)),
                          lambda: tokens.write_bytes(b"nonsense\n"), lambda: tokens.unlink(missing_ok=True),
                          lambda: put(pairs[turn % 2], good)]
                damage[turn % len(damage)]()
                for _ in range(5):
                    answered.clear()
                    server.process.send_signal(signal.SIGHUP)
                    assert answered.wait(30)  # two signals without pause may become one
            tokens.write_bytes(good)
            put(pairs[1], good)
            server.process.send_signal(signal.SIGHUP)
            last = ssl.PEM_cert_to_DER_cert(pairs[1][0].decode().split("-----END CERTIFICATE-----")[0]
                                                       + "-----END CERTIFICATE-----\n")

            def served():
                with server.connect() as connection:
                    return connection.getpeercert(binary_form=True)

            until(lambda: served() == last)
        assert server.request("GET", "/v2/models/fake").status == 401
        until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) <= files + 2)
        assert server.stop() == 0


# The end of a server.

def test_drain(authority, pair):
    with TlsServer(f"fake={FAKE}", context=authority.context(), flags=[*tls_flags(*pair), "--drain-grace", "2s"]) as server:
        with server.connect() as idle, server.connect() as busy, \
                socket.create_connection(("127.0.0.1", server.port), timeout=30) as silent:
            server.process.send_signal(signal.SIGTERM)
            until(lambda: server.get("/v2/health/ready").status == 503)
            assert server.ones()[0]
            busy.sendall(b"GET /v2/models/fake HTTP/1.1\r\nHost: localhost\r\n\r\n")
            status, head, _, _ = read_answer(busy)
            assert status == 200 and b"Connection: close" in head
            assert busy.recv(10) == b"" and idle.recv(10) == b"" and silent.recv(10) == b""
            assert server.process.wait(30) == 0


def test_connections_that_come_and_go_leave_nothing(server):
    def turn(count):
        for i in range(count):
            plain = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            if i % 3 == 0:
                plain.sendall(b"\x16\x03\x01" if i % 2 else b"x")
                plain.close()
                continue
            connection = server.context.wrap_socket(plain, server_hostname="127.0.0.1")
            if i % 3 == 1:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

    def descriptors():
        return len(list(pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir()))

    turn(150)
    open_files = descriptors()
    server.assert_settles(lambda: turn(200), 600)  # 3 kB a connection
    until(lambda: descriptors() <= open_files + 2)
