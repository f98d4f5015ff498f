"""The blocks of examples/ray/README.md, as they stand there, on the two nodes."""
import asyncio
import json
import os
import re
import signal
import subprocess
import textwrap

import numpy as np
import pytest
import ray
import weights
import yaml
from conftest import PATIENCE, ROOT, until
from deployment import Settings
from ray import serve
from ray.serve.schema import ServeDeploySchema

README = (ROOT / "examples/ray/README.md").read_text()
BLOCKS = dict(re.findall(r"```sh (\w+)\n(.*?)```", README, re.DOTALL))
PYTHON = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]


@pytest.fixture
def shell(cluster, tmp_path):
    """Starts a block in a folder that has the repository's examples and nothing else."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    started = []

    def start(text):
        process = subprocess.Popen(["bash", "-ec", text.replace("127.0.0.1:8000", f"127.0.0.1:{cluster.port}")], cwd=tmp_path,
                                   env={**os.environ, "RAY_ADDRESS": cluster.address, "PWD": str(tmp_path)},
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # Ctrl-C would end all of Serve
            process.communicate(timeout=PATIENCE)
    serve.delete("default")
    ray.kill(weights.keeper_of(tmp_path / "digits.json"))


def output(process, status=0):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, err
    return out, err


def test_the_blocks(shell):
    server = shell(BLOCKS["ray_run"])

    def runs():
        assert server.poll() is None, server.stderr.read()
        application = serve.status().applications.get("default")
        return application and application.status == "RUNNING"

    until(runs, "serve run has the application")
    out, _ = output(shell(BLOCKS["ray_ask"]))
    assert '"name":"ARGS[0]"' in out and "'class': array([" in out

    images = np.ones((2, 8, 8), np.float32)
    namespace = {"serve": serve, "images": images}
    exec("async def block():\n" + textwrap.indent(PYTHON, "    ") + "    return result, info\n", namespace)
    result, info = asyncio.run(namespace["block"]())
    assert result["class"].shape == (2,) and info["generation"] == 1

    out, _ = output(shell(BLOCKS["ray_weights"]))
    pushed, status, back = map(json.loads, out.splitlines())
    assert pushed["number"] == 2 and pushed["label"] == "v2" and back["number"] == 3 and back["source"] == ""
    assert status["digest"] == pushed["digest"] and set(status["replicas"].values()) == {2}
    _, err = output(shell("python examples/ray/weights.py push missing.safetensors --journal digits.json"), status=1)
    assert "weights.py: " in err and "missing.safetensors" in err


def test_the_config_file():
    document = yaml.safe_load((ROOT / "examples/ray/digits.yaml").read_text())
    application = ServeDeploySchema.parse_obj(document).applications[0]
    assert application.deployments[0].name == "Sconce"
    assert Settings.model_validate(application.args).journal == "/shared/digits.json"
