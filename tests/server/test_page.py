"""The first page: every example of it works when it is pasted, in a shell and in Python."""
import collections
import html.parser
import json
import os
import re
import subprocess
import sys
import urllib.request

import pytest
from sequence_serving import HAS_GRPC, PACKAGE as SEQUENCES
from serving import FAKE_MODELS, PACKAGES, PROGRAM, ROOT, Server, until
from test_generate import LOOPS, PACKAGE

np = pytest.importorskip("numpy")
pytest.importorskip("tritonclient.http")
pytest.importorskip("ml_dtypes")

DIGITS = ROOT / "examples/digits/digits.pt2"
HTML = {"Accept": "text/html,application/xhtml+xml"}
Example = collections.namedtuple("Example", ["model", "title", "language", "text"])


class Page(html.parser.HTMLParser):
    """Its examples by model; links, states, and what a strict CSP would not let through."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.examples, self.links, self.headings, self.forbidden = [], [], [], []
        self.inside, self.words, self.language = None, "", ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in ("script", "style", "iframe", "img") or "style" in attributes or any(a.startswith("on") for a in attributes):
            self.forbidden.append((tag, attributes))
        if tag == "a":
            self.links.append(attributes["href"])
        if tag in ("h2", "h3", "code"):
            self.inside, self.words = tag, ""
            self.language = attributes.get("class", "")

    def handle_data(self, data):
        self.words += data

    def handle_endtag(self, tag):
        if tag != self.inside:
            return
        self.inside = None
        if tag == "h2":
            self.model = self.words.split()[0]
        elif tag == "h3":
            self.title = self.words
        elif self.language:
            self.examples.append(Example(self.model, self.title, self.language, self.words))


class Served(Server):
    """The models of all the tests' packages, with sequences, loops and, where it is built, gRPC."""

    def __init__(self, folder, flags=()):
        words = ["--grpc", "127.0.0.1:0"] if HAS_GRPC else []
        for name, loop in LOOPS.items():
            (folder / f"{name}.json").write_text(json.dumps(loop))
            words += ["--set", f"loops.{name}.loop={folder / name}.json"]
        for name in ("loops.buffers", "sequences.running", "sequences.cache", "sequences.controlled"):
            words += ["--set", f"{name}.sequences=4"]
        super().__init__(DIGITS, PACKAGES / "several.pt2", PACKAGES / "inlined.pt2", f"loops={PACKAGE}", SEQUENCES,
                         f"fake={FAKE_MODELS / 'fake_model.so'}", flags=[*words, *flags])
        found = re.search(r"inference by gRPC on (\S+)", "".join(self.log))
        self.grpc = found and found[1]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Where an example is pasted: its python3 is this one, and has the package `sconce`."""
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.path.append({str(ROOT / 'tests/python')!r})\nimport pure\n")
    return {**os.environ, "PYTHONPATH": str(folder), "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Served(tmp_path_factory.mktemp("loops")) as running:
        yield running


def paste(text, language, folder, environment):
    """Runs it, and returns all that it answered."""
    command = ["sh"] if language == "shell" else [sys.executable, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder, env=environment, timeout=120)
    assert done.returncode == 0 and not done.stderr, (text, done.stdout, done.stderr)
    answer = folder / "answer.bin"
    said = answer.read_bytes().decode(errors="replace") if answer.exists() else done.stdout
    answer.unlink(missing_ok=True)
    assert said and '"error"' not in said, (text, said)
    return said


def test_every_example_of_the_page(server, environment, tmp_path):
    page = Page(server.get("/", headers=HTML).body.decode())
    kinds = collections.Counter(example.title for example in page.examples)
    for example in page.examples:
        said = paste(example.text, example.language, tmp_path, environment)
        if example.title.startswith("Open Inference"):
            assert f'"model_name":"{example.model}"' in said
    models = {m["name"] for m in server.post("/v2/repository/index", b"").json}
    described = models - {"fake"}
    assert {example.model for example in page.examples} == described, "the fake model's package says nothing of its inputs"
    assert kinds["Open Inference Protocol v2, by curl"] == kinds["Triton's client"] == len(described)
    assert kinds["gRPC, by Triton's client"] == (len(described) if HAS_GRPC else 0)
    assert kinds["Tokens from a prompt, by curl"] == 3
    assert kinds["The call as in Python, by curl"] >= 5 and kinds["sconce.Client"] >= 5


def test_the_answers_are_the_models(server, environment, tmp_path):
    """Zeros are what the examples say that they send."""
    page = Page(server.get("/", headers=HTML).body.decode())
    call = next(e for e in page.examples if e.model == "digits" and e.title.startswith("The call"))
    expected = server.post("/v1/models/digits:call", {"args": [np.zeros((1, 8, 8)).tolist()]})
    assert paste(call.text, "shell", tmp_path, environment) == expected.body.decode()


def test_every_example_of_the_text(server, environment, tmp_path):
    """What curl shows: commands for a shell, those of Python too, below a line with their title."""
    text = server.get("/", headers={"Accept": "*/*"}).body.decode()
    blocks = [block for block in text.split("\n\n") if block.startswith("# ") and "\n" in block]
    for block in blocks:
        paste(block, "shell", tmp_path, environment)
    assert sum("python3 -" in block for block in blocks) == (3 if HAS_GRPC else 2)
    assert sum("/infer" in block for block in blocks) == len(server.post("/v2/repository/index", b"").json) - 1
    assert "fake, version 1: ready" in text


def test_what_it_says_and_how(server):
    answer = server.get("/", headers=HTML)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "style-src 'self'" in policy and "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Vary"] == "Accept"
    page = Page(answer.body.decode())
    assert not page.forbidden
    url = f"http://127.0.0.1:{server.port}"
    assert f"http://127.0.0.1:{server.admin_port}/console" in page.links
    own = [link for link in page.links if link.startswith(url)]
    assert len(own) >= 5
    for link in own:
        assert server.get(link.removeprefix(url)).status == 200, link
    style = server.get("/page.css")
    assert style.headers["Content-Type"].startswith("text/css") and b"prefers-color-scheme:dark" in style.body
    assert b'href="page.css"' in answer.body


def test_the_address_is_the_one_that_the_client_uses(server):
    text = server.get("/", headers={"Host": "localhost:1234"}).body.decode()
    assert "http://localhost:1234/v2/models/digits/infer" in text
    refused = server.get("/", headers={"Host": "x$(touch;y)"})
    assert refused.status == 403 and "touch" not in refused.body.decode()
    admin = server.get("/", headers=HTML, port=server.admin_port).body.decode()
    assert f"http://127.0.0.1:{server.port}/v2/models/digits/infer" in admin
    assert server.get("/page.css", port=server.admin_port).status == 200


def test_with_a_token(environment, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("infer infer-infer-infer-1\n")
    with Server(DIGITS, flags=["--token-file", str(tokens), *(["--grpc", "127.0.0.1:0"] if HAS_GRPC else [])]) as server:
        assert server.get("/", headers=HTML).status == 401
        assert server.get("/page.css").status == 200
        page = Page(server.get("/", headers={**HTML, "Authorization": "Bearer infer-infer-infer-1"}).body.decode())
        assert len(page.examples) == (5 if HAS_GRPC else 4)
        for example in page.examples:
            assert "SCONCE_TOKEN" in example.text and "infer-infer" not in example.text
            paste(example.text, example.language, tmp_path, {**environment, "SCONCE_TOKEN": "infer-infer-infer-1"})


def test_models_that_are_not_ready(tmp_path):
    (tmp_path / "bad.pt2").write_bytes(b"PK not a package")
    (tmp_path / "good.pt2").symlink_to(DIGITS)
    with Server(tmp_path, flags=["--exit-on-error", "false"], wait=False) as server:
        until(lambda: all(state != "LOADING" for state, _ in server.index().values()))
        text = server.get("/").body.decode()
        assert "bad, version 1: not available: " in text and "good, version 1: ready" in text
        page = server.get("/", headers=HTML).body.decode()
        assert {example.model for example in Page(page).examples} == {"good"}


def test_no_http_at_all():
    """The page of the admin listener, where inference is by gRPC alone."""
    if not HAS_GRPC:
        pytest.skip("libsconce_grpc is not built: libgrpc++-dev is missing")
    process = subprocess.Popen([PROGRAM, "serve", DIGITS, "--http", "off", "--metrics", "off", "--admin", "127.0.0.1:0",
                                "--grpc", "127.0.0.1:0", "--drain-grace", "0"], stderr=subprocess.PIPE, text=True)
    try:
        admin = None
        while admin is None:
            line = process.stderr.readline()
            assert line
            found = re.search(r"administration on (http://\S+)", line)
            admin = found and found[1]

        def examples():
            with urllib.request.urlopen(urllib.request.Request(admin + "/", headers=HTML), timeout=20) as answer:
                return Page(answer.read().decode()).examples
        until(examples)
        assert {example.title for example in examples()} == {"gRPC, by Triton's client"}
    finally:
        process.terminate()
        process.communicate(timeout=30)
