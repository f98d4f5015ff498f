"""A strict reader of Prometheus' text format (0.0.4). Text that Prometheus would refuse or misread is an error."""
import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"'
NUMBER = r"[+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|Inf)|NaN"
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)?\}})? ({NUMBER})")
KINDS = ("counter", "gauge", "histogram", "summary", "untyped")


def parse(text):
    """{name: {((label, value), ...): number}}; ValueError names the line."""
    families, kinds, helped, series, over = {}, {}, set(), {}, set()
    current = None

    def enter(family, line):
        nonlocal current
        if family == current:
            return
        if family in over:
            raise ValueError(f"lines of {family} are not together: {line}")
        if current is not None:
            over.add(current)
        current = family

    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    for line in text[:-1].split("\n"):
        if not line:
            continue
        if line.startswith("#"):
            found = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
            if not found:
                raise ValueError(f"malformed: {line}")
            what, name, rest = found.groups()
            enter(name, line)
            if what == "HELP":
                if name in helped:
                    raise ValueError(f"HELP twice: {line}")
                helped.add(name)
            else:
                if name in kinds:
                    raise ValueError(f"TYPE twice: {line}")
                if name in families or rest not in KINDS:
                    raise ValueError(f"TYPE is late or unknown: {line}")
                kinds[name] = rest
            continue
        found = SAMPLE.fullmatch(line)
        if not found:
            raise ValueError(f"malformed: {line}")
        name, labels, value = found.group(1), found.group(2) or "", float(found.groups()[-1])
        pairs = re.findall(LABEL, labels)
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError(f"a label twice: {line}")
        family = name
        for suffix in ("_bucket", "_sum", "_count"):
            if name.endswith(suffix) and kinds.get(name[:-len(suffix)]) in ("histogram", "summary"):
                family = name[:-len(suffix)]
        if family not in kinds:
            raise ValueError(f"no TYPE: {line}")
        if kinds[family] == "histogram" and family == name:
            raise ValueError(f"a histogram has no value of its own: {line}")
        enter(family, line)
        key = (name, tuple(sorted(pairs)))
        if key in series:
            raise ValueError(f"a series twice: {line}")
        series[key] = value
        families.setdefault(family, {})
        if kinds[family] == "counter" and not value >= 0:
            raise ValueError(f"a counter below zero: {line}")
    for family in (name for name, kind in kinds.items() if kind == "histogram"):
        check_histogram(family, series)
    result = {}
    for (name, pairs), value in series.items():
        result.setdefault(name, {})[pairs] = value
    return result


def check_histogram(family, series):
    buckets = {}
    for (name, pairs), value in series.items():
        if name != family + "_bucket":
            continue
        labels = dict(pairs)
        bound = float(labels.pop("le"))
        buckets.setdefault(tuple(sorted(labels.items())), []).append((bound, value))
    counts = {pairs: value for (name, pairs), value in series.items() if name == family + "_count"}
    sums = {pairs for name, pairs in series if name == family + "_sum"}
    if set(buckets) != set(counts) or set(counts) != sums:
        raise ValueError(f"{family} lacks buckets, a sum or a count")
    for labels, found in buckets.items():
        bounds, values = zip(*found)
        if list(bounds) != sorted(set(bounds)) or list(values) != sorted(values) or bounds[-1] != math.inf:
            raise ValueError(f"{family}: buckets are not in order: {found}")
        if values[-1] != counts[labels]:
            raise ValueError(f"{family}: the last bucket is not the count: {labels}")
