"""A client of `sconce serve`, and of other servers of the Open Inference Protocol v2. It needs NumPy and nothing else.

    import numpy as np, sconce
    with sconce.Client("http://127.0.0.1:8000") as client:
        result = client.infer("digits", np.zeros((1, 8, 8), np.float32))
        print(result["class"], result["probabilities"])
"""
import json
import os
import ssl
import threading
import time
import urllib.parse

from sconce import _http, _tensors
from sconce._blocking import Deadline, Pool, again
from sconce._client_errors import BadAnswer, ConnectionFailed, Forbidden, QueueFull, TooLarge
from sconce._client_weights import PushFailed, Weights
from sconce._errors import InvalidArgument

__all__ = ["AsyncClient", "BadAnswer", "Client", "ConnectionFailed", "Forbidden", "PushFailed", "QueueFull", "TooLarge"]

_OPTIONS = {"timeout", "priority", "version", "retry", "request_id"}


class _Common:
    """What the blocking and the asynchronous client share: settings, requests, answers."""

    def __init__(self, url="http://127.0.0.1:8000", *, token=None, admin=None, admin_token=None, ca=None, certificate=None,
                 timeout=60.0, retry=True, types=(), max_answer_bytes=4 << 30, every_address=False):
        self._address = _http.Address(url, 8000)
        self._admin = [admin] if isinstance(admin, str) else None if admin is None else list(admin)
        self._token, self._admin_token = _token(token), _token(admin_token if admin_token is not None else token)
        self._certificate, self._ca = certificate, ca
        self._context = self._context_for(self._address)
        self._most = max_answer_bytes
        self._types = {f"{t.__module__}.{t.__qualname__}": t for t in types}
        self._options = {"timeout": _seconds(timeout), "priority": None, "version": None, "retry": bool(retry),
                         "request_id": None}
        self._infos = {}  # (model, version) -> ModelInfo

    def _context_for(self, address):
        if not address.tls:
            return None
        context = ssl.create_default_context(cafile=os.fspath(self._ca) if self._ca else None)
        if self._certificate:
            pair = self._certificate
            context.load_cert_chain(*([os.fspath(pair)] if isinstance(pair, (str, os.PathLike)) else map(os.fspath, pair)))
        return context

    def options(self, **options):
        """The same client, with other settings for the calls made through it: timeout (seconds, or None for no limit),
        priority (1 is the most urgent), version of the model, retry, request_id (for the server's log). It shares the
        connections.

            client.options(timeout=0.5, version="2").infer("digits", image)
        """
        unknown = set(options) - _OPTIONS
        if unknown:
            raise TypeError(f"options(): unknown {', '.join(sorted(unknown))}; there are {', '.join(sorted(_OPTIONS))}")
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._options = {**self._options, **options}
        other._options["timeout"] = _seconds(other._options["timeout"])
        other._owner = getattr(self, "_owner", self)
        return other

    def _fields(self, **more):
        fields = {"User-Agent": "sconce-python", "Accept-Encoding": "identity", **more}
        if self._token:
            fields["Authorization"] = f"Bearer {self._token}"
        if self._options["request_id"]:
            fields["X-Request-Id"] = str(self._options["request_id"])
        return fields

    def _target(self, model, what=""):
        if not isinstance(model, str) or not model:
            raise TypeError(f"model: expected its name, got {model!r}")
        target = "/v2/models/" + urllib.parse.quote(model, safe="")
        if self._options["version"] is not None:
            target += "/versions/" + urllib.parse.quote(str(self._options["version"]), safe="")
        return target + what

    def _infer_request(self, model, info, args, kwargs, deadline):
        parameters = {}
        if self._options["priority"] is not None:
            parameters["priority"] = int(self._options["priority"])
        if deadline.end is not None:
            # The server need not compute what nobody waits for any more.
            parameters["timeout"] = max(int(deadline.left() * 1e6), 1)
        buffers, length = _tensors.infer_body(info, args, kwargs, parameters)
        fields = self._fields(**{"Content-Type": "application/octet-stream",
                                 "Inference-Header-Content-Length": str(length),
                                 "Content-Length": str(sum(len(b) for b in buffers))})
        return self._target(model, "/infer"), fields, buffers

    def _result(self, info, answer):
        return _tensors.result_of(info, _tensors.outputs_of(info, answer), self._types)

    def _document(self, answer):
        try:
            return json.loads(bytes(answer.body))
        except (ValueError, RecursionError) as error:
            raise BadAnswer(f"{self._address.text}: not JSON: {error}") from None

    def __repr__(self):
        return f"<sconce.{type(self).__name__} {self._address.text}>"


class Client(_Common):
    """Calls models on a server. Thread-safe: threads share its kept connections.

    url: "http://host:port" or "https://..."; a proxy's path prefix may follow.
    token: the server's bearer token.
    admin: URLs of the admin listeners, for `weights` (one, or a list); admin_token, if they take another token.
    ca: a file with the certificate authority for https. certificate: a client certificate's file, or (file, key).
    timeout: seconds for a whole call, retries included; None for no limit.
    retry: whether a request that is answered 429 or 503 is sent again, after the time that the server names, until the
        timeout allows no more.
    types: dataclasses and namedtuples that results are made of; others get a class of the same name and fields.
    max_answer_bytes: larger answers are refused.

    Raises InvalidArgument, NotFound, ModelFailed, QueueFull, Unavailable, DeadlineExceeded and so on, as the server
    answers, with the server's words and its HTTP status as `status`; ConnectionFailed if there is no server or it goes
    away; BadAnswer for what no model server says.
    """

    def __init__(self, url="http://127.0.0.1:8000", **settings):
        super().__init__(url, **settings)
        self._pool = Pool(self._address, self._context, self._most)
        self._lock = threading.Lock()
        self.weights = Weights(self)

    def infer(self, model, /, *args, **kwargs):
        """Calls a model as in Python and returns its result in the model's own structure, as NumPy arrays.

        Arguments are arrays, tensors of PyTorch (copied to the host if they are on a GPU), anything with DLPack, Python
        numbers or nested lists of them, in the dicts, lists and tuples that the model was exported with. Arrays are sent
        with the dtype that they have, never cast. bfloat16 results need the package ml_dtypes to keep their dtype, and are
        float32 of the same values without it.
        """
        deadline = Deadline(self._options["timeout"])
        info = self._info(model, deadline)
        target, fields, buffers = self._infer_request(model, info, args, kwargs, deadline)
        answer = self._ask("POST", target, fields, buffers, deadline)
        if answer.status == 200:
            return self._result(info, answer)
        # The model may have been replaced by one with other inputs.
        with self._lock:
            self._infos.pop((model, self._options["version"]), None)
        raise _http.problem(self._address, answer)

    async def ainfer(self, model, /, *args, **kwargs):
        """infer() without blocking the event loop, on a thread. Many calls at once are better off with AsyncClient."""
        import asyncio
        return await asyncio.to_thread(self.infer, model, *args, **kwargs)

    def models(self):
        """The server's models: a list of dicts with name, version, state (READY, LOADING, UNAVAILABLE) and a reason."""
        return self._json("POST", "/v2/repository/index")

    def metadata(self, model=None):
        """The model's inputs and outputs (ModelInfo), read anew; without a model, the server's name, version and
        extensions."""
        if model is None:
            return self._json("GET", "/v2")
        info = _tensors.ModelInfo(self._json("GET", self._target(model)))
        with self._lock:
            self._infos[model, self._options["version"]] = info
        return info

    def ready(self, model=None):
        """Whether the server, or one of its models, answers requests now. False if it cannot be reached."""
        target = "/v2/health/ready" if model is None else self._target(model, "/ready")
        try:
            answer = self._exchange("GET", target, self._fields(), [], Deadline(self._options["timeout"]))
        except ConnectionFailed:
            return False
        if answer.status in (200, 404, 503):
            return answer.status == 200
        raise _http.problem(self._address, answer)

    def close(self):
        """Closes the kept connections. Calls under way end first."""
        self._pool.close()
        self.weights.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _info(self, model, deadline):
        info = self._infos.get((model, self._options["version"]))
        if info is None:
            answer = self._ask("GET", self._target(model), self._fields(), [], deadline)
            if answer.status != 200:
                raise _http.problem(self._address, answer)
            info = _tensors.ModelInfo(self._document(answer))
            with self._lock:
                self._infos[model, self._options["version"]] = info
        return info

    def _json(self, method, target):
        answer = self._ask(method, target, self._fields(**{"Content-Length": "0"} if method == "POST" else {}), [],
                           Deadline(self._options["timeout"]))
        if answer.status != 200:
            raise _http.problem(self._address, answer)
        return self._document(answer)

    def _ask(self, method, target, fields, buffers, deadline):
        attempt = 0
        while True:
            answer = self._exchange(method, target, fields, buffers, deadline)
            pause = again(answer, attempt, deadline) if self._options["retry"] else None
            if pause is None:
                return answer
            time.sleep(pause)
            attempt += 1

    def _exchange(self, method, target, fields, buffers, deadline):
        return self._pool.exchange(method, target, fields, buffers, deadline)


class AsyncClient(_Common):
    """Calls models on a server from an event loop. Parameters and errors are those of Client.

        async with sconce.AsyncClient("http://127.0.0.1:8000") as client:
            one, other = await asyncio.gather(client.infer("digits", a), client.infer("digits", b))
    """

    def __init__(self, url="http://127.0.0.1:8000", **settings):
        super().__init__(url, **settings)
        from sconce._aio import Pool as AsyncPool
        self._pool = AsyncPool(self._address, self._context, self._most)

    async def infer(self, model, /, *args, **kwargs):
        """Client.infer(), to be awaited."""
        deadline = Deadline(self._options["timeout"])
        key = (model, self._options["version"])
        info = self._infos.get(key)
        if info is None:
            answer = await self._ask("GET", self._target(model), self._fields(), [], deadline)
            if answer.status != 200:
                raise _http.problem(self._address, answer)
            info = self._infos[key] = _tensors.ModelInfo(self._document(answer))
        target, fields, buffers = self._infer_request(model, info, args, kwargs, deadline)
        answer = await self._ask("POST", target, fields, buffers, deadline)
        if answer.status == 200:
            return self._result(info, answer)
        self._infos.pop(key, None)
        raise _http.problem(self._address, answer)

    async def models(self):
        """Client.models(), to be awaited."""
        return await self._json("POST", "/v2/repository/index")

    async def metadata(self, model=None):
        """Client.metadata(), to be awaited."""
        if model is None:
            return await self._json("GET", "/v2")
        info = _tensors.ModelInfo(await self._json("GET", self._target(model)))
        self._infos[model, self._options["version"]] = info
        return info

    async def ready(self, model=None):
        """Client.ready(), to be awaited."""
        target = "/v2/health/ready" if model is None else self._target(model, "/ready")
        try:
            answer = await self._pool.exchange("GET", target, self._fields(), [], Deadline(self._options["timeout"]))
        except ConnectionFailed:
            return False
        if answer.status in (200, 404, 503):
            return answer.status == 200
        raise _http.problem(self._address, answer)

    async def close(self):
        """Closes the kept connections."""
        await self._pool.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def _json(self, method, target):
        answer = await self._ask(method, target, self._fields(**{"Content-Length": "0"} if method == "POST" else {}), [],
                                 Deadline(self._options["timeout"]))
        if answer.status != 200:
            raise _http.problem(self._address, answer)
        return self._document(answer)

    async def _ask(self, method, target, fields, buffers, deadline):
        import asyncio
        attempt = 0
        while True:
            answer = await self._pool.exchange(method, target, fields, buffers, deadline)
            pause = again(answer, attempt, deadline) if self._options["retry"] else None
            if pause is None:
                return answer
            await asyncio.sleep(pause)
            attempt += 1


def _token(token):
    if token is None:
        return None
    if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable():
        raise InvalidArgument("token: expected printable ASCII text")  # without the token: it is a secret
    return token


def _seconds(value):
    if value is not None and not (isinstance(value, (int, float)) and value > 0):
        raise InvalidArgument(f"timeout: expected seconds above 0, or None, got {value!r}")
    return value
