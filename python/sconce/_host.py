"""Whether this machine can run Sconce: asked before libsconce is loaded, whose first instruction might kill the process."""
import os
import platform
import re

# x86-64-v3, in the words of /proc/cpuinfo. Kernels and most packages need it.
_FEATURES = ("avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe")


def require():
    """Raises ImportError if the processor lacks instructions that libsconce is made of."""
    machine = platform.machine()
    if machine != "x86_64":
        raise ImportError(f"sconce runs on x86-64 processors with AVX2; this machine is {machine}")
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpuinfo:
            flags = next((line for line in cpuinfo if line.startswith("flags")), None)
    except OSError:
        return
    if flags is None:
        return
    present = set(flags.split())
    missing = [feature for feature in _FEATURES if feature not in present]
    if missing:
        raise ImportError("sconce needs a processor with AVX2 (x86-64-v3, such as Intel Haswell or AMD Excavator and "
                          f"later); this one lacks {', '.join(missing)}")


def explain(error):
    """The ImportError of the native module in words about this machine; the same error if it needs no explanation."""
    found = re.search(r"version `(GLIBC|GLIBCXX|CXXABI)_([0-9.]+)' not found", str(error))
    if not found:
        return error
    library = "glibc" if found[1] == "GLIBC" else "libstdc++"
    have = os.confstr("CS_GNU_LIBC_VERSION") if library == "glibc" else None
    return ImportError(f"sconce needs {library} with {found[1]}_{found[2]} or newer"
                       + (f"; this system has {have}" if have else "") + f" ({error})")
