"""The server against its own OpenAPI document: schemathesis makes requests that fit it and requests that do not."""
import os
import subprocess
import sys

import pytest
from serving import PACKAGES, Server

pytest.importorskip("schemathesis", reason="schemathesis is not installed: ./dev test installs it into .venv")

CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
          "unsupported_method", "allow_header_conformance")
# Parameters that mean something to the server, so that more than its 404 is tested.
CONFIG = """
[parameters]
"path.model" = "several.channels_last"
"path.version" = "1"
"path.region" = "r"
"""


def test_answers_are_what_the_document_says(tmp_path):
    examples = os.environ.get("SCONCE_SCHEMATHESIS_EXAMPLES", "4")
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    with Server(PACKAGES / "several.pt2", flags=["--allow-shared-memory", "true"]) as server:
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "--no-color", "--config-file", tmp_path / "schemathesis.toml",
             "run",
             f"http://127.0.0.1:{server.port}/openapi.json", "--checks", ",".join(CHECKS), "--phases", "coverage,fuzzing", "--max-examples", examples, "--seed", "1",
             "--suppress-health-check", "all", "--warnings", "off", "--request-timeout", "10"],
            cwd=tmp_path, capture_output=True, text=True, timeout=3600)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert server.process.poll() is None
        assert server.get("/v2/health/ready").status == 200
