"""The code of the documents: its blocks, and the commands in blocks and code spans."""
import collections
import pathlib
import re
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
LISTED = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
TRACKED = [name for name in LISTED if (ROOT / name).is_file()]  # others are deleted but not committed
PAGES = [name for name in TRACKED if name.endswith(".md")]

# words: those after ```, such as ["sh", "run"]; none of a block that is indented. place: PAGE:LINE.
Block = collections.namedtuple("Block", "place words code")
BLOCK = re.compile(r"^```(.*)\n((?:.*\n)*?)```$|(?<=\n\n)((?: {4}.*\n|\n(?= {4}|\n))+)", re.MULTILINE)
Command = collections.namedtuple("Command", "place environment words")


def text_of(page):
    return (ROOT / page).read_text()


def blocks(page):
    text = text_of(page)
    return [Block(f"{page}:{text.count(chr(10), 0, found.start()) + 1}", (found[1] or "").split(),
                  found[2] if found[3] is None else re.sub(r"^ {4}", "", found[3], flags=re.MULTILINE))
            for found in BLOCK.finditer(text)]


def lines_of(code):
    """Without prompts; joined where a line ends with a backslash."""
    return [line.strip().removeprefix("$ ") for line in re.sub(r"\\\n", " ", code).splitlines() if line.strip()]


def code_of(page):
    """(place, text) of each line of a block and of each code span, except lines of Python and C."""
    for block in blocks(page):
        if block.words[:1] not in (["python"], ["c"]):
            yield from ((block.place, line) for line in lines_of(block.code))
    for span in re.findall(r"`([^`]+)`", BLOCK.sub("", text_of(page))):
        yield page, " ".join(span.split())


def split(line):
    """The commands of a line: their words, without remarks, brackets of what may be left out, and redirections."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:  # a quotation that does not end
        return []
    found = [[]]
    for word in words:
        if re.fullmatch(r"[|&;()]+", word):
            found.append([])
        elif word := word.removeprefix("["):
            found[-1].append(word if "[" in word else word.removesuffix("]"))
    return [one for one in found if one]


def commands():
    """Each command of the documents, and much that is none: code spans may be anything."""
    for page in PAGES:
        for place, text in code_of(page):
            for words in split(text):
                environment = [word for word in words if re.match(r"[A-Z_]{2,}=", word)]
                if words := words[len(environment):]:
                    yield Command(place, environment, words)
