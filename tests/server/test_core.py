"""The program without the parts that a build may leave out (./dev build core, docs/install.md)."""
import functools
import re
import subprocess

import pytest
from admin_server import FAKE, GOOD, ONES, STORED, AdminServer
from serving import PACKAGES, PROGRAM, ROOT, run_serve
from weights_files import fake_weights

CORE = PROGRAM.parent / "core/sconce"
pytestmark = pytest.mark.skipif(not CORE.exists(), reason=f"the program is not built: {CORE} (./dev build core)")

CONSOLE = "this build has no console (SCONCE_CONSOLE)"
SIGNING = "this build has no signing (SCONCE_SIGNING)"
REMOTE_STORES = "this build has no remote stores (SCONCE_REMOTE_STORES)"
TRAINERS = "this build has no trainers (SCONCE_TRAINERS)"
SETTINGS = {
    "require_signature": ("key.pem", SIGNING),
    "remote_cache": ("/tmp/cache", REMOTE_STORES),
    "remote_cache_size": ("1G", REMOTE_STORES),
    "remote_watch": ("1m", REMOTE_STORES),
    "remote_connections": ("4", REMOTE_STORES),
    "remote_stall": ("1m", REMOTE_STORES),
    "remote_ca": ("/tmp/ca.pem", REMOTE_STORES),
    "trainer_timeout": ("1m", TRAINERS),
}

serve_core = functools.partial(run_serve, program=CORE)


def run(*arguments, program=CORE):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def core():
    with AdminServer(f"fake={FAKE}", PACKAGES / "several.pt2", program=CORE) as running:
        yield running


def test_it_serves(core):
    assert core.ones()[0] == STORED
    assert core.index()["several.channels_last"][0] == "READY"
    assert any(name.startswith("sconce_requests") for name in core.metrics())


def test_weights_are_replaced():
    with AdminServer(f"fake={FAKE}", program=CORE) as server:
        before = server.ones()[1]
        assert server.push("fake", GOOD, "commit=true").status == 200
        assert server.ones() == ([16, 16, 16, 16], before + 1)
        assert server.admin("POST", "fake/weights/rollback").status == 200
        assert server.infer("fake", ONES).json["outputs"][0]["data"] == STORED


@pytest.mark.parametrize("path", ["/console", "/console/index.html", "/v2/admin/live",
                                  "/v2/admin/log", "/v2/admin/log/live"])
def test_the_consoles_routes_name_the_option(core, path):
    answer = core.admin("GET", path)
    assert (answer.status, answer.json["error"]) == (501, CONSOLE)


def test_the_page_links_no_console(core):
    page = core.get("/", headers={"Accept": "text/html"})
    assert page.status == 200 and b"/console" not in page.body


def test_the_trainers_routes_name_the_option(core):
    paths = core.admin("GET", "/openapi.json").json["paths"]
    routes = [(method.upper(), path) for path, methods in paths.items() for method, route in methods.items()
              if method != "parameters" and "trainers" in route["tags"] and not path.startswith("/health")]
    assert len(routes) > 30 and ("POST", "/update_weights") in routes
    for method, path in routes:
        answer = core.admin(method, path, {} if method == "POST" else None)
        assert (answer.status, answer.json["error"]) == (501, TRAINERS), (method, path)


@pytest.mark.parametrize("key", SETTINGS)
def test_a_setting_of_a_missing_part_is_refused(tmp_path, key):
    value, reason = SETTINGS[key]
    wanted = f"sconce: setting {key}: {reason}\n"
    assert serve_core(f"fake={FAKE}", "--" + key.replace("_", "-"), value) == (1, wanted)
    assert serve_core(f"fake={FAKE}", environment={"SCONCE_" + key.upper(): value}) == (1, wanted)
    (tmp_path / "sconce.conf").write_text(f"{key} = {value}\n")
    assert serve_core(f"fake={FAKE}", "--config", tmp_path / "sconce.conf") == (1, wanted)


@pytest.mark.parametrize("address", ["s3://bucket/models", "m=https://host.example/m.pt2?secret=xyz"])
def test_an_address_is_refused(address):
    status, log = serve_core(address)
    assert status == 1 and log.endswith(f"sconce: setting serve: an address: {REMOTE_STORES}\n")
    assert "xyz" not in log


def test_commands_of_missing_parts_name_the_option(tmp_path):
    file = tmp_path / "w.safetensors"
    file.write_bytes(fake_weights(2))
    assert run("pull", "s3://bucket/m.pt2") == (1, "", f"sconce: {REMOTE_STORES}\n")
    assert run("sign", "--key", "key.pem", file) == (1, "", f"sconce: {SIGNING}\n")
    assert run("verify", "--key", "key.pub", file) == (1, "", f"sconce: {SIGNING}\n")
    assert not file.with_suffix(".safetensors.sig").exists()


def test_a_push_is_signed_by_a_build_with_signing(tmp_path):
    file = tmp_path / "w.safetensors"
    file.write_bytes(fake_weights(2))
    with AdminServer(f"fake={FAKE}", program=CORE) as server:
        push = ["weights", "push", file, "--model", "fake", "--to", f"127.0.0.1:{server.admin_port}"]
        status, _, errors = run(*push, "--sign", "key.pem")
        assert (status, errors) == (1, f"sconce: option --sign: {SIGNING}\n")
        assert server.ones()[0] == STORED
        status, output, errors = run(*push)
        assert status == 0, output + errors
        assert server.ones()[0] == [4, 4, 4, 4]


def marked(text):
    """The commands or settings that the help text says are missing."""
    entries = re.split(r"^  (?=\S)", text, flags=re.MULTILINE)
    return {entry.split()[0].removeprefix("--") for entry in entries if "(not in this build: SCONCE_" in entry}


def test_help_marks_what_is_missing():
    status, text, _ = run("--help")
    full = run("--help", program=PROGRAM)[1]
    assert status == 0 and re.sub(r" \(not in this build: SCONCE_\w+\)", "", text) == full
    assert marked(text) == {"pull", "sign"}
    status, text, _ = run("serve", "--help")
    assert status == 0 and marked(text) == {key.replace("_", "-") for key in SETTINGS}
    assert not marked(run("serve", "--help", program=PROGRAM)[1])


def test_settings_are_those_of_every_build():
    assert run("serve", "--print-config")[1] == (ROOT / "conf/sconce.conf").read_text()
    with AdminServer(f"fake={FAKE}", flags=["--config", str(ROOT / "conf/sconce.conf")], program=CORE) as server:
        assert server.ones()[0] == STORED


def test_check_and_run(tmp_path):
    package = PACKAGES / "several.pt2"
    assert run("check", package)[:2] == run("check", package, program=PROGRAM)[:2]
    assert "ok" in run("check", package)[1]
    (tmp_path / "cut.pt2").write_bytes(package.read_bytes()[:1000])
    assert run("check", tmp_path / "cut.pt2")[0] == 2
    assert run("inspect", package) == run("inspect", package, program=PROGRAM)


def test_it_is_smaller():
    assert CORE.stat().st_size < PROGRAM.stat().st_size
