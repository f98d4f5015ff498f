"""Fails each call of the CUDA driver: libsconce_cuda's host code over made-up devices, in a test program that
counts for itself (tests/cuda/runtime/driver_faults_test.cpp)."""
import os
import re
import subprocess

from serving import PROGRAM

TESTS = PROGRAM.parent.parent / "tests/test_cuda_plans"
NAME = "CUDA driver, each call"


def run(campaign, seconds):
    if not TESTS.exists():
        return campaign.skip(NAME, "CUDA is not built")
    environment = os.environ | {"SCONCE_FAULTS_SEED": str(campaign.random.randrange(1 << 31)),
                                "SCONCE_FAULTS_SECONDS": f"{seconds:g}"}
    ended = subprocess.run([TESTS, "--test-case=driver faults: each call*"], env=environment, capture_output=True,
                           text=True, errors="replace", check=False)
    row = campaign.row(NAME)
    counts = re.search(rf"^\| {NAME} \| (\d+) \| (\d+) \| (\d+) \| \d+ \|$", ended.stdout, re.MULTILINE)
    if counts:
        row.places, row.injected, row.survived = (int(count) for count in counts.groups())
    for lost in re.findall(r"^LOST CUDA driver: (.*)$", ended.stdout + ended.stderr, re.MULTILINE):
        campaign.lose(row, "", lost)
    if not counts or (ended.returncode != 0 and not row.lost):
        campaign.lose(row, "the test program", f"status {ended.returncode}", log=ended.stderr.splitlines()[-4:])
