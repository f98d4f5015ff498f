"""A model's own code fails: each kind of failure raises, and the model goes on."""
import pathlib
import subprocess
import sys
import tarfile

import numpy as np
import pytest
import sconce

ARCHIVE = pathlib.Path(__file__).resolve().parents[1] / "server/packages/faults.tar.xz"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("faults")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(target)
    return target / "faults"


@pytest.mark.parametrize("name", ["embedding", "normalised"])
def test_a_check_that_fails_in_a_parallel_region_raises(folder, name):
    model = sconce.load(folder / f"{name}.pt2")
    good = np.arange(4 * 256).reshape(4, 256) % 100
    bad = good.copy()
    expected = model(good)
    for place in [(0, 0), (1, 255), (3, 255)] * 20:
        bad[place] = 100
        with pytest.raises(sconce.ModelFailed, match="index out of bounds"):
            model(bad)
        bad[place] = 0
        np.testing.assert_array_equal(model(good), expected)


DIVIDE = """
import sys
import numpy as np
import sconce
if sys.argv[2] == "guarded":
    sconce.guard_package_faults()
model = sconce.load(sys.argv[1])
a = np.arange(-512, 512).reshape(4, 256)
b = np.full_like(a, 3)
for _ in range(100):
    np.testing.assert_array_equal(model(a, b), np.trunc(a / b).astype(np.int64))
    b[2, 7] = 0
    try:
        model(a, b)
        raise SystemExit("divided by zero")
    except sconce.ModelFailed as error:
        assert "integer division by zero" in str(error) and "cpp_fused" in str(error), error
    b[2, 7] = 3
print("went on")
"""


def test_a_division_by_zero_raises_once_the_host_has_asked_for_it(folder, child_env):
    def run(how):
        return subprocess.run([sys.executable, "-c", DIVIDE, folder / "division.pt2", how], env=child_env,
                              capture_output=True, text=True)

    guarded = run("guarded")
    assert (guarded.returncode, guarded.stdout) == (0, "went on\n"), guarded.stderr
    assert run("unguarded").returncode < 0
