"""Servers that answer wrongly, slowly or not at all: raw sockets with a script each."""
import select
import socket
import threading


class Hostile:
    """Answers each connection by script(connection, request), on a thread of its own. The request is what has arrived up
    to the end of its head."""

    def __init__(self, script):
        self.script, self.requests = script, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                while data := self.read(connection):
                    self.requests.append(data)
                    if self.script(connection, data) == "close":
                        return
            except OSError:
                pass

    @staticmethod
    def read(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return b""
            data += piece
        return data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def hung_up(connection, seconds):
    """Whether the client hangs up within this time."""
    waiting = select.poll()
    waiting.register(connection, select.POLLRDHUP)
    return bool(waiting.poll(1000 * seconds))


def say_nothing(connection, *_):
    """A script: neither reads nor answers until the client hangs up."""
    hung_up(connection, 60)
    return "close"


METADATA = (b'{"name":"m","versions":["1"],"platform":"x","inputs":[{"name":"ARGS[0]","datatype":"FP32","shape":[-1]}],'
            b'"outputs":[{"name":"RESULT","datatype":"FP32","shape":[-1]}]}')


def answer(body, status=b"200 OK", fields=b""):
    return b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n" % len(body) + fields + b"\r\n" + body


def model(infer):
    """A script that answers metadata rightly and inference by infer: bytes, or a function of the connection."""
    def script(connection, request):
        if request.startswith(b"GET /v2/models/m "):
            connection.sendall(answer(METADATA))
            return None
        if callable(infer):
            return infer(connection)
        connection.sendall(infer)
        return "close"
    return script


def tensor(name="RESULT", datatype="FP32", shape="[1]", size="4", data=b"\0\0\x80?", end=b""):
    """An answer of /infer with one binary output."""
    text = (f'{{"outputs":[{{"name":"{name}","datatype":"{datatype}","shape":{shape},'
            f'"parameters":{{"binary_data_size":{size}}}}}]}}').encode() + end
    return answer(text + data, fields=b"Inference-Header-Content-Length: %d\r\n" % len(text))
