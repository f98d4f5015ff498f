"""Loads and runs a package by torch._inductor.aoti_load_package: PACKAGE INPUTS SECONDS."""
import json
import struct
import sys
import time

package, inputs_path, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
import torch  # noqa: E402

torch.set_num_threads(1)


def read_inputs(path):
    with open(path, "rb") as file:
        number = lambda: struct.unpack("<q", file.read(8))[0]
        tensors = []
        for _ in range(number()):
            dtype = DTYPES[number()]
            rank = number()
            sizes = [number() for _ in range(rank)]
            strides = [number() for _ in range(rank)]
            offset = number()
            storage = torch.UntypedStorage.from_buffer(file.read(number()) or b"\0", dtype=torch.uint8)
            tensors.append(torch.tensor([], dtype=dtype).set_(storage, offset, sizes, strides))
        return tensors


DTYPES = {0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16,
          6: torch.float32, 7: torch.float64, 9: torch.complex64, 10: torch.complex128, 11: torch.bool,
          15: torch.bfloat16}
inputs = read_inputs(inputs_path)
from torch._C._aoti import AOTIModelPackageLoader  # noqa: E402  # the class behind aoti_load_package

before = time.monotonic()
runner = AOTIModelPackageLoader(package, "model", True, 1, -1)
loaded = time.monotonic()
runner.run(inputs)
first = time.monotonic()
resident = int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS:")).split()[1])
calls = []
for _ in range(20):
    runner.run(inputs)
end = time.monotonic() + seconds
while time.monotonic() < end or len(calls) < 20:
    start = time.perf_counter()
    runner.run(inputs)
    calls.append(time.perf_counter() - start)
calls.sort()
print(json.dumps({"load_ms": 1e3 * (loaded - before), "first_run_ms": 1e3 * (first - loaded),
                  "first_output_at_ms": 1e3 * first, "p50_us": 1e6 * calls[len(calls) // 2],
                  "p90_us": 1e6 * calls[int(len(calls) * 0.9)], "p99_us": 1e6 * calls[int(len(calls) * 0.99)],
                  "calls": len(calls), "resident_kb": resident}))
