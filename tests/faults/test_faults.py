"""The campaign in short: a few hundred places of each kind, in a minute. ./dev faults is the long one."""
import io
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from serving import FAKE_MODELS, PROGRAM, SANITIZED

INTERPOSER = PROGRAM.parent.parent / "tests/faults/fault_interposer.so"
pytestmark = pytest.mark.skipif(
    SANITIZED or not (INTERPOSER.exists() and (FAKE_MODELS / "fake_model.so").exists()),
    reason="needs a build without sanitizers, which bring their own allocator: ./dev build")

SECONDS = {"allocations": 6, "calls": 5, "peers": 4, "crashes": 4, "limits": 3, "disks": 2, "clocks": 2, "files": 2,
           "cuda": 3}


@pytest.mark.parametrize("kind", SECONDS)
def test_nothing_is_lost(kind):
    import run
    from campaign import Campaign
    module = {m.__name__: m for m, _ in run.KINDS}[kind]
    said = io.StringIO()
    campaign = Campaign(seed=7, stop_at=5, out=said)
    run.run_some(campaign, [(module, 1)], SECONDS[kind])
    print(said.getvalue())
    assert campaign.lost == 0, said.getvalue()
    assert all(row.injected > 0 or row.skipped for row in campaign.rows), said.getvalue()


def test_ends_that_are_not_promised():
    from campaign import is_not_promised
    init = "ld-linux-x86-64.so.2: call_init at .dl-init.c:74"
    assert is_not_promised(["libgomp.so.1: GOMP_parallel at ??:0", "libdnnl.so.2.6: ?? ??:0"])
    assert is_not_promised(["libgcc_s.so.1: _Unwind_Resume at ??:?", "libdnnl.so.2.6: ?? ??:0", init])
    assert is_not_promised(["libc.so.6: __GI___sigaction at :?", "libdnnl.so.2.6: dnnl_memory_destroy at ??:?",
                            "libdnnl.so.2.6: dnnl_memory_create at ??:?", "libsconce.so.0: sconce::convolve() at convolution.cpp:60"])
    assert not is_not_promised(["libdnnl.so.2.6: ?? ??:0", "libsconce.so.0: sconce::convolve() at convolution.cpp:60"])
    assert not is_not_promised(["libc.so.6: abort at ??:?", "libgomp.so.1: GOMP_parallel at ??:0"])
    assert not is_not_promised(["libzip.so.4: ?? ??:0", init]) and not is_not_promised([])


def test_the_soak_is_flat():
    import soak
    said = []
    assert soak.run(4, said.append), "\n".join(said)


def test_an_update_beyond_the_control_groups_memory_is_507():
    import limits
    from subject import STREAM, Subject
    from weights_files import repeated, safetensors
    with Subject(models=[f"fat={FAKE_MODELS / 'fake_update.so'}"]) as subject:
        def push(value):
            weights = safetensors({"scale.w": repeated(value, 131072), "scale.b": repeated(value, 131072)})
            return subject.post("/v2/admin/models/fat/weights?commit=true", weights, STREAM, subject.admin)

        try:
            group = limits.Group("memory", subject)
        except OSError as reason:
            pytest.skip(f"no control group of version 1 may be made here ({reason})")
        with group:
            assert push(3).status == 200
            assert subject.change("release", "fat").status == 200
            group.write("memory.limit_in_bytes", group.read("memory.usage_in_bytes") + (256 << 10))
            refused = push(4)
            assert refused.status == 507 and "cannot allocate 1048576 bytes" in refused.json["error"], refused
            assert subject.call("digits").body == subject.first
            group.write("memory.limit_in_bytes", 1 << 40)
            assert push(4).status == 200


def test_a_library_that_cannot_be_mapped():
    """The dynamic linker gives up when a close() of a start fails, each in turn: the server serves or ends in order."""
    import errno
    from control import Kind
    from crashes import begin_and_look
    from subject import Subject
    close = 3
    said = []
    with Subject(serve=False) as starting:
        for nth in range(1, 200):
            with starting.control.armed(Kind.CALL, nth=nth, call=close, error=errno.EINTR) as page:
                begin_and_look(starting, stays=True)
                fired = page.fired
            said += starting.server.log if starting.server else []
            if starting.server and starting.lives():
                starting.end()
            if not fired:
                break
    assert not fired and any("SLEEF is needed but cannot be opened" in line for line in said), "".join(said)


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_listener_whose_port_cannot_be_told(nth):
    """getsockname() fails for one of three listeners: the server says so, ends, and names no wrong port."""
    import errno
    from control import Kind
    from subject import Subject
    getsockname = 51
    with Subject(serve=False) as starting:
        with starting.control.armed(Kind.CALL, nth=nth, call=getsockname, error=errno.ENOBUFS):
            with pytest.raises(RuntimeError, match="cannot listen on 127.0.0.1:0: No buffer space available") as ended:
                starting.begin()
    assert "//0.0.0.0" not in str(ended.value)


@pytest.fixture(scope="module")
def subject():
    from operations import everything
    from subject import Subject
    with Subject(warm_up=everything) as running:
        running.settle()
        yield running


class TestPlanted:
    """Breaks each invariant on purpose: the campaign must notice."""

    def lost(self, subject, act):
        """What the campaign reports for this one fault."""
        from campaign import Campaign, survive
        said = io.StringIO()
        campaign = Campaign(every=1, out=said)
        survive(campaign, campaign.row("planted"), subject, "here", act)
        return campaign.lost, said.getvalue()

    def test_nothing_planted_nothing_lost(self, subject):
        assert self.lost(subject, lambda: None)[0] == 0

    def test_a_process_that_dies(self, subject):
        count, text = self.lost(subject, lambda: (subject.server.process.kill(), subject.server.process.wait()))
        assert count == 1 and "the process ended with -9" in text

    def test_a_neighbour_with_another_answer(self, subject):
        count, text = self.lost(subject, lambda: subject.update("digits"))
        assert count == 1 and "a neighbour's answer changed" in text

    def test_a_service_that_stalls(self, subject):
        import signal
        try:
            count, text = self.lost(subject, lambda: subject.server.process.send_signal(signal.SIGSTOP))
        finally:
            subject.server.process.send_signal(signal.SIGCONT)
        assert count == 1 and "not whole again within a second" in text

    def test_descriptors_left_behind(self, subject):
        from client import Connection
        held = []
        count, text = self.lost(subject, lambda: held.extend(Connection(subject.public) for _ in range(4)))
        for connection in held:
            connection.close()
        assert count == 1 and "left behind" in text

    @pytest.mark.parametrize("what", ["fds", "threads", "libraries", "packages"])
    def test_one_more_than_before(self, subject, what):
        from subject import SLACK

        def forget():
            subject.baseline[what] -= 1 + SLACK.get(what, 0)

        subject.settle()
        count, text = self.lost(subject, forget)
        assert count == 1 and "left behind" in text

    def test_answers_that_are_wrong_or_missing(self, subject):
        from client import Outcome
        from operations import LOADS, REQUESTS, UPDATES
        from subject import Lost
        call, update, load = REQUESTS[0], UPDATES[0], LOADS[0]
        head = b"HTTP/1.1 200 OK"
        subject.reload()
        for operation, outcome, words in (
                (call, Outcome(stalled=True), "neither answered nor closed"),
                (call, Outcome(200, head, subject.second), "a wrong answer"),
                (call, Outcome(400, head, b'{"error": "bad"}'), "blamed on the client"),
                (call, Outcome(503, head, b'{"error": ""}'), "without a reason"),
                (call, Outcome(503, head, b"busy"), "no error document"),
                (update, Outcome(200, head, b"{}"), "other weights than it may"),  # it serves the old ones
                (load, Outcome(507, head, b'{"error": "no memory"}'), "not loaded, but it answers")):
            with pytest.raises(Lost, match=words):
                operation.check(subject, outcome)

    def test_faults_reach_the_process(self, subject):
        from control import FOR_EVER, Kind
        with subject.control.armed(Kind.ALLOCATION, nth=5, times=FOR_EVER) as page:
            assert subject.call("digits").status in (0, 507)
        assert page.fired
        with subject.control.armed(Kind.CALL, call=44, error=32) as page:  # sendto: EPIPE
            assert subject.call("digits").status == 0
        assert page.fired == 1
        assert subject.call("digits").status == 200
