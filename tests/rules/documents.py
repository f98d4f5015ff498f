"""The commands that the documents tell their readers to type, in code blocks and code spans, one by one."""
import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md",
             ROOT / ".github/pull_request_template.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "src/README.md",
             ROOT / "server/README.md", ROOT / "tests/README.md", ROOT / "package_format/FORMAT.md",
             *sorted((ROOT / "examples").rglob("*.md")),
             *sorted((ROOT / "docker").rglob("*.md"))]

PROGRAM = (r"\./dev|\.ci/run|sconce|curl|python3?|\.venv/bin/\w+|pytest|ninja|cmake|ctest|docker|podman|perf_analyzer|pip3?|apt-get|"
           r"systemctl|kubectl|helm|git|tar|sed|bash|sh|sudo|nvcc|make|clang\+\+|g\+\+|openssl|sconce_\w+|test_\w+|bench_\w+")
COMMAND = re.compile(rf"(?:[A-Z_]+=\S+ +)*(?:(?:{PROGRAM}) [^|]|[\w-]+\.(?:py|sh) \S)")
PATH = re.compile(r"(?:[A-Z_]+=\S+ +)*((?:[\w.-]+/)+[\w.-]+)(?= |$)")


def is_program(path):
    """Whether a path alone is a command: a script of this repository, or a built program."""
    if path.startswith("build/"):
        return "." not in path.rsplit("/", 1)[1] and not path.endswith("-venv")
    file = ROOT / path
    if not file.is_file() or file.suffix not in (".py", ".sh", ""):
        return False
    text = file.read_text()
    return text.startswith("#!") or "__main__" in text or file.name.startswith("make_")


def is_command(text):
    path = PATH.match(text)
    return bool(COMMAND.match(text)) or path is not None and is_program(path[1])


def blocks_of(text):
    """(label, lines) of each block of code. label is the text after ``` if that is two words, such as "sh push"."""
    blocks = [(match[1], match[2].splitlines()) for match in re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)]
    rest = re.sub(r"^```.*\n(?:.*\n)*?```$", "", text, flags=re.MULTILINE)
    for match in re.finditer(r"(?<=\n\n)(?:(?: {4}.*)?\n)+", rest):
        if match[0].strip():
            blocks.append(("", [line[4:] for line in match[0].rstrip().splitlines()]))
    return blocks


def commands_of_line(line):
    """Removes the prompt and the remark; splits at &&."""
    line = re.sub(r"\s+#\s.*$", "", line.strip().removeprefix("$ "))
    return [" ".join(part.split()) for part in line.split(" && ")]


def read(document):
    """The commands of a document, and its other code by its first line. A labelled block is one command, whose lines
    are a script."""
    commands, others = [], []
    text = document.read_text()
    for label, lines in blocks_of(text):
        if " " in label:
            commands.append(label)
            continue
        joined = re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()
        within = False  # other code
        for line in joined:
            parts = commands_of_line(line)
            if is_command(parts[0]):
                commands += parts
                within = False
            elif line.strip() and not within:
                others.append(line.strip())
                within = True
            elif not line.strip():
                within = False
    prose = re.sub(r"^```.*\n(?:.*\n)*?```$", "", text, flags=re.MULTILINE)
    prose = re.sub(r"(?<=\n\n)(?:(?: {4}.*)?\n)+", "\n", prose)
    for span in re.findall(r"`([^`]+)`", prose):
        span = " ".join(span.split())
        if is_command(span):
            commands += commands_of_line(span)
    return commands, others


def read_all():
    """For all documents: command -> names of documents that have it, and the same for other code."""
    commands, others = collections.defaultdict(set), collections.defaultdict(set)
    for document in DOCUMENTS:
        for found, into in zip(read(document), (commands, others)):
            for text in found:
                into[text].add(str(document.relative_to(ROOT)))
    return commands, others
