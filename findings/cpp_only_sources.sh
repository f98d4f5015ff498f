#!/usr/bin/env bash
# A package compiled with package_cpp_only does not have the sources of the package that PyTorch compiles itself.
#
# A good guess is that aot_inductor.package_cpp_only leaves out the library and otherwise writes what a compiled package
# holds: a wrapper, which declares its kernels and calls them in run_impl, beside a .kernel.cpp with their bodies. A reader
# that was written for one form should then read the other. But without a library there is no .kernel.cpp: the bodies are
# appended to the wrapper, behind run_impl and behind the namespace in which it lies, while the declarations stay in front.
# So each kernel's signature appears twice in one file, and a reader that looks for kernels in what comes before run_impl,
# or in .kernel.cpp files, finds declarations only. The graph itself is the same, letter by letter.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" -q install torch==2.15.0 numpy==2.4.6 setuptools
cd "$scratch"
TORCHINDUCTOR_CACHE_DIR=$scratch/cache "$scratch/venv/bin/python" - <<'PY'
import re
import sys
import zipfile

import torch
import torch._inductor

print("torch", torch.__version__)


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x + 1) * x.cos()


program = torch.export.export(Model(), (torch.ones(4, 8),))
SIGNATURE = re.compile(r'extern "C" +void +cpp_\w+\([^)]*\)(?P<end>;|\n\{)')
seen, graphs = {}, {}
for form, config in (("compiled", {}), ("cpp_only", {"aot_inductor.package_cpp_only": True})):
    torch._inductor.aoti_compile_and_package(program, package_path=f"{form}.pt2", inductor_configs=config)
    places = set()
    with zipfile.ZipFile(f"{form}.pt2") as archive:
        sources = [name for name in archive.namelist() if name.endswith(".cpp")]
        for name in sources:
            text = archive.read(name).decode()
            run = text.find("::run_impl(")
            if run >= 0:
                graphs[form] = text[run:text.index("// AOTInductorModel::run_impl", run)]
            for found in SIGNATURE.finditer(text):
                kind = "declared" if found["end"] == ";" else "defined"
                place = "in .kernel.cpp" if run < 0 else "before run_impl" if found.start() < run else "behind run_impl"
                places.add(f"{kind} {place}")
    seen[form] = places
    print(f"{form}: {len(sources)} source(s); kernels are {', '.join(sorted(places))}")
print("the same run_impl:", graphs["compiled"] == graphs["cpp_only"])
sys.exit(
    not (
        seen["compiled"] == {"declared before run_impl", "defined in .kernel.cpp"}
        and seen["cpp_only"] == {"declared before run_impl", "defined behind run_impl"}
        and graphs["compiled"] == graphs["cpp_only"]
    )
)
PY
