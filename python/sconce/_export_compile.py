"""Compiles exported programs with AOTInductor for a stated instruction set, and packs what it writes.

torch takes -march=native, keeps debug lines, and writes the paths of this machine into sources and code. Here the flags of
its compile commands are replaced as they are made, and the sources' paths before they are packed; no compiler is wrapped
and no archive rewritten.
"""
import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import unittest.mock

from sconce._export_errors import ExportError, cured

WIDTHS = {512: ("avx512f", "avx512bw", "avx512dq", "avx512vl"), 256: ("avx2", "fma", "f16c")}


def version_of(torch):
    return tuple(int(n) for n in re.match(r"(\d+)\.(\d+)", torch.__version__).groups())


def compiler(torch):
    from torch._inductor import config
    found = config.cpp.cxx
    names = [n for n in (found if isinstance(found, (tuple, list)) else [found]) if n] + ["g++", "clang++"]
    for name in names:
        if shutil.which(name):
            return name
    return None


def vector_width(torch, cpu):
    """512, 256 or 0 bits: what a CPU of that -march has."""
    name = compiler(torch)
    if not name:
        raise cured(RuntimeError("No working C++ compiler found"), "torch needs a C++ compiler")
    told = subprocess.run([name, f"-march={cpu}", "-dM", "-E", "-x", "c++", os.devnull], capture_output=True, text=True)
    if told.returncode:
        raise ValueError(f"cpu: {name} knows no -march={cpu}: {(told.stderr.strip().splitlines() or [''])[0]}")
    has = set(re.findall(r"#define __(\w+)__ 1", told.stdout.lower()))
    return next((width for width, wanted in WIDTHS.items() if has.issuperset(wanted)), 0)


@contextlib.contextmanager
def instruction_set(torch, cpu):
    """Makes torch generate and compile for that CPU, whatever this machine is. Yields the width of its vectors."""
    from torch._inductor import cpu_vec_isa
    if cpu == "native":
        yield None
        return
    width = vector_width(torch, cpu)
    if not width:
        raise ValueError(f"cpu={cpu!r} has no AVX2, which Sconce needs; use 'x86-64-v3'")
    wanted = cpu_vec_isa.VecAVX512() if width == 512 else cpu_vec_isa.VecAVX2()
    flags = pathlib.Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""
    if any(not re.search(rf"\b{flag}\b", flags) for flag in WIDTHS[width]):
        # torch compiles and runs a trial of the vectors it generates.
        raise ExportError(f"cpu={cpu!r}: this machine lacks {'AVX-512' if width == 512 else 'AVX2'}, and torch tries out the "
                          "vectors that it generates", "Use cpu='x86-64-v3', or make the package on a machine that has it.")
    with contextlib.ExitStack() as stack:
        # Plain AVX-512, not what this machine has beyond it (VNNI, AMX).
        stack.enter_context(unittest.mock.patch.object(cpu_vec_isa, "supported_vec_isa_list", [wanted]))
        forget(cpu_vec_isa)
        stack.callback(forget, cpu_vec_isa)
        yield width


def forget_paths(torch):
    """Caches of this process that name files in folders which an export removes."""
    from torch._inductor import codecache, utils
    for name in ("clear_caches", "clear_inductor_caches"):
        if hasattr(utils, name):
            getattr(utils, name)()
    if hasattr(getattr(codecache, "cpp_prefix_path", None), "cache_clear"):
        codecache.cpp_prefix_path.cache_clear()


def forget(cpu_vec_isa):
    for name in ("valid_vec_isa_list", "pick_vec_isa"):
        if hasattr(getattr(cpu_vec_isa, name, None), "cache_clear"):
            getattr(cpu_vec_isa, name).cache_clear()


@contextlib.contextmanager
def compile_flags(cpu, places):
    """Replaces the flags of torch's compile commands: no debug lines, no path of `places`, and -march=cpu."""
    from torch._inductor import cpp_builder
    original = cpp_builder._get_optimization_cflags

    def replaced(flags):
        kept = [f for f in flags if f not in ("g", "g1", "gline-tables-only")]
        if cpu != "native":
            kept = [f"march={cpu}" if re.match(r"m(arch|cpu)=", f) else f for f in kept]
        return kept + [f"ffile-prefix-map={old}={new}" for old, new in places.items()]

    def optimization_flags(*args, **kwargs):
        found = original(*args, **kwargs)
        return (replaced(found[0]), *found[1:]) if isinstance(found, tuple) else replaced(found)
    with unittest.mock.patch.object(cpp_builder, "_get_optimization_cflags", optimization_flags):
        yield


def settings(torch, *, weights, updatable, threads, metadata, more):
    """The configuration of AOTInductor, of what this version knows."""
    from torch._inductor import config
    patches = {"aot_inductor.package": True, "freezing": not updatable}
    if updatable:
        # Small constants stay out of the code, so that they can be replaced like the rest.
        patches["always_keep_tensor_constants"] = True
    if threads is not None:
        patches["cpp.threads"] = threads
    if metadata:
        patches["aot_inductor.metadata"] = {str(k): str(v) for k, v in metadata.items()}
    if weights == "none":
        patches["aot_inductor.package_constants_in_so"] = False
    elif weights == "beside":
        if not hasattr(config.aot_inductor, "package_constants_on_disk_format"):
            raise ExportError(f"weights='beside' needs torch 2.10 or later; this is {torch.__version__}",
                              "Use weights='inside'.")
        patches["aot_inductor.package_constants_in_so"] = False
        patches["aot_inductor.package_constants_on_disk_format"] = "binary_blob"
    elif weights != "inside":
        raise ValueError(f"weights: expected 'inside', 'beside' or 'none', got {weights!r}")
    patches.update(more)
    reserved = [key for key in patches.get("aot_inductor.metadata", {}) if str(key).startswith("sconce_")]
    if reserved:
        raise ValueError(f"metadata: keys that begin with 'sconce_' are Sconce's own: {', '.join(map(repr, reserved))}")
    return patches


class Folder:
    """A folder for compiling, of the same name whenever it can be: the names of torch's files are hashes of commands that
    name the folder, so that equal models give equal packages. Nobody else may write there, nor another export meanwhile."""

    def __init__(self):
        self.lock = self.temporary = None
        for slot in range(16):
            self.name = os.path.join(os.path.realpath(tempfile.gettempdir()), f"sconce-export-{os.getuid()}-{slot}")
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.name, 0o700)
            found = os.lstat(self.name)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
                continue
            lock = os.open(self.name, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                continue
            self.lock = lock
            self.empty()
            return
        self.temporary = tempfile.TemporaryDirectory(prefix="sconce-export-")
        self.name = self.temporary.name

    def empty(self):
        for entry in os.scandir(self.name):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)

    def cleanup(self):
        if self.temporary:
            self.temporary.cleanup()
        elif self.lock is not None:
            self.empty()
            os.close(self.lock)
            self.lock = None


class Compiler:
    """Compiles programs into files in a folder of its own, and packs them."""

    def __init__(self, torch, cpu):
        self.torch, self.cpu, self.width = torch, cpu, None  # width: of vectors, in bits; None: as torch likes
        self.folder = Folder()
        self.cache = os.path.realpath(os.path.join(self.folder.name, "cache"))
        root = os.path.dirname(os.path.realpath(torch.__file__))
        # The longest first: one may be within another.
        found = {self.cache: "inductor", root: "torch", os.path.dirname(root): "site-packages",
                 sysconfig.get_paths()["include"]: "python", os.path.realpath(sys.prefix): "python",
                 os.path.realpath(sys.base_prefix): "python", self.folder.name: "inductor"}
        with contextlib.suppress(Exception):
            from torch._inductor.runtime.cache_dir_utils import default_cache_dir
            found[default_cache_dir()] = "inductor"
        self.places = {old: found[old] for old in sorted(found, key=len, reverse=True) if len(old) > 4}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()
        forget_paths(self.torch)

    def compile(self, name, program, patches):
        """The files of one model."""
        torch = self.torch
        module = program.module(check_guards=False) if _takes(program.module, "check_guards") \
            else program.module()
        args, kwargs = program.example_inputs
        # The sources' names are hashes of their text; a folder of this program's choosing keeps them apart.
        environment = {"TORCHINDUCTOR_CACHE_DIR": os.path.join(self.cache, name),
                       "TRITON_DISABLE_LINE_INFO": "1"}  # code for GPUs would name the files it was generated from
        os.makedirs(environment["TORCHINDUCTOR_CACHE_DIR"])
        places = {environment["TORCHINDUCTOR_CACHE_DIR"]: "inductor",
                  **{old: new for old, new in self.places.items() if new == "torch"}}
        if "aot_inductor.precompile_headers" not in patches and self._has("precompile_headers"):
            # They would be compiled anew for each export, whose folder is in the flags.
            patches = {**patches, "aot_inductor.precompile_headers": False}
        forget_paths(torch)
        with unittest.mock.patch.dict(os.environ, environment), compile_flags(self.cpu, places), torch.no_grad():
            files = torch._inductor.aot_compile(module, tuple(args), dict(kwargs or {}), options=dict(patches))
        if not isinstance(files, list):
            raise ExportError(f"torch {torch.__version__} wrote {files!r} instead of a package's files")
        for file in files:
            if isinstance(file, str) and file.endswith((".cpp", ".json")):
                self.neutralise(file)
            elif isinstance(file, str) and file.endswith(".so"):
                self.neutralise_library(file)
        self.check(files)
        return files

    def _has(self, key):
        from torch._inductor import config
        return hasattr(config.aot_inductor, key)

    def neutralise(self, file):
        text = open(file, encoding="utf-8").read()
        changed = text
        for old, new in {os.path.join(self.cache, name): "inductor" for name in os.listdir(self.cache)}.items():
            changed = changed.replace(old, new)
        for old, new in self.places.items():
            changed = changed.replace(old, new)
        # What else the commands name: the libraries' folders.
        code, marker, commands = changed.partition("// Compile cmd")
        changed = code + marker + re.sub(r"(?<=[\s=LI])/(?:[\w.+-]+/)+(?=[\w.+-])", "", commands)
        if changed != text:
            pathlib.Path(file).write_text(changed, encoding="utf-8")

    def neutralise_library(self, file):
        """Code for GPUs names its kernels' files as they were here; whoever loads it looks for their last parts only. What
        is before them becomes as many other characters."""
        content = pathlib.Path(file).read_bytes()
        changed = content
        for old in sorted(self.places, key=len, reverse=True):
            changed = changed.replace(old.encode() + b"/", b"." + b"/" * len(old.encode()))
        if changed != content:
            pathlib.Path(file).write_bytes(changed)

    def check(self, files):
        """What the commands record, and that no path of this machine is left."""
        for file in files:
            if not isinstance(file, str) or not os.path.isfile(file):
                continue
            if file.endswith(".cpp"):
                text = open(file, encoding="utf-8").read()
                marches = set(re.findall(r"-m(?:arch|cpu)=(\S+)", text.partition("// Compile cmd")[2]))
                macro = f"CPU_CAPABILITY_AVX{512 if self.width == 512 else 2}"
                if self.width and macro not in text.partition("// Compile cmd")[2]:
                    raise ExportError(f"torch {self.torch.__version__} generated no vectors of {self.width} bits: its trial with the "
                                      "C++ compiler failed", "Set TORCH_LOGS=+inductor to see why.")
                if marches != {self.cpu}:
                    raise ExportError(f"torch {self.torch.__version__} compiled for {' and '.join(sorted(marches)) or 'no -march'} "
                                      f"instead of {self.cpu}")
            elif file.endswith((".so", ".cubin")) and os.path.getsize(file) < 1 << 28:
                content = pathlib.Path(file).read_bytes()
                left = [old for old in self.places if old.encode() + b"/" in content]
                if left:
                    raise ExportError(f"the code of the package names {', '.join(left)}")

    def pack(self, path, files):
        """files: model's name -> its files. Writes beside `path`, under another name, and returns that."""
        from torch._inductor.package import package_aoti
        folder = tempfile.mkdtemp(prefix=f".{path.stem}-", dir=path.parent)
        # The archive's root folder is the file's stem, so the file has its own name in a folder beside it.
        temporary = os.path.join(folder, path.name)
        try:
            package_aoti(temporary, files)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return temporary


def _takes(function, name):
    import inspect
    return name in inspect.signature(function).parameters
