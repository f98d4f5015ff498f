"""One process of run.py: JSON requests on its standard input, an answer for each on its standard output."""
import gc
import json
import os
import pathlib
import subprocess
import sys
import traceback
import types
import unittest

answers = os.fdopen(os.dup(1), "w")
options = json.loads(sys.argv[1])
log = os.open(options["log"], os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
os.dup2(log, 1)
os.dup2(log, 2)
TESTS = pathlib.Path(options["tests"])
sys.path.insert(0, str(TESTS))
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

import torch  # noqa: E402
import torch._inductor.package  # noqa: E402
import torch.testing._internal.inductor_utils as inductor_utils  # noqa: E402
import torch.testing._internal.triton_utils as triton_utils  # noqa: E402

import recorder  # noqa: E402
import stand_ins  # noqa: E402

recorder.harvest = recorder.Harvest(options["device"])
CUDA = options["device"] == "cuda"
torch.set_num_threads(1)
torch._inductor.config.compile_threads = 1
seen = set()


def replace():
    torch.compile = recorder.in_place_of_compile
    for name in ("optimize", "optimize_assert"):
        setattr(torch._dynamo, name, lambda *_, **__: recorder.in_place_of_compile)
    torch._inductor.aoti_load_package = torch._inductor.package.load_package = recorder.load_package
    sys.modules["test_aot_inductor_utils"] = recorder.aot_test_utils()
    package = types.ModuleType("inductor")
    package.__path__ = [str(TESTS)]
    sys.modules["inductor"] = package
    # Names that moved: whether there is a GPU, and decorators that ask for one.
    needs_gpu = (lambda f: f) if CUDA else unittest.skip("needs a GPU")
    for module in (inductor_utils, triton_utils):
        for name in ("HAS_CUDA", "HAS_GPU", "HAS_CUDA_AND_TRITON", "HAS_TRITON"):
            if not hasattr(module, name):
                setattr(module, name, CUDA)
        for name in ("requires_cuda", "requires_gpu", "requires_gpu_and_triton", "requires_cuda_and_triton"):
            if not hasattr(module, name):
                setattr(module, name, needs_gpu)


def test_class(module_name, class_name):
    module = stand_ins.load(TESTS, module_name, seen)
    code_too = lambda function, *args, **kwargs: (function(*args, **kwargs), [""])
    for name in ("run_and_get_code", "run_and_get_cpp_code", "run_and_get_triton_code"):
        if hasattr(module, name):
            setattr(module, name, code_too)
    if not hasattr(module, class_name):
        cases = [n for n, c in vars(module).items() if isinstance(c, type) and issubclass(c, unittest.TestCase)]
        raise LookupError(f"{module_name} has no class {class_name} here; it has {', '.join(cases)}")
    found = getattr(module, class_name)
    if module_name.startswith("test_torchinductor"):
        module.check_model = module.check_model_gpu = recorder.check_model
    if hasattr(found, "common"):  # check_model by another name
        found.common = recorder.check_model
    return found


def run_test(module_name, class_name, test):
    name = f"{module_name}.{test}"
    try:
        result = unittest.TestResult()
        unittest.TestSuite([test_class(module_name, class_name)(test)]).run(result)
        wrong = result.errors + result.failures
        status = ("skipped: " + result.skipped[0][1] if result.skipped else
                  "failed: " + wrong[0][1].strip().split("\n")[-1] if wrong else "ok")
    except BaseException as error:  # a test may end its process
        traceback.print_exc()
        status = f"failed: {type(error).__name__}: {error}"
    notes = recorder.harvest.notes[:4]
    torch._dynamo.reset()
    try:
        cases = recorder.harvest.write(pathlib.Path(options["cases"]), name)
    except Exception as error:
        cases, notes = [], notes + [f"not written: {error}"[:200]]
    if CUDA:
        gc.collect()
        torch.cuda.empty_cache()
    return {"test": f"{module_name}:{class_name}:{test}", "status": status[:200], "notes": notes,
            "cases": [conform(case) for case in cases]}


def conform(case):
    command = [options["tool"], str(case), "-j", "1", "--limit", "120", "--device", options["device"]]
    run = subprocess.run(command, capture_output=True, text=True)
    reason = "" if run.returncode == 0 else (run.stdout[-800:] + run.stderr[-300:])
    if run.returncode == 0 and not options["keep"]:
        subprocess.run(["rm", "-r", str(case)], check=True)
    return {"case": case.name, "passed": run.returncode == 0, "reason": reason}


def answer(request):
    if "test" in request:
        return run_test(request["module"], request["class"], request["test"])
    try:
        names = [n for n in dir(test_class(request["module"], request["class"])) if n.startswith("test")]
        return {"tests": names}
    except BaseException as error:
        traceback.print_exc()
        return {"tests": [], "error": f"{type(error).__name__}: {error}"}


replace()
print(json.dumps({"ready": True}), file=answers, flush=True)
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
