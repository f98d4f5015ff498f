#!/usr/bin/env python3
"""Publishes new weights on all replicas of a deployment, or on none.

    python examples/ray/weights.py push digits-v2.safetensors --label v2 --journal /shared/digits.json
    python examples/ray/weights.py rollback --journal /shared/digits.json
    python examples/ray/weights.py status --journal /shared/digits.json

The journal is the file that the deployment was given. It holds what was decided last and where that is, so it must lie on
storage that all nodes see, as the weights must. A detached actor, named after it, keeps it: replicas ask that actor what to
do (two_phase.py), those that start later too. The commands run on a node of the cluster. Status 1: nothing has changed, or
the text says that this is open.
"""
import argparse
import asyncio
import dataclasses
import json
import os
import pathlib
import sys
import time

import ray
from two_phase import Refused, Rollout, Version

NAMESPACE = "sconce"
LONGEST_POLL = 10.0
ACTOR_PROBE = 0.5


def read_journal(path):
    """(current, before) of a journal; what a package brings is version 1, where there is none yet."""
    try:
        document = json.loads(pathlib.Path(path).read_text())
    except FileNotFoundError:
        return Version(1), None
    current, before = (document[key] and Version(**document[key]) for key in ("current", "before"))
    return current, before


def write_journal(path, current, before):
    document = {"current": dataclasses.asdict(current), "before": dataclasses.asdict(before)}
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=1) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


class Keeper:
    """The actor. Its methods run on one event loop, so the Rollout needs no lock."""

    def __init__(self, journal):
        current, before = read_journal(journal)
        self._rollout = Rollout(current, lambda *versions: write_journal(journal, *versions), before)
        self._handles = {}
        self._changed = asyncio.Event()

    async def poll(self, name, handle, report, wait):
        """The order for a replica, as soon as there is one; None after `wait` seconds."""
        self._handles[name] = handle
        order = self._rollout.poll(name, report)
        self._wake()
        end = time.monotonic() + min(wait, LONGEST_POLL)
        while order is None and name in self._rollout.replicas and (left := end - time.monotonic()) > 0:
            await self._wait(left)
            if name in self._rollout.replicas:
                order = self._rollout.order(name)
        return order

    async def push(self, source, label, timeout, digest=""):
        """Returns the version when all replicas serve it; raises Refused when none will."""
        self._rollout.propose(source, label, digest)
        self._wake()
        watches = {}
        try:
            await self._until(lambda: not self._rollout.proposed, time.monotonic() + timeout, watches)
            if self._rollout.proposed:
                self._rollout.expire()
                self._wake()
            if self._rollout.refusal:
                raise Refused(self._rollout.refusal)
            decided = self._rollout.current
            # One that does not come to serve it is unhealthy, and Serve replaces it.
            await self._until(self._rollout.settled, time.monotonic() + timeout, watches)
            return decided
        finally:
            for watch in watches.values():
                watch.cancel()

    async def rollback(self, timeout):
        """The version before the current one, under a new number."""
        before = self._rollout.before
        if before is None:
            raise Refused("there is no version before the current one")
        return await self.push(before.source, before.label, timeout, before.digest)

    async def status(self):
        """The current version and, for each replica, the number that it serves. Drops those that are gone."""
        watches = [self._watch(name, once=True) for name in self._rollout.replicas]
        await asyncio.gather(*watches)
        return {**dataclasses.asdict(self._rollout.current), "replicas": self._rollout.replicas}

    async def _until(self, done, end, watches):
        while not done() and (left := end - time.monotonic()) > 0:
            for name in self._rollout.replicas:
                if name not in watches:
                    watches[name] = asyncio.ensure_future(self._watch(name))
            await self._wait(left)

    async def _watch(self, name, once=False):
        """Notices that a replica is gone, as soon as Ray knows."""
        while name in self._rollout.replicas:
            try:
                await asyncio.wait_for(self._handles[name].__ray_ready__.remote(), LONGEST_POLL)
            except ray.exceptions.ActorDiedError:
                self._rollout.gone(name)
                self._handles.pop(name, None)
                self._wake()
            except (ray.exceptions.RayActorError, asyncio.TimeoutError):
                pass  # out of reach, perhaps not for long; a push has a deadline
            if once:
                return
            await asyncio.sleep(ACTOR_PROBE)

    def _wake(self):
        self._changed.set()
        self._changed = asyncio.Event()

    async def _wait(self, seconds):
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except asyncio.TimeoutError:
            pass


def keeper_of(journal):
    """The actor that keeps this journal; the first one who asks starts it."""
    return ray.remote(Keeper).options(
        name=f"sconce weights {os.path.abspath(journal)}", namespace=NAMESPACE, lifetime="detached", get_if_exists=True,
        num_cpus=0, max_restarts=-1, max_concurrency=10_000).remote(os.path.abspath(journal))


def push(source, journal, label="", timeout=60.0):
    """Publishes a file that all nodes see. Returns the Version; raises Refused, and then no replica has changed."""
    return _ask(keeper_of(journal).push.remote(os.path.abspath(source), label, timeout))


def rollback(journal, timeout=60.0):
    return _ask(keeper_of(journal).rollback.remote(timeout))


def status(journal):
    return _ask(keeper_of(journal).status.remote())


def _ask(reference):
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Refused):
            raise error.cause from None
        raise


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("push", "rollback", "status"))
    parser.add_argument("file", nargs="?", help=".safetensors, .npz, .npy or a package")
    parser.add_argument("--journal", required=True)
    parser.add_argument("--label", default="")
    parser.add_argument("--timeout", type=float, default=60, help="seconds in which all replicas must have staged")
    arguments = parser.parse_args()
    if (arguments.command == "push") != (arguments.file is not None):
        parser.error("push takes a file, and nothing else does")
    here = str(pathlib.Path(__file__).resolve().parent)
    ray.init(address="auto", namespace=NAMESPACE, runtime_env={"working_dir": here}, log_to_driver=False, logging_level="ERROR")
    try:
        if arguments.command == "push":
            done = dataclasses.asdict(push(arguments.file, arguments.journal, arguments.label, arguments.timeout))
        elif arguments.command == "rollback":
            done = dataclasses.asdict(rollback(arguments.journal, arguments.timeout))
        else:
            done = status(arguments.journal)
    except Refused as error:
        sys.exit(f"weights.py: {error}")
    except ray.exceptions.RayActorError:
        sys.exit("weights.py: the actor that leads is being started again; ask for the status: it says what was decided")
    print(json.dumps(done))


if __name__ == "__main__":
    main()
