"""What stores and networks answer while something is wrong with them, with names, with credentials or with clocks:
`sconce pull` and `sconce serve` put right what they can, and say the rest in the store's own words."""
import datetime
import email.utils
import signal
import threading

import pytest
from remote_servers import Bucket, Hub, Remote
from remote_serving import DIGITS, WATCH, digest, names, pull, pulled, refused, serving
from serving import FAKE_MODELS, fake_expected, numbers, until

PACKAGE = b"package"
PLAIN, FOLDED = FAKE_MODELS / "fake_model.so", FAKE_MODELS / "fake_folded.so"


def error(code, message="told by the store", more=""):
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>".encode()


def address(scheme, port, host="store.test"):
    """Of a package, and the environment in which it is at that host and port."""
    keys = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s", "GS_ACCESS_KEY_ID": "A", "GS_SECRET_ACCESS_KEY": "s"}
    endpoints = {"s3": "AWS_ENDPOINT_URL", "gs": "GS_ENDPOINT_URL", "hf": "HF_ENDPOINT"}
    url = {"s3": "s3://models/x.pt2", "gs": "gs://models/x.pt2", "hf": "hf://org/repo/x.pt2"}[scheme]
    return url, {**keys, endpoints[scheme]: f"http://{host}:{port}"}


@pytest.mark.parametrize("scheme", ["s3", "gs", "hf"])
def test_a_name_that_is_not_found_is_named(tmp_path, scheme):
    url, more = address(scheme, 9000, "nosuchhost.invalid")
    assert "cannot find nosuchhost.invalid" in refused(tmp_path, url, more=more)


def test_the_name_of_a_proxy_that_is_not_found_is_named(tmp_path):
    more = {"http_proxy": "http://nosuchhost.invalid:1", "NO_PROXY": ""}
    assert "cannot find the proxy nosuchhost.invalid" in refused(tmp_path, "http://127.0.0.1:1/x.pt2", more=more)


@pytest.mark.parametrize("failures", [1, 3])
@pytest.mark.parametrize("scheme", ["s3", "hf"])
def test_a_name_that_comes_later_is_asked_again(tmp_path, scheme, failures):
    """Three look-ups that fail are 1.4 seconds."""
    with Remote() as remote:
        remote.fault = lambda request: request.reply(200, PACKAGE)
        url, more = address(scheme, remote.port)
        more |= {"LD_PRELOAD": str(FAKE_MODELS.parent / "server/fake_names.so"), "FAKE_NAME": "store.test",
                 "FAKE_ADDRESSES": "127.0.0.1", "FAKE_FAILURES": str(failures)}
        assert list(pulled(tmp_path, url, more=more).values()) == [digest(PACKAGE)]


@pytest.mark.parametrize("status, fields, body", [
    (301, {"x-amz-bucket-region": "eu-west-1"}, error("PermanentRedirect")),
    (400, {}, error("AuthorizationHeaderMalformed", more="<Region>eu-west-1</Region>")),
    (307, {"x-amz-bucket-region": "eu-west-1"}, b"")])
def test_a_bucket_of_another_region_is_asked_there(tmp_path, status, fields, body):
    """Each later request goes there at once."""
    with Bucket({"/models/r/x.pt2": PACKAGE, "/models/r/y.pt2": PACKAGE}, region="eu-west-1") as bucket:
        bucket.fault = lambda request: not bucket.signature_of(request) and request.reply(status, body, fields)
        more = bucket.environment() | {"AWS_REGION": "us-east-1"}
        assert len(pulled(tmp_path, "s3://models/r", "--to", tmp_path / "to", more=more)) == 2
        assert len(bucket.seen) == 4  # one of them in vain: a list and two files
        assert "/us-east-1/" in bucket.seen[0][1]["Authorization"]


def test_a_region_that_does_not_help_is_an_error_with_its_name(tmp_path):
    with Bucket({}) as bucket:
        bucket.fault = lambda request: request.reply(301, error("PermanentRedirect"), {"x-amz-bucket-region": "eu-west-1"})
        said = refused(tmp_path, "s3://models/x.pt2", more=bucket.environment())
        assert "PermanentRedirect: told by the store" in said and "set AWS_REGION to the bucket's region, eu-west-1" in said
        assert len(bucket.seen) == 2


def test_a_region_that_is_none_is_not_taken(tmp_path):
    with Bucket({}) as bucket:
        bucket.fault = lambda request: request.reply(301, b"", {"x-amz-bucket-region": "evil.example/"})
        assert "status 301" in refused(tmp_path, "s3://models/x.pt2", more=bucket.environment())
        assert len(bucket.seen) == 1


def test_a_wrong_clock_is_corrected_by_the_store_s(tmp_path):
    """The store is two hours ahead."""
    there = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=2)

    def fault(request):
        signed = datetime.datetime.strptime(request.headers["x-amz-date"] + "+0000", "%Y%m%dT%H%M%SZ%z")
        if abs(signed - there) < datetime.timedelta(minutes=15):
            return False
        body = error("RequestTimeTooSkewed")
        request.wfile.write((f"HTTP/1.1 403 Forbidden\r\nDate: {email.utils.format_datetime(there, usegmt=True)}\r\n"
                             f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
        return True

    with Bucket({"/models/x.pt2": PACKAGE}) as bucket:
        bucket.fault = fault
        done = pull(tmp_path, "s3://models/x.pt2", more=bucket.environment())
        assert done.returncode == 0, done.err
        assert len(bucket.seen) == 2
        # A store whose time changes nothing has the last word.
        there += datetime.timedelta(days=3000)
        bucket.fault = lambda request: request.reply(403, error("RequestTimeTooSkewed"))
        said = refused(tmp_path, "s3://models/y.pt2", more=bucket.environment())
        assert "RequestTimeTooSkewed" in said and "set the clock of this machine" in said


@pytest.mark.parametrize("status, code, remedy", [
    (400, "ExpiredToken", "get new credentials"),
    (403, "SignatureDoesNotMatch", "secret key"),
    (403, "InvalidAccessKeyId", "do credentials and endpoint belong together"),
    (403, "AccessDenied", "s3:GetObject"),
    (404, "NoSuchBucket", "create the bucket"),
    (400, "Odd&lt;Code&gt;", "status 400, Odd<Code>")])
def test_the_store_s_own_code_is_told_with_what_to_do(tmp_path, status, code, remedy):
    with Bucket({}) as bucket:
        bucket.fault = lambda request: request.reply(status, error(code))
        for arguments in (["s3://models/x.pt2"], ["s3://models/r", "--to", tmp_path / "to"]):
            said = refused(tmp_path, *arguments, more=bucket.environment())
            assert code.replace("&lt;", "<").replace("&gt;", ">") in said and "told by the store" in said and remedy in said
            assert arguments[0] in said
            if status == 403:
                assert "the environment (AWS_ACCESS_KEY_ID)" in said


def test_what_a_store_says_in_many_words_is_told(tmp_path):
    page = error("AccessDenied") + b" " * (3 << 20)
    with Bucket({"/models/x.pt2": PACKAGE}) as bucket:
        bucket.fault = lambda request: request.reply(403, page)
        said = refused(tmp_path, "s3://models/x.pt2", more=bucket.environment())
        assert "status 403, AccessDenied" in said
        # A failure of the moment is tried again, however long its page is.
        replies = iter([lambda request: request.reply(503, page)])
        bucket.fault = lambda request: next(replies, lambda request: None)(request)
        assert list(pulled(tmp_path, "s3://models/x.pt2", more=bucket.environment()).values()) == [digest(PACKAGE)]


def test_the_hub_s_own_code_is_told(tmp_path):
    with Remote() as storage, Hub({}, storage) as hub:
        hub.fault = lambda request: request.reply(403, b"no", {"X-Error-Code": "GatedRepo", "X-Error-Message": "It is gated."})
        said = refused(tmp_path, "hf://org/repo/x.pt2", more=hub.environment())
        assert "GatedRepo: It is gated." in said and "accept its terms" in said


def test_what_a_store_says_is_short_and_has_no_control_characters(tmp_path):
    with Bucket({}) as bucket:
        bucket.fault = lambda request: request.reply(500 - 100, error("Bad\x1b[31m", "m" * 100_000))
        said = refused(tmp_path, "s3://models/x.pt2", more=bucket.environment())
        assert len(said) < 1000 and "\x1b" not in said


@pytest.mark.parametrize("revision", ["refs/pr/1", "refs%2Fpr%2F1", "feature%2Fx"])
def test_a_revision_of_a_hub_with_a_slash(tmp_path, revision):
    with Remote() as storage, Hub({"x.pt2": PACKAGE}, storage) as hub:
        hub.revisions = {"refs/pr/1", "feature/x"}
        more = hub.environment()
        assert list(pulled(tmp_path, f"hf://org/repo@{revision}/x.pt2", more=more).values()) == [digest(PACKAGE)]
        assert len(pulled(tmp_path, f"hf://org/repo@{revision}", "--to", tmp_path / "to", more=more)) == 1


# What a store gives is what readiness, the index and answers say.

KEEP = ["--exit-on-error", "false"]
AGAIN = [*KEEP, "--remote-watch", "100ms"]  # without `watch`: until something is known


def infer(server, model):
    answer = server.post(f"/v2/models/{model}/infer", b"{}")
    return answer.status, answer.json["error"]


@pytest.mark.parametrize("watch", [["--watch", "50ms"], []])
def test_a_package_that_cannot_be_fetched_is_a_model_that_is_not_ready(tmp_path, watch):
    with Bucket({}) as bucket:
        bucket.fault = lambda request: request.reply(403, error("AccessDenied"))
        with serving(tmp_path, "m=s3://models/m.pt2", DIGITS, more=bucket.environment(), wait=False,
                     flags=[*AGAIN, *watch]) as server:
            until(lambda: server.index()["digits"][0] == "READY")
            until(lambda: server.index()["m"][0] == "UNAVAILABLE")
            assert "AccessDenied" in server.index()["m"][1]
            status, reason = infer(server, "m")
            assert status == 503 and "AccessDenied" in reason
            assert server.get("/v2/health/ready").status == 503
            bucket.files["/models/m.pt2"] = DIGITS.read_bytes()
            bucket.fault = lambda request: None
            until(lambda: server.get("/v2/health/ready").status == 200)
            assert names(server) == {"m": "READY", "digits": "READY"}


@pytest.mark.parametrize("watch", [["--watch", "50ms"], []])
def test_a_repository_that_cannot_be_listed_is_not_ready_and_comes_with_its_store(tmp_path, watch):
    with Bucket({"/models/r/a.pt2": DIGITS.read_bytes()}) as bucket:
        bucket.fault = lambda request: request.reply(403, error("SignatureDoesNotMatch"))
        with serving(tmp_path, "s3://models/r", more=bucket.environment(), wait=False, flags=[*AGAIN, *watch]) as server:
            assert server.get("/v2/health/ready").status == 503
            (state, reason), = server.index().values()
            assert state == "UNAVAILABLE" and "SignatureDoesNotMatch" in reason and "s3://models/r" in server.index()
            status, reason = infer(server, "a")
            assert status == 503 and "SignatureDoesNotMatch" in reason
            bucket.fault = lambda request: None
            until(lambda: server.get("/v2/health/ready").status == 200)
            until(lambda: server.index().keys() == {"a"})
            assert infer(server, "b")[0] == 404


def test_one_object_that_cannot_be_fetched_concerns_one_model(tmp_path):
    package = DIGITS.read_bytes()
    with Bucket({"/models/r/a.pt2": package, "/models/r/b/1/model.pt2": package}) as bucket:
        bucket.fault = lambda request: request.path == "/models/r/b/1/model.pt2" and request.reply(403, error("AccessDenied"))
        with serving(tmp_path, "s3://models/r", more=bucket.environment(), wait=False, flags=[*WATCH, *KEEP]) as server:
            until(lambda: names(server) == {"a": "READY"})
            assert server.index()["b"][0] == "UNAVAILABLE" and "AccessDenied" in server.index()["b"][1]
            assert server.get("/v2/health/ready").status == 503 and infer(server, "b")[0] == 503
            bucket.fault = lambda request: None
            until(lambda: server.get("/v2/health/ready").status == 200)
            # Later looks: what is served goes on, and others come.
            bucket.fault = lambda request: request.path == "/models/r/b/1/model.pt2" and request.reply(403)
            bucket.files["/models/r/b/1/model.pt2"] = package + b" "
            bucket.files["/models/r/c.pt2"] = package
            until(lambda: names(server) == {"a": "READY", "b": "READY", "c": "READY"})


def test_a_key_that_xml_cannot_hold_concerns_no_other(tmp_path):
    package = DIGITS.read_bytes()
    with Bucket({"/models/r/a.pt2": package, "/models/r/b\x01.pt2": package, "/models/r/c+d e.pt2": package}) as bucket:
        bucket.page = 1000
        with serving(tmp_path, "s3://models/r", more=bucket.environment()) as server:
            assert names(server) == {"a": "READY"}


# `load` asks the store.

def put(bucket, path, package):
    bucket.files[path] = package.read_bytes()


def result(server, model):
    answer = server.post(f"/v2/models/{model}/infer", numbers([1.0, 2.0, 3.0, 4.0]))
    return answer.json["outputs"][0]["data"] if answer.status == 200 else answer.status


ROW = [1.0, 2.0, 3.0, 4.0]
ANSWER = {PLAIN: fake_expected(ROW), FOLDED: [2 * x * (1 + i) + 10 * i for i, x in enumerate(ROW)]}


def load(server, model):
    answer = server.post(f"/v2/repository/models/{model}/load", b"", port=server.admin_port)
    return answer.status if answer.status == 200 else (answer.status, answer.json["error"])


@pytest.mark.parametrize("flags", [[], ["--load", "demand"], ["--watch", "1s"]])
def test_load_asks_the_store(tmp_path, flags):
    with Bucket({}) as bucket:
        put(bucket, "/models/r/m/1/model.pt2", PLAIN)
        put(bucket, "/models/r/more.pt2", PLAIN)
        with serving(tmp_path, "s3://models/r", more=bucket.environment(), flags=flags) as server:
            assert result(server, "m") == ANSWER[PLAIN]
            put(bucket, "/models/r/m/1/model.pt2", FOLDED)
            assert load(server, "m") == 200
            assert result(server, "m") == ANSWER[FOLDED]
            put(bucket, "/models/r/m/2/model.pt2", PLAIN)
            put(bucket, "/models/r/new/1/model.pt2", PLAIN)
            assert load(server, "m") == 200
            assert server.get("/v2/models/m").json["versions"] == ["2"] and result(server, "m") == ANSWER[PLAIN]
            assert load(server, "new") == 200 and result(server, "new") == ANSWER[PLAIN]
            # It is not there, or not any more: what is served stays.
            status, reason = load(server, "none")
            assert status == 404
            del bucket.files["/models/r/new/1/model.pt2"]
            assert load(server, "new")[0] == 404
            assert result(server, "new") == ANSWER[PLAIN]
            # Nor does it go where the store cannot be asked.
            bucket.fault = lambda request: request.reply(403, error("ExpiredToken"))
            status, reason = load(server, "m")
            assert status == 403 and "ExpiredToken" in reason
            assert result(server, "m") == ANSWER[PLAIN]


@pytest.mark.parametrize("flags", [[], ["--load", "demand"]])
def test_load_asks_for_a_single_package(tmp_path, flags):
    with Bucket({}) as bucket:
        put(bucket, "/models/x.pt2", PLAIN)
        with serving(tmp_path, "m=s3://models/x.pt2", more=bucket.environment(), flags=flags) as server:
            assert result(server, "m") == ANSWER[PLAIN]
            put(bucket, "/models/x.pt2", FOLDED)
            assert load(server, "m") == 200
            assert result(server, "m") == ANSWER[FOLDED]
            asked = len(bucket.seen)
            assert load(server, "other")[0] == 404
            assert len(bucket.seen) == asked


def test_a_hangup_asks_the_store(tmp_path):
    with Bucket({}) as bucket:
        put(bucket, "/models/m.pt2", PLAIN)
        with serving(tmp_path, "s3://models", more=bucket.environment(), flags=["--watch", "50ms", "--remote-watch", "60m"]) as server:
            put(bucket, "/models/m.pt2", FOLDED)
            server.process.send_signal(signal.SIGHUP)
            until(lambda: result(server, "m") == ANSWER[FOLDED])


# Only what is served is fetched.

def fetched(bucket):
    return {path for path, _ in bucket.seen if path.endswith(".pt2")}


def test_versions_that_are_not_served_are_not_fetched(tmp_path):
    with Bucket({}) as bucket:
        for version in range(1, 6):
            put(bucket, f"/models/r/m/{version}/model.pt2", PLAIN)
            put(bucket, f"/models/r/two/{version}/model.pt2", PLAIN)
            bucket.files[f"/models/r/m/{version}/model.pt2.sig"] = b"x"
        bucket.files["/models/r/two/config.pbtxt"] = b'version_policy { specific { versions: [2, 4] } }'
        with serving(tmp_path, "s3://models/r", more=bucket.environment(), flags=WATCH) as server:
            assert fetched(bucket) == {"/models/r/m/5/model.pt2", "/models/r/two/2/model.pt2", "/models/r/two/4/model.pt2"}
            assert not any(path.endswith("4/model.pt2.sig") for path, _ in bucket.seen)
            put(bucket, "/models/r/m/6/model.pt2", FOLDED)
            until(lambda: server.get("/v2/models/m").json["versions"] == ["6"])
            assert not list((tmp_path / "cache/mirrors").glob("*/m/5/*"))


def test_on_demand_nothing_is_fetched_but_what_is_asked_for(tmp_path):
    with Bucket({}) as bucket:
        for name in "abcd":
            put(bucket, f"/models/r/{name}/1/model.pt2", PLAIN)
            put(bucket, f"/models/r/{name}/2/model.pt2", FOLDED)
            bucket.files[f"/models/r/{name}/config.pbtxt"] = b'version_policy { specific { versions: [1] } }'
        with serving(tmp_path, "s3://models/r", more=bucket.environment(), flags=["--load", "demand"]) as server:
            until(lambda: set(server.index()) == set("abcd"))
            assert not [path for path, _ in bucket.seen if "list-type" not in path]
            assert result(server, "b") == ANSWER[PLAIN]
            assert fetched(bucket) == {"/models/r/b/1/model.pt2"}
            assert server.get("/v2/models/b").json["versions"] == ["1"]
            # A store that does not answer in time is an error of this model, once.
            bucket.fault = lambda request: "/c/" in request.path and request.reply(403, error("AccessDenied"))
            status, reason = infer(server, "c")
            assert status == 403 and "AccessDenied" in reason
            assert result(server, "b") == ANSWER[PLAIN]


def test_on_demand_a_package_goes_with_its_model(tmp_path):
    """Three packages, a cache with room for two, and memory for one model."""
    package = PLAIN.read_bytes()
    mirror, objects = (lambda: {path.stem for path in (tmp_path / "cache/mirrors").glob("*/*.pt2")}), tmp_path / "cache/objects"
    flags = ["--load", "demand", "--memory-budget", "3M", "--remote-cache-size", str(len(package) * 5 // 2)]
    with Bucket({f"/models/r/{name}.pt2": package + name.encode() for name in "abc"}) as bucket:
        with serving(tmp_path, "s3://models/r", more=bucket.environment(), flags=flags) as server:
            for name in "abcab":
                assert server.get(f"/v2/models/{name}").status == 200
                until(lambda name=name: mirror() == {name})
                assert len(list(objects.iterdir())) <= 2
            # What the cache still has needs no store.
            bucket.fault = lambda request: request.reply(503)
            assert server.get("/v2/models/a").status == 200
            assert server.post("/v2/repository/models/a/unload", b"", port=server.admin_port).status == 200
            until(lambda: not mirror())
        with serving(tmp_path, "s3://models/r", more=bucket.environment(), flags=[*flags, *KEEP]) as server:
            assert set(server.index()) == {"a", "b"}
            assert server.get("/v2/models/b").status == 200


def test_on_demand_a_single_package_goes_with_its_model(tmp_path):
    with Bucket({"/models/m.pt2": DIGITS.read_bytes()}) as bucket:
        flags = ["--load", "demand", "--watch", "50ms", "--remote-watch", "50ms"]
        with serving(tmp_path, "m=s3://models/m.pt2", more=bucket.environment(), flags=flags) as server:
            mirror = lambda: list((tmp_path / "cache/mirrors").glob("*/*.pt2"))
            assert server.get("/v2/models/m").status == 200 and len(mirror()) == 1
            assert server.post("/v2/repository/models/m/unload", b"", port=server.admin_port).status == 200
            until(lambda: not mirror())
            bucket.fault = lambda request: request.reply(403)
            assert server.post("/v2/repository/models/m/load", b"", port=server.admin_port).status == 403
            bucket.fault = lambda request: None
            assert server.post("/v2/repository/models/m/load", b"", port=server.admin_port).status == 200


def test_on_demand_what_left_the_store_while_the_server_was_away_is_not_known(tmp_path):
    with Bucket({f"/models/r/{name}.pt2": PLAIN.read_bytes() + name.encode() for name in "ab"}) as bucket:
        with serving(tmp_path, "s3://models/r", more=bucket.environment(), flags=["--load", "demand"]) as server:
            assert server.get("/v2/models/a").status == 200
        del bucket.files["/models/r/a.pt2"]
        with serving(tmp_path, "s3://models/r", more=bucket.environment(), flags=["--load", "demand"]) as server:
            assert set(server.index()) == {"b"} and server.get("/v2/models/a").status == 404


def test_on_demand_a_request_does_not_wait_for_the_list_of_a_large_bucket(tmp_path):
    """The second page of the whole list does not come until the test lets it."""
    whole, wait = threading.Event(), lambda request: "continuation-token" in request.path and "prefix=r%2F&" in request.path + "&"
    with Bucket({}) as bucket:
        for name in ("a", "b", "c", "z"):
            put(bucket, f"/models/r/{name}.pt2", PLAIN)
        bucket.fault = lambda request: wait(request) and (whole.wait(60) and False)
        with serving(tmp_path, "s3://models/r", more=bucket.environment(), flags=["--load", "demand"]) as server:
            assert server.get("/v2/health/ready").status == 200
            assert result(server, "z") == ANSWER[PLAIN]
            assert infer(server, "none")[0] == 404
            assert fetched(bucket) == {"/models/r/z.pt2"}
            whole.set()
            until(lambda: set(server.index()) == {"a", "b", "c", "z"})
            asked = len(bucket.seen)
            assert infer(server, "another")[0] == 404
            assert len(bucket.seen) == asked


def test_on_demand_a_request_waits_no_longer_than_it_may(tmp_path):
    leave = threading.Event()
    with Bucket({}) as bucket:
        put(bucket, "/models/r/a.pt2", PLAIN)
        bucket.fault = lambda request: request.path.endswith("a.pt2") and (leave.wait(60) and False)
        with serving(tmp_path, "s3://models/r", more=bucket.environment(),
                     flags=["--load", "demand", "--set", "a.request_timeout=300ms"]) as server:
            assert infer(server, "a")[0] == 504
            leave.set()
            until(lambda: result(server, "a") == ANSWER[PLAIN])
