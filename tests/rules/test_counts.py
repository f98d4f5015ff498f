"""tests/counts.py counts passed tests for ./dev test. No failure may get lost in it."""
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest
from clone import PROGRAM
from documents import ROOT

PROGRAMS = PROGRAM.parent.parent / "tests"


def counted(*arguments):
    done = subprocess.run([sys.executable, ROOT / "tests/counts.py", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, *failures = done.stdout.splitlines()
    passed, failed = map(int, first.split())
    assert failed == sum(not failure.startswith("unsteady: ") for failure in failures)
    return passed, failures


def ctest(folder, programs, **reports):
    """ctest's file with these testcases, and each program's output."""
    (folder / "ctest.xml").write_text(f"<testsuite>{programs}</testsuite>")
    for name, cases in reports.items():
        (folder / f"{name}.xml").write_text(f"<testsuite>{cases}</testsuite>")
    return counted("ctest", folder / "ctest.xml", folder)


PASSED = '<testcase name="good" status="run"/>'
FAILED = '<testcase name="bad" status="fail"><failure message=""/></testcase>'


def test_cases_are_counted_one_by_one(tmp_path):
    assert ctest(tmp_path, PASSED, good='<testcase name="a"/><testcase name="b"/>') == (2, [])
    bad = '<testcase name="a"/><testcase name="b"><failure message="see the log"/></testcase><testcase name="c"/>'
    assert ctest(tmp_path, PASSED + FAILED, bad=bad) == (4, ["bad: b"])


def test_a_program_without_a_report_is_one_case(tmp_path):
    assert ctest(tmp_path, PASSED) == (1, [])
    assert ctest(tmp_path, FAILED) == (0, ["bad"])


def test_a_program_that_fails_though_its_cases_pass(tmp_path):
    assert ctest(tmp_path, FAILED, bad='<testcase name="a"/>') == (1, ["bad: it failed, none of its cases did"])


def test_a_crash_or_a_time_out_is_the_case_that_did_not_end(tmp_path):
    assert ctest(tmp_path, FAILED, bad='<testcase name="a"/><testcase name="b"><error message="it did not end"/></testcase>') == (
        1, ["bad: b"])
    (tmp_path / "bad.xml").write_text("<testsuite><testcase")
    assert counted("ctest", tmp_path / "ctest.xml", tmp_path) == (0, ["bad: it told of no case"])


def test_a_program_that_runs_nothing_fails(tmp_path):
    assert ctest(tmp_path, PASSED, good="") == (0, ["good: it told of no case"])


def test_what_is_skipped_is_none_and_what_is_missing_fails(tmp_path):
    assert ctest(tmp_path, PASSED + """
        <testcase name="skipped" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
        <testcase name="disabled" status="disabled"/>
        <testcase name="gone" status="notrun"><skipped message="Unable to find executable"/></testcase>""") == (1, ["gone"])


@pytest.mark.parametrize("text", [None, "", "<testsuite", "<testsuite/>"])
def test_nothing_run_is_a_failure(tmp_path, text):
    file = tmp_path / "some.xml"
    if text is not None:
        file.write_text(text)
    for arguments in (("ctest", file, tmp_path), ("pytest", file)):
        assert counted(*arguments) == (0, [f"{file}: nothing ran"])


def test_pytests_own_file(tmp_path):
    (tmp_path / "test_it.py").write_text("""import pytest
@pytest.fixture
def broken(): raise OSError
@pytest.fixture
def broken_later():
    yield
    raise OSError
def test_good(): pass
def test_bad(): assert False
def test_setup(broken): pass
def test_end(broken_later): pass
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_known(): assert False
@pytest.mark.parametrize("n", [1, 2])
def test_many(n): pass
""")
    (tmp_path / "test_that_cannot_be_read.py").write_text("import no_such_module\n")
    subprocess.run([sys.executable, "-m", "pytest", "-q", "--junitxml=it.xml", "--continue-on-collection-errors"], cwd=tmp_path,
                   capture_output=True)
    passed, failures = counted("pytest", tmp_path / "it.xml")
    assert passed == 3
    assert sorted(failures) == ["test_bad", "test_end", "test_setup", "test_that_cannot_be_read"]


def test_what_passes_once_more_is_unsteady(tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    bad = '<testcase name="a"/><testcase name="b"><failure message=""/></testcase>'
    for folder, cases in ((first, bad), (again, '<testcase name="a"/><testcase name="b"/>')):
        folder.mkdir()
        ctest(folder, FAILED if folder == first else '<testcase name="bad" status="run"/>', bad=cases)
    both = ("ctest", first / "ctest.xml", first, again / "ctest.xml", again)
    assert counted(*both) == (2, ["unsteady: bad: b"])
    # The whole program must pass: another of its cases may have failed for the same reason.
    (again / "bad.xml").write_text('<testsuite><testcase name="a"><failure message=""/></testcase><testcase name="b"/></testsuite>')
    assert counted(*both) == (1, ["bad: b"])
    (again / "ctest.xml").unlink()
    assert counted(*both) == (1, ["bad: b"])


def test_pytests_second_run(tmp_path):
    case = '<testcase classname="{}" name="test_it"{}'
    failed, passed = "><failure message=''/></testcase>", "/>"
    (tmp_path / "first.xml").write_text("<testsuite>" + case.format("a", failed) + case.format("b", failed) + "</testsuite>")
    (tmp_path / "again.xml").write_text("<testsuite>" + case.format("a", passed) + case.format("b", failed) + "</testsuite>")
    assert counted("pytest", tmp_path / "first.xml", tmp_path / "again.xml") == (1, ["test_it", "unsteady: test_it"])
    assert counted("pytest", tmp_path / "first.xml", tmp_path / "absent.xml") == (0, ["test_it", "test_it"])


def doctest(tmp_path, *arguments, program="test_types", **environment):
    if not (PROGRAMS / program).exists():
        pytest.skip(f"not built: {PROGRAMS / program} (./dev build)")
    report = tmp_path / "types.xml"
    done = subprocess.run([PROGRAMS / program, *arguments], env={**os.environ, "SCONCE_TEST_REPORT": str(report)},
                          capture_output=True, text=True)
    return done, report


def test_doctest_programs_tell_their_cases(tmp_path):
    done, report = doctest(tmp_path)
    cases = xml.parse(report).getroot().findall("testcase")
    assert f"test cases: {len(cases)} | {len(cases)} passed".replace(" ", "") in done.stdout.replace(" ", "")
    assert all(pathlib.Path(case.get("classname")).suffix == ".cpp" and float(case.get("time")) >= 0 for case in cases)
    assert len({case.get("name") for case in cases}) == len(cases) > 10


def test_a_report_that_cannot_be_written_fails(tmp_path):
    done, _ = doctest(tmp_path / "absent")
    assert done.returncode == 2
    assert "No such file" in done.stderr
