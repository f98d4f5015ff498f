"""Threads, futures, asyncio, fork, the end of the interpreter, and machines that cannot run Sconce."""
import asyncio
import concurrent.futures
import copy
import ctypes
import multiprocessing
import os
import pathlib
import pickle
import shutil
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import sconce
from packages import FAKE, fake_expected

X = np.array([[1, 2, 3, 4]], np.float32)
SLEEP = np.array([[-2e30, 0, 0, 0]], np.float32)  # the fake model sleeps 50 ms
FAIL = np.array([[-1e30, 0, 0, 0]], np.float32)


@pytest.fixture(scope="module")
def model():
    return sconce.load(FAKE)


def run(script, child_env, **env):
    return subprocess.run([sys.executable, "-W", "ignore", "-c", script], env={**child_env, **env}, capture_output=True,
                          text=True, timeout=60)


def test_futures(model):
    futures = [model.submit(X + i) for i in range(100)]
    for i, future in enumerate(futures):
        np.testing.assert_array_equal(future.result(), fake_expected(X + i))
        assert future.info.weight_version == 1 and future.info.replica == 0 and future.info.compute >= 0
    assert isinstance(futures[0], concurrent.futures.Future) and not futures[0].cancel()


def test_errors_of_futures(model):
    with pytest.raises(sconce.InvalidArgument, match=r"args\[0\]: expected size 4 at dimension 1"):
        model.submit(X[:, :3]).result()
    with pytest.raises(sconce.InvalidArgument, match="expected an array"):
        model.submit("x")
    with pytest.raises(sconce.ModelFailed, match="fake model: told to fail by its input") as caught:
        model.submit(FAIL).result()
    assert caught.value.code == "MODEL_FAILED" and isinstance(caught.value, RuntimeError)
    with pytest.raises(sconce.ModelFailed, match="fake model: told to fail by its input"):
        model(FAIL)


def test_asyncio(model):
    async def several():
        return await asyncio.gather(*(model.acall(X + i) for i in range(10)), model.acall(FAIL), return_exceptions=True)

    *results, failure = asyncio.run(several())
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, fake_expected(X + i))
    assert isinstance(failure, sconce.ModelFailed)


def test_the_gil_is_released(model):
    """While a call sleeps in the model, another thread counts."""
    counted = 0
    thread = threading.Thread(target=model, args=(SLEEP,))
    start = time.perf_counter()
    thread.start()
    while thread.is_alive():
        counted += 1
        thread.join(0.001)
    assert counted > 10 and time.perf_counter() - start > 0.045


def test_replicas_run_at_the_same_time():
    model = sconce.load(FAKE, replicas=16)
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(model, [SLEEP] * 16))
    assert time.perf_counter() - start < 0.6  # 0.8 one after the other
    assert len(model.replicas) == 16 and model.replicas[0].device == "cpu"


def test_many_threads(model):
    faults = []

    def call(number):
        for i in range(200):
            x = X + number + i
            if not np.array_equal(model(x), fake_expected(x)):
                faults.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_a_model_that_goes_while_it_runs():
    model = sconce.load(FAKE)
    future = model.submit(SLEEP)
    del model
    assert future.result().shape == (1, 4)


def in_child(work):
    """What a forked child answers."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = str(work())
        except BaseException as error:  # noqa: BLE001
            answer = f"{type(error).__name__}: {error}"
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        answer = answers.read()
    assert os.waitpid(child, 0)[1] == 0
    return answer


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_forked_child_is_told_to_load_again(model):
    model.submit(X).result()
    for call in (lambda: model(X), lambda: model.submit(X), lambda: model.weight_version,
                 lambda: model.update({"scale.w": X[0]}, partial=True)):
        assert in_child(call).startswith("FailedPrecondition: the model was loaded before this process was forked")


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_forked_child_loads_and_runs(model):
    def work():
        own = sconce.load(FAKE)
        first = own(X).tolist()
        second = own.submit(X).result().tolist()
        return first == second == fake_expected(X).tolist()

    model.submit(X).result()
    assert in_child(work) == "True"
    np.testing.assert_array_equal(model(X), fake_expected(X))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_forked_child_drops_the_model():
    def work():
        holder.clear()
        return "dropped"

    holder = [sconce.load(FAKE)]
    holder[0].submit(X).result()
    assert in_child(work) == "dropped"
    np.testing.assert_array_equal(holder[0](X), fake_expected(X))


def spawned(path):
    return sconce.load(path)(X).tolist()


def test_spawned_processes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(spawned, (str(FAKE),)) == fake_expected(X).tolist()


def test_models_are_not_copied(model):
    for function in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a loaded model cannot be pickled"):
            function(model)


def test_the_interpreter_ends_with_pending_runs(child_env):
    script = """
import numpy as np, sconce
from packages import FAKE
model = sconce.load(FAKE)
future = model.submit(np.array([[-2e30, 0, 0, 0]], np.float32))
future.add_done_callback(lambda f: print("done", f.result().shape, flush=True))
"""
    done = run(script, child_env)
    assert (done.stdout, done.stderr, done.returncode) == ("done (1, 4)\n", "", 0)


def test_a_model_and_its_results_outlive_everything(child_env):
    script = """
import numpy as np, sconce, sys
from packages import FAKE
model = sconce.load(FAKE)
sys.kept = [model, model(np.ones((1, 4), np.float32)), sconce.load(FAKE, outputs="dlpack")(np.ones((1, 4), np.float32))]
"""
    done = run(script, child_env)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_import_without_avx2(child_env):
    script = """
import builtins, io
real = builtins.open
def without_avx2(path, *args, **kwargs):
    if path != "/proc/cpuinfo":
        return real(path, *args, **kwargs)
    return io.StringIO("processor\\t: 0\\nflags\\t\\t: fpu sse sse2 avx bmi1 f16c abm movbe\\n")
builtins.open = without_avx2
try:
    import sconce
except ImportError as error:
    print(error)
print("libsconce" in real("/proc/self/maps").read())
"""
    done = run(script, child_env)
    assert done.stdout == ("sconce needs a processor with AVX2 (x86-64-v3, such as Intel Haswell or AMD Excavator and "
                           "later); this one lacks avx2, bmi2, fma\nFalse\n"), done.stderr


def elf_hash(name):
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def test_import_with_an_older_glibc(tmp_path):
    """A copy of the module that asks for a version of glibc that no system has."""
    package = pathlib.Path(sconce.__file__).parent
    copy_ = tmp_path / "sconce"
    shutil.copytree(package, copy_, symlinks=True)
    native = next(copy_.glob("_native*.so"))
    content = native.read_bytes()
    found = next(name for name in (b"GLIBC_2.34", b"GLIBC_2.32", b"GLIBC_2.17", b"GLIBC_2.14") if name + b"\0" in content)
    wanted = b"GLIBC_9." + found[-2:]
    content = content.replace(found + b"\0", wanted + b"\0")
    content = content.replace(struct.pack("<I", elf_hash(found)), struct.pack("<I", elf_hash(wanted)))
    native.write_bytes(content)
    done = subprocess.run([sys.executable, "-c", "import sconce"], env={**os.environ, "PYTHONPATH": str(tmp_path)},
                          capture_output=True, text=True)
    assert f"ImportError: sconce needs glibc with {wanted.decode()} or newer; this system has glibc" in done.stderr


def test_symbols_stay_inside(child_env):
    """The package's libraries do not put the operators' names into the process for others to find."""
    done = run("import sconce, ctypes; print(hasattr(ctypes.CDLL(None), 'aoti_torch_cpu_mm_out'))", child_env)
    assert done.stdout == "False\n", done.stderr
    assert ctypes.CDLL(None)


def test_workers_of_pytest_xdist(tmp_path, child_env):
    pytest.importorskip("xdist", reason="pytest-xdist is not installed (tests/server/requirements.txt)")
    (tmp_path / "test_in_workers.py").write_text(f"""
import numpy as np, pytest, sconce

@pytest.fixture(scope="session")
def model():
    return sconce.load({str(FAKE)!r})

@pytest.mark.parametrize("i", range(8))
def test_call(model, i, worker_id):
    assert worker_id in ("gw0", "gw1")
    np.testing.assert_array_equal(model(np.full((1, 4), i, np.float32)), [[i, 2 * i + 10, 3 * i + 20, 4 * i + 30]])
    with pytest.raises(sconce.InvalidArgument, match="expected float32"):
        model(np.zeros((1, 4)))
""")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--rootdir", tmp_path,
                           tmp_path], env=child_env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "8 passed" in done.stdout, done.stdout + done.stderr
