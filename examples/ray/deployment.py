"""A Ray Serve application whose replicas run a package with Sconce.

    serve run --working-dir examples/ray deployment:app package=$PWD/examples/digits/digits.pt2

Handles take what the model takes; HTTP is Open Inference Protocol v2 (protocol.py). With `journal`, weights.py gives all
replicas new weights; those that start later begin with the same ones.
"""
import asyncio
import os
import pathlib
import threading
import weakref

import pydantic
import ray
import sconce
from follower import Follower, text_of, version_of
from protocol import BadRequest, Protocol
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from weights import LONGEST_POLL, keeper_of

AUTOSCALING = {"min_replicas": 1, "max_replicas": 8, "target_ongoing_requests": 4}
BAD = (BadRequest, sconce.InvalidArgument)
BUSY = (sconce.Unavailable, sconce.OutOfMemory)


class Settings(pydantic.BaseModel):
    """What `serve run` and a Serve config file may say.

    package: a path on every node. name: the model's name in URLs, the file's unless told. journal: a file that all nodes
    see and may write; without it weights come by user_config only. load: more arguments of sconce.load. options: those of
    Deployment.options, such as num_replicas or autoscaling_config.
    """

    model_config = pydantic.ConfigDict(extra="forbid")
    package: str
    name: str = ""
    journal: str = ""
    load: dict = {}
    options: dict = {}


@serve.deployment(name="Sconce", max_ongoing_requests=32, health_check_period_s=5, graceful_shutdown_timeout_s=10,
                  ray_actor_options={"num_cpus": 1})
class Sconce:
    def __init__(self, package, name="", journal="", load=None):
        self.package, self.journal = os.path.abspath(package), journal
        self.model = sconce.load(self.package, **(load or {}))
        self.replica = serve.get_replica_context().replica_id.unique_id
        self._follower = Follower(self.model, self.package)
        self._protocol = Protocol(name or pathlib.Path(package).stem, self.model.signature)
        if journal:
            handle = ray.get_runtime_context().current_actor
            while (order := _ask(journal, self.replica, handle, self._follower, 0)) is not None:
                self._follower.obey(order)
            threading.Thread(target=_follow, args=(weakref.ref(self), handle), name="weights", daemon=True).start()

    # Through a handle. A large array lies in Ray's shared memory, and the model reads it there.

    async def call(self, *args, **kwargs):
        """handle.call.remote(images): the model's result."""
        return await asyncio.wrap_future(self.model.submit(*args, **kwargs))

    async def call_with_info(self, *args, **kwargs):
        """(result, which weights computed it and where)."""
        future = self.model.submit(*args, **kwargs)
        result = await asyncio.wrap_future(future)
        version, label = version_of(future.info)
        return result, {"weight_version": version, "generation": version, "label": label,  # deprecated: generation
                        "replica": self.replica, "compute": future.info.compute}

    # Over HTTP.

    async def __call__(self, request: Request) -> Response:
        try:
            return await self._answer(request)
        except BAD as error:
            return JSONResponse({"error": str(error)}, 400)
        except BUSY as error:
            return JSONResponse({"error": str(error)}, 503)

    async def _answer(self, request):
        model = f"/v2/models/{self._protocol.name}"
        match request.method, request.url.path.removeprefix(request.scope.get("root_path", "")):
            case "POST", path if path == f"{model}/infer":
                return await self._infer(request)
            case "GET", path if path == model:
                return JSONResponse(self._protocol.metadata())
            case "GET", path if path in ("/v2/health/live", "/v2/health/ready", f"{model}/ready"):
                return JSONResponse({})
            case "GET", "/v2":
                return JSONResponse({"name": "sconce", "version": sconce.__version__, "extensions": ["binary_tensor_data"]})
            case method, path:
                return JSONResponse({"error": f"nothing at {method} {path}; the model is {model}"}, 404)

    async def _infer(self, request):
        length = request.headers.get("inference-header-content-length")
        if length is not None and not (length.isascii() and length.isdigit()):
            raise BadRequest(f"Inference-Header-Content-Length: {length}")
        (args, kwargs), document = self._protocol.arguments(await request.body(), length and int(length))
        result, info = await self.call_with_info(*args, **kwargs)
        name = info["label"] or str(info["weight_version"])
        body, length = self._protocol.answer(result, document, {"weight_version": name})
        version = str(info["weight_version"])
        headers = {"Sconce-Weight-Version": version, "Sconce-Generation": version, "Sconce-Replica": self.replica}
        if length is None:
            return Response(body, headers=headers, media_type="application/json")
        headers["Inference-Header-Content-Length"] = str(length)
        return Response(body, headers=headers, media_type="application/octet-stream")

    # What Serve asks.

    def reconfigure(self, user_config):
        """{"weights": FILE, "label": TEXT}: each replica takes them by itself, without a restart."""
        if unknown := user_config.keys() - {"weights", "label"}:
            raise ValueError(f"user_config: unknown {', '.join(sorted(unknown))}")
        if self.journal:
            raise ValueError("user_config: this application has a journal; weights.py publishes weights")
        label = text_of(self.model.weight_version + 1, user_config.get("label", ""))
        self.model.update(user_config.get("weights") or self.package, label=label, check_finite=True)

    def check_health(self):
        problem = self._follower.problem or next(filter(None, (one.failure for one in self.model.replicas)), "")
        if problem:
            raise RuntimeError(problem)


def _ask(journal, name, handle, follower, seconds):
    """Reports to the keeper; returns its order, which may take that long to come."""
    return ray.get(keeper_of(journal).poll.remote(name, handle, follower.report(), seconds))


def _follow(replica_of, handle):
    """Does the keeper's orders, for as long as the replica is there and can."""
    pause = threading.Event()
    while (replica := replica_of()) is not None:
        journal, name, follower = replica.journal, replica.replica, replica._follower
        del replica
        try:
            if (order := _ask(journal, name, handle, follower, LONGEST_POLL)) is not None:
                follower.obey(order)
        except ray.exceptions.RayActorError:
            pause.wait(0.5)  # the keeper is being started again; this replica serves what it has
        except Exception as error:
            follower.problem = follower.problem or str(error)
            return


def app(settings: Settings) -> serve.Application:
    options = dict(settings.options)
    if "num_replicas" not in options:
        options.setdefault("autoscaling_config", AUTOSCALING)
    return Sconce.options(**options).bind(settings.package, settings.name, settings.journal, settings.load)
