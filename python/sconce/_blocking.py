"""Connections on blocking sockets, and the pool that keeps them. Whatever the server does, a call ends at its deadline."""
import random
import select
import socket
import threading
import time

from sconce import _http
from sconce._client_errors import ConnectionFailed, NotDelivered
from sconce._errors import DeadlineExceeded

MOST_IDLE = 64
_SEND_AT_ONCE = 64


class Deadline:
    def __init__(self, seconds):
        self.seconds = seconds
        self.end = None if seconds is None else time.monotonic() + seconds

    def left(self):
        """Seconds left, or None without limit. Raises when there are none."""
        if self.end is None:
            return None
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def allows(self, seconds):
        return self.end is None or time.monotonic() + seconds < self.end


class Connection:
    def __init__(self, address, context, deadline):
        self.address, self.used = address, False
        try:
            self.socket = socket.create_connection((address.host, address.port), timeout=deadline.left())
        except TimeoutError:
            raise
        except OSError as error:
            raise ConnectionFailed(f"{address.text}: cannot connect: {error}") from None
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context:
                self.socket.settimeout(deadline.left())
                self.socket = context.wrap_socket(self.socket, server_hostname=address.host)
        except TimeoutError:
            self.close()
            raise
        except OSError as error:  # ssl.SSLError among them
            self.close()
            raise ConnectionFailed(f"{address.text}: no TLS: {error}") from None
        except BaseException:
            self.close()
            raise

    def close(self):
        self.socket.close()

    def stop(self):
        """Ends what another thread does on it."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended already

    def stale(self):
        """An idle connection has nothing to say; what can be read is its end."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def hold(self, conversation, deadline):
        """Carries the conversation's steps out and returns what it returns."""
        result, error = None, None
        try:
            while True:
                step = conversation.throw(error) if error else conversation.send(result)
                result = error = None
                try:
                    result = self.step(step, deadline)
                except (BrokenPipeError, ConnectionResetError, ConnectionAbortedError) as caught:
                    error = caught if not isinstance(caught, ConnectionAbortedError) else ConnectionResetError(str(caught))
        except StopIteration as end:
            return end.value

    def step(self, step, deadline):
        what = step[0]
        if what == "send":
            return self.send([memoryview(b).cast("B") for b in step[1] if len(b)], deadline)
        if what == "poll":
            wait = step[1] if deadline.end is None else min(step[1], deadline.left())
            pending = getattr(self.socket, "pending", lambda: 0)()
            if not pending and not select.select([self.socket], [], [], wait)[0]:
                return None
        self.socket.settimeout(deadline.left())
        if what == "fill":
            return self.socket.recv_into(step[1])
        return self.socket.recv(256 << 10)

    def send(self, buffers, deadline):
        if not hasattr(self.socket, "context"):  # no TLS
            while buffers:
                self.socket.settimeout(deadline.left())
                sent = self.socket.sendmsg(buffers[:_SEND_AT_ONCE])
                while buffers and sent >= len(buffers[0]):
                    sent -= len(buffers.pop(0))
                if sent:
                    buffers[0] = buffers[0][sent:]
            return
        # A record of TLS for the head and small tensors together, not one each.
        if sum(map(len, buffers)) <= _http.PIECE:
            buffers = [memoryview(b"".join(buffers))]
        for buffer in buffers:
            while buffer:
                self.socket.settimeout(deadline.left())
                buffer = buffer[self.socket.send(buffer[:_http.PIECE]):]


class Pool:
    """Kept connections to one server. Thread-safe; a connection serves one thread at a time."""

    def __init__(self, address, context, most):
        self.address, self.context, self.most_answer = address, context, most
        self.lock, self.idle, self.closed = threading.Lock(), [], False

    def take(self, deadline, fresh=False):
        while not fresh:
            with self.lock:
                connection = self.idle.pop() if self.idle else None
            if connection is None:
                break
            if not connection.stale():
                return connection
            connection.close()
        try:
            return Connection(self.address, self.context, deadline)
        except TimeoutError:
            raise late(self.address, deadline, "no connection") from None

    def give_back(self, connection, keep):
        connection.used = True
        with self.lock:
            if keep and not self.closed and len(self.idle) < MOST_IDLE:
                self.idle.append(connection)
                return
        connection.close()

    def close(self):
        with self.lock:
            self.closed, idle, self.idle = True, self.idle, []
        for connection in idle:
            connection.close()

    def exchange(self, method, target, fields, buffers, deadline, fresh=False):
        """Sends one request and returns the Answer. If a kept connection was closed meanwhile, uses another."""
        head = _http.head(method, self.address.prefix + target, self.address.field, fields)
        for attempt_fresh in (fresh, True):
            connection = self.take(deadline, attempt_fresh)
            try:
                return self.talk(connection, _http.conversation(method, head, buffers, connection.used, self.most_answer),
                                 deadline)
            except NotDelivered:
                pass  # a fresh connection has not been used, and so does not end here
        raise AssertionError

    def upload(self, method, target, fields, pieces, deadline, opened):
        """opened(connection) is told on which connection the body goes, so that another thread can stop it."""
        head = _http.head(method, self.address.prefix + target, self.address.field, fields)
        connection = self.take(deadline, fresh=True)
        opened(connection)
        return self.talk(connection,
                         _http.upload(method, head, pieces, self.most_answer), deadline)

    def talk(self, connection, conversation, deadline):
        keep = False
        try:
            answer = connection.hold(conversation, deadline)
            keep = answer.keep
            return answer
        except (ConnectionFailed, _http.BadAnswer) as error:
            raise type(error)(f"{self.address.text}: {error}") from None
        except TimeoutError as error:
            if isinstance(error, DeadlineExceeded):
                raise
            raise late(self.address, deadline) from None
        except OSError as error:
            if isinstance(error, ConnectionError) or error.errno is not None:
                raise ConnectionFailed(f"{self.address.text}: {error}") from None
            raise
        finally:
            self.give_back(connection, keep)


def late(address, deadline, why="no whole answer"):
    return DeadlineExceeded(f"{address.text}: {why} within {deadline.seconds:g} s")


def pause_before(answer, attempt):
    """How long to wait before a request is sent again that was answered 429 or 503."""
    named = answer.retry_after()
    if named is not None:
        return max(named, 0.01)
    return min(0.1 * 2 ** attempt, 5) * random.uniform(0.5, 1)


def again(answer, attempt, deadline):
    """The pause if the request is to be sent again, else None."""
    if answer.status not in (429, 503):
        return None
    pause = pause_before(answer, attempt)
    return pause if deadline.allows(pause) else None
