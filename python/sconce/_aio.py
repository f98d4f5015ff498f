"""Connections on asyncio's streams, and the pool that keeps them."""
import asyncio

from sconce import _http
from sconce._blocking import MOST_IDLE, late
from sconce._client_errors import BadAnswer, ConnectionFailed, NotDelivered


class Connection:
    def __init__(self, reader, writer):
        self.reader, self.writer, self.used = reader, writer, False

    def stale(self):
        return self.reader.at_eof() or self.writer.is_closing()

    async def hold(self, conversation):
        result, error = None, None
        try:
            while True:
                step = conversation.throw(error) if error else conversation.send(result)
                result = error = None
                try:
                    result = await self.step(step)
                except (BrokenPipeError, ConnectionResetError) as caught:
                    error = caught
        except StopIteration as end:
            return end.value

    async def step(self, step):
        if step[0] == "send":
            self.writer.writelines(step[1])
            await self.writer.drain()
            return None
        if step[0] == "fill":
            data = await self.reader.read(min(len(step[1]), 1 << 20))
            step[1][:len(data)] = data
            return len(data)
        return await self.reader.read(256 << 10)


class Pool:
    """Kept connections to one server, of one event loop."""

    def __init__(self, address, context, most):
        self.address, self.context, self.most_answer = address, context, most
        self.idle, self.closed, self.loop = [], False, None

    async def take(self, fresh):
        loop = asyncio.get_running_loop()
        if self.loop is not loop:
            # Connections of a loop that is gone (asyncio.run() twice) serve no more.
            self.idle, self.loop = [], loop
        while self.idle and not fresh:
            connection = self.idle.pop()
            if not connection.stale():
                return connection
            connection.writer.close()
        try:
            extra = {"server_hostname": self.address.host} if self.context else {}
            return Connection(*await asyncio.open_connection(self.address.host, self.address.port, ssl=self.context,
                                                             limit=1 << 20, **extra))
        except OSError as error:
            raise ConnectionFailed(f"{self.address.text}: cannot connect: {error}") from None

    async def exchange(self, method, target, fields, buffers, deadline):
        head = _http.head(method, self.address.prefix + target, self.address.field, fields)
        try:
            return await asyncio.wait_for(self.until_delivered(head, method, buffers), deadline.left())
        except (TimeoutError, asyncio.TimeoutError):
            raise late(self.address, deadline) from None

    async def until_delivered(self, head, method, buffers):
        try:
            return await self.talk(head, method, buffers, fresh=False)
        except NotDelivered:
            return await self.talk(head, method, buffers, fresh=True)

    async def talk(self, head, method, buffers, fresh):
        connection = await self.take(fresh)
        keep = False
        try:
            answer = await connection.hold(
                _http.conversation(method, head, buffers, connection.used, self.most_answer))
            keep = answer.keep
            return answer
        except (ConnectionFailed, BadAnswer) as error:
            raise type(error)(f"{self.address.text}: {error}") from None
        except TimeoutError:
            raise
        except OSError as error:
            raise ConnectionFailed(f"{self.address.text}: {error}") from None
        finally:
            connection.used = True
            if keep and not self.closed and len(self.idle) < MOST_IDLE:
                self.idle.append(connection)
            elif keep:
                connection.writer.close()
            else:
                connection.writer.transport.abort()  # without waiting for what is still to be sent

    async def close(self):
        self.closed, idle, self.idle = True, self.idle, []
        for connection in idle:
            connection.writer.close()
        for connection in idle:
            try:
                await asyncio.wait_for(connection.writer.wait_closed(), 1)
            except (OSError, TimeoutError):
                pass
