"""What a request costs in system calls: it is received, answered, and waited for."""
import struct

import pytest
from serving import FAKE_MODELS, PROGRAM, Server, binary

COUNTER = PROGRAM.parent.parent / "tests/server/count_calls.so"
REQUESTS = 2000


def request():
    body, headers = binary(struct.pack("<8f", *range(8)), parameters={"binary_data_output": True})
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return (f"POST /v2/models/fake/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{fields}\r\n".encode()
            + body)


def receive(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(65536)
        assert part
        data += part
    return data


def answer_size(connection):
    """Of the next answer, which is read."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(65536)
    assert head.startswith(b"HTTP/1.1 200"), head
    head, _, body = head.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    receive(connection, length - len(body))
    return len(head) + 4 + length


def calls(tmp_path, place, connections):
    """System calls for each of many requests, one on each connection at a time."""
    count_file = tmp_path / "count"
    count_file.write_bytes(bytes(8))
    with Server(f"fake={FAKE_MODELS / 'fake_model.so'}",
                flags=["--io-threads", "1", "--busy-poll", "0", "--inline-below", "1s" if place == "here" else "0"],
                environment={"LD_PRELOAD": str(COUNTER), "COUNT_FILE": str(count_file)}) as server:
        clients = [server.connect(30) for _ in range(connections)]
        data = request()

        def counted():
            return struct.unpack("<Q", count_file.read_bytes())[0]

        size = 0
        for client in clients:
            for _ in range(20):
                client.sendall(data)
                size = answer_size(client)
        before = counted()
        assert before > 20  # the counter works
        for _ in range(REQUESTS // connections):
            for client in clients:
                client.sendall(data)
            for client in clients:
                assert receive(client, size).startswith(b"HTTP/1.1 200")
        spent = counted() - before
        for client in clients:
            client.close()
        assert server.stop() == 0
    return spent / (REQUESTS // connections * connections)


@pytest.mark.skipif(not COUNTER.exists(), reason="not built with sanitizers")
@pytest.mark.parametrize("connections", [1, 8])
def test_a_request_is_received_answered_and_waited_for(tmp_path, connections):
    """No empty socket is read, no timer set, no descriptor registered anew. A tenth is for the ticks."""
    assert calls(tmp_path, "here", connections) < 3.1


@pytest.mark.skipif(not COUNTER.exists(), reason="not built with sanitizers")
def test_a_lane_adds_its_sleep_and_what_wakes_either_thread(tmp_path):
    """The lane's sleep and its end, the I/O thread's second wait and what ends it."""
    assert calls(tmp_path, "lane", 1) < 7.1
