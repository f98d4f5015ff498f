"""Why torch could not export or compile a model, and what to do about it."""
import re
import subprocess


class ExportError(RuntimeError):
    """The model could not be made a package. `cure` says what to change; the cause is torch's own exception."""

    def __init__(self, text, cure=""):
        super().__init__(f"{text}\n\n{cure}" if cure else text)
        self.cure = cure


def _dims(text):
    """torch's suggestions: name -> (min, max) that it found, or a number that the dimension must have."""
    found = {}
    for name, words in re.findall(r"^\s*(\w+) = Dim\(([^)\n]*)\)", text, re.MULTILINE):
        limits = dict(re.findall(r"(min|max)=(\d+)", words))
        found[name] = (int(limits["min"]) if "min" in limits else None, int(limits["max"]) if "max" in limits else None)
    for name, value in re.findall(r"^\s*(\w+) = (\d+)\s*$", text, re.MULTILINE):
        found[name] = int(value)
    return found


def _constraints(text, match):
    advice = []
    for name, limits in _dims(text).items():
        if isinstance(limits, int):
            advice.append(f"The model fixes dimension {name!r} to {limits}: some of its code uses the example's size as a number "
                          f"(a constant, int(x.shape[0]), or a view with a fixed size). Replace that code by sizes of tensors, "
                          f"or export without a dynamic {name}: batch=None.")
        elif name == "batch":
            low, high = limits
            advice.append(f"The model, or the code that the compiler chose for it, takes only "
                          f"{'batches of at least ' + str(low) if low is not None else ''}"
                          f"{' and ' if low is not None and high is not None else ''}"
                          f"{'batches of at most ' + str(high) if high is not None else ''}. "
                          f"Pass batch=({low if low is not None else 1}, {high if high is not None else 'MAX'}).")
        else:
            advice.append(f"Narrow dimension {name!r}: Dim({name!r}, min={limits[0]}, max={limits[1]}).")
    derived = re.findall(r"^\s*(\w+ = \d+\*\w+.*)$", text, re.MULTILINE)
    if derived:
        advice.append(f"The model takes only multiples: {'; '.join(derived)}. Say so in dynamic_shapes, with a Dim of that form.")
    return " ".join(advice) or ("A dimension that you declared dynamic is used as a fixed number, or has limits in the model. "
                                "torch names the line above; change it, narrow batch=(MIN, MAX), or leave batch out.")


_BRANCH = ("The model decides by the values of a tensor (if, while, int(), .item()): a package has one graph for all values. "
           "Choose with torch.where(condition, a, b), or torch.cond(condition, f, g, (x,)); state what you know of a number "
           "taken from a tensor with torch._check(n >= 0). The line is in torch's message above.")

CONTAINERS = (
    "Arguments and results are tensors, numbers and None, in tuples, lists, dicts, namedtuples and registered classes. Return "
    "a dict of the tensors; or register the class: torch.export.register_dataclass(Class) for a dataclass, "
    "torch.utils._pytree.register_pytree_node(...) for others (an output class of a library, such as ModelOutput: call the "
    "model with return_dict=False, or wrap it in a module that returns a dict).")

# (text of torch's exceptions, cure): the first that matches. A cure may be a function of the text and the match.
CURES = [
    (r"no fake impl registered|register_fake|torch\.library\.register_fake|register_kernel.*fake|no fake kernel",
     "The custom operator has no fake kernel, so torch cannot tell the shape of its result without running it. Register one: "
     "@torch.library.register_fake(\"namespace::name\") on a function that returns torch.empty of the result's shape."),
    (r"Constraints violated|specialized (?:it )?(?:to be|due to)|You marked .* as dynamic but", _constraints),
    (r"Could not guard on data-dependent|data-dependent (?:control flow|branching|expression)|GuardOnDataDependent|"
     r"Could not extract specialized integer|Dynamic control flow is not supported|UserErrorType.DYNAMIC_CONTROL_FLOW", _BRANCH),
    (r"(?:omp\.h|-lomp|-lgomp|libomp)\S*'?:? (?:No such file|file not found|not found)|cannot find -l?g?omp|omp\.h",
     "The C++ compiler has no OpenMP. With g++ it comes along (apt-get install g++); with clang: apt-get install libomp-dev."),
    (r"Python\.h(?:'|:)",
     "The headers of this Python are missing. On Debian and Ubuntu: apt-get install python3-dev (of the same version); or make "
     "the package with a Python that has them, as uv, pyenv and conda install it."),
    (r"No working C\+\+ compiler|InvalidCxxCompiler|Failed to import.*compiler|No such file or directory: '(?:g\+\+|gcc|clang\+\+|cc|c\+\+)|"
     r"command not found.*(?:g\+\+|clang)|(?:g\+\+|clang\+\+).*not found|No such file or directory: '[^']*(?:\+\+|cxx)[^']*'",
     "torch compiles with a C++ compiler, and found none that works. On Debian and Ubuntu: apt-get install g++; elsewhere set "
     "CXX to the path of g++ or clang++. Only the machine that makes packages needs it; Sconce does not."),
    (r"serialized_type_name|serialization name|No registered serializ|serialize.*pytree|serializer.*pytree|treespec",
     "A container of the call is registered with torch.utils._pytree, but without a name under which packages can record it. "
     "Register it with serialized_type_name=\"module.Class\", to_dumpable_context and from_dumpable_context; or, for a "
     "dataclass, torch.export.register_dataclass(Class)."),
    (r"one of the (?:outputs|inputs) .*(?:not supported|unsupported)|[Uu]nsupported (?:output|input)|"
     r"Expected .*(?:outputs|inputs).* to be|not supported as (?:an )?(?:output|input)|type .* is not supported as|"
     r"Unexpected output types|not a known type|not registered.*pytree|invalid (?:input|output) type|Unknown output type|Unsupported .*argument",
     CONTAINERS),
    (r"Cannot access data pointer|\.numpy\(\) is not supported|Can't call numpy\(\)|can't be converted to numpy|"
     r"DataPtr.*Fake|Attempting to .*convert.* numpy|FunctionalTensor.*numpy",
     "The model leaves PyTorch (tensor.numpy(), a function of NumPy, a C extension). Write that part with torch operators, or "
     "as a custom operator (torch.library.custom_op) with a fake kernel."),
    (r"in-?place|mutat.*(?:input|alias)|input.*mutat",
     "The model changes an argument in place where that cannot be recorded. Work on a copy (x = x.clone()) and return it."),
    (r"out of memory|MemoryError|Killed signal|cc1plus.*[Kk]illed",
     "The compiler ran out of memory. Set MAX_JOBS=1, close other programs, or export on a larger machine."),
]


def cured(error, doing):
    """The ExportError for an exception of torch while `doing`."""
    chain, shown, at = [], "", error
    while at is not None and len(chain) < 8:
        words = _words(at)
        chain.append(f"{type(at).__name__}: {words}")
        if not shown or shown == "None":
            shown = words
        at = at.__cause__ or at.__context__
    text = "\n".join(chain)
    for pattern, cure in CURES:
        match = re.search(pattern, text)
        if match:
            return ExportError(f"{doing}: {_excerpt(shown)}", cure(text, match) if callable(cure) else cure)
    return ExportError(f"{doing}: {type(error).__name__}: {_excerpt(shown)}",
                       "docs/export.md lists what models must keep to.")


def _words(error):
    """What an exception says; of a failed compiler its messages, without its long command."""
    if isinstance(error, subprocess.CalledProcessError) and isinstance(error.cmd, list):
        said = error.stderr or error.output
        if not said:
            # torch 2.6 lets the compiler write to the terminal: what did it say?
            said = subprocess.run(error.cmd, capture_output=True, text=True).stderr
        return said.decode(errors="replace") if isinstance(said, bytes) else said
    text = str(error)
    return text.partition("\nOutput:\n")[2].strip() or text


def _excerpt(text, lines=12):
    kept = [line for line in text.strip().splitlines() if line.strip()]
    return "\n".join(kept[:lines] + (["..."] if len(kept) > lines else []))
