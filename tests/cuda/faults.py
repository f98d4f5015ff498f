#!/usr/bin/env python3
"""What a server does when its device fails: faults.py SCONCE FAULT_LIBRARY PACKAGE.

Needs a GPU, but no torch. PACKAGE launches kernels of its own. Causes an illegal address, a kernel that stops the
device, and lack of memory. Checks that the request gets the cause, the replica is marked failed, model and server are
not ready, and the server stays, ends or restarts as configured. Prints a line per check; exits with 1 if one failed.
"""
import argparse
import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("sconce", "fault_library", "package"):
    parser.add_argument(name, metavar=name.upper())
options = parser.parse_args()
sconce, fault_library, package = options.sconce, options.fault_library, options.package
work = tempfile.mkdtemp()
wrong = 0


def look(what, holds, found=""):
    global wrong
    wrong += not holds
    print(f"{'ok  ' if holds else 'FAIL'} {what}{': ' + str(found) if found != '' else ''}", flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, *settings):
        self.port, self.admin = free_port(), free_port()
        self.inputs, self.fault = [], os.path.join(work, "fault")
        self.log = open(os.path.join(work, f"log{self.port}"), "w+")
        self.arm("")
        environment = os.environ | {"SCONCE_FAULT": self.fault, "LD_PRELOAD": fault_library}
        arguments = [sconce, "serve", f"m={package}", "--http", f"127.0.0.1:{self.port}", "--admin",
                     f"127.0.0.1:{self.admin}", "--metrics", "off", "--drain-grace", "0", "--set", "m.devices=cuda",
                     "--set", "m.cuda_graphs=0", "--set", "m.batching=off"]
        for setting in settings:
            arguments += ["--set", setting]
        self.process = subprocess.Popen(arguments, stdout=self.log, stderr=self.log, env=environment)
        for _ in range(600):
            if self.process.poll() is not None or self.get("/v2/health/ready")[0] == 200:
                break
            time.sleep(0.1)

    def arm(self, fault):
        with open(self.fault + ".new", "w") as file:
            file.write(fault)
        os.rename(self.fault + ".new", self.fault)

    def ask(self, method, path, body=None, port=None):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=60)
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        except OSError as problem:
            return 0, str(problem)

    def get(self, path, port=None):
        return self.ask("GET", path, port=port)

    def infer(self):
        status, text = self.get("/v2/models/m")
        inputs = []
        for spec in json.loads(text)["inputs"] if status == 200 else self.inputs:
            shape = [4 if size < 0 else size for size in spec["shape"]]
            count = 1
            for size in shape:
                count *= size
            inputs.append({"name": spec["name"], "datatype": spec["datatype"], "shape": shape, "data": [1] * count})
        self.inputs = inputs
        return self.ask("POST", "/v2/models/m/infer", json.dumps({"inputs": inputs}))

    def failure(self):
        status, text = self.get("/v2/admin/models/m/replicas", self.admin)
        return [replica.get("failure") or "" for replica in json.loads(text)["replicas"]] if status == 200 else [text]

    def text(self):
        self.log.flush()
        with open(self.log.name, errors="replace") as file:
            return file.read()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "killed"


def first_answer(server):
    status, text = server.infer()
    look("serves", status == 200, text[:200] if status != 200 else "")
    if status != 200:
        print(server.text()[-2000:])


def lost(fault, words):
    print(f"-- {fault}, the server stays", flush=True)
    server = Server()
    first_answer(server)
    server.arm(fault)
    status, text = server.infer()
    look("the request gets the cause", status == 500 and any(w in text for w in words), f"{status} {text[:300]}")
    server.arm("")
    status, text = server.infer()
    look("so does the next", status in (500, 503), f"{status} {text[:300]}")
    failures = server.failure()
    look("the replica is marked failed", all(any(w in f for w in words) for f in failures), failures)
    look("the model is not ready", server.get("/v2/models/m/ready")[0] == 503)
    look("the server is not ready", server.get("/v2/health/ready")[0] == 503)
    look("the server lives", server.get("/v2/health/live")[0] == 200 and server.process.poll() is None)
    look("the server says so", "cannot run any more" in server.text())
    look("it ends when it is told to", server.end() == 0)

    print(f"-- {fault}, the server ends", flush=True)
    server = Server("m.device_fault=end")
    first_answer(server)
    server.arm(fault)
    status, text = server.infer()
    look("the request gets the cause", status == 500 and any(w in text for w in words), f"{status} {text[:300]}")
    try:
        code = server.process.wait(30)
    except subprocess.TimeoutExpired:
        code = "none"
    look("the server ends by itself", code == 0, f"exit {code}")
    look("it said why", "cannot run any more" in server.text())
    server.end()

    print(f"-- {fault}, the server starts again", flush=True)
    server = Server("m.device_fault=restart")
    first_answer(server)
    server.arm(fault)
    status, text = server.infer()
    look("the request gets the cause", status == 500 and any(w in text for w in words), f"{status} {text[:300]}")
    server.arm("")
    for _ in range(300):
        if server.text().count("info ready") >= 2 or server.process.poll() is not None:
            break
        time.sleep(0.1)
    look("it is the same process", server.process.poll() is None)
    first_answer(server)
    look("the replica has not failed", not any(server.failure()), server.failure())
    look("it ends when it is told to", server.end() == 0)


def no_memory():
    print("-- no memory", flush=True)
    server = Server()
    runtime = ctypes.CDLL("libcudart.so.13")
    taken = []  # takes all memory there is
    size = 1 << 36
    while size >= 1 << 20:
        place = ctypes.c_void_p()
        if runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(size)) == 0:
            taken.append(place)
        else:
            runtime.cudaGetLastError()
            size //= 2
    status, text = server.infer()
    look("a request without memory fails with it", status == 507 and "memory" in text, f"{status} {text[:300]}")
    look("the replica has not failed", not any(server.failure()), server.failure())
    look("the model is ready", server.get("/v2/models/m/ready")[0] == 200)
    for place in taken:
        runtime.cudaFree(place)
    status, text = server.infer()
    look("with memory it is answered", status == 200, text[:300] if status != 200 else "")
    look("it ends when it is told to", server.end() == 0)


for part, arguments in ((no_memory, ()), (lost, ("address", ["illegal memory access"])),
                        (lost, ("trap", ["launch failure", "illegal instruction"]))):
    before = wrong
    try:
        part(*arguments)
    except Exception as problem:  # noqa: BLE001  (the others must run)
        look("the script goes on", False, repr(problem))
    if wrong > before:
        for name in sorted(os.listdir(work)):
            if name.startswith("log"):
                print(f"-- {name}:", open(os.path.join(work, name), errors="replace").read()[-1500:])
print("faults: as they should be" if wrong == 0 else f"faults: {wrong} wrong")
sys.exit(wrong != 0)
