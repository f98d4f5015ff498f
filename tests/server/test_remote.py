"""Models from anywhere: `sconce pull` and remote sources of `sconce serve`, against the servers of remote_servers.py, which
fail in every way that servers and networks do."""
import contextlib
import os
import resource
import subprocess
import threading
import time

import pytest
from certificates import authority, stranger  # noqa: F401
from remote_servers import Bucket, Hub, Remote, slowly
from remote_serving import DIGITS, WATCH, digest, environment, names, pull, pulled, refused, serving, start
from serving import PROGRAM, Server, until

SEGMENT = 8 << 20
BIG = os.urandom(1 << 20) * 40  # 5 segments


def objects(tmp_path):
    return sorted(file.name for file in (tmp_path / "cache/objects").iterdir())


@pytest.mark.parametrize("size", [0, 1, 1000, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT])
def test_every_size_is_pulled_whole(tmp_path, size):
    data = BIG[:size]
    with Remote({"/a b.pt2": data}) as remote:
        found = pulled(tmp_path, f"{remote.url}/a%20b.pt2")
    assert found == {str(tmp_path / "cache/objects" / digest(data)): digest(data)}
    assert (tmp_path / "cache/objects" / digest(data)).read_bytes() == data
    assert not list((tmp_path / "cache/partial").iterdir())


def test_ranges_are_fetched_at_the_same_time(tmp_path):
    barrier = threading.Barrier(4)

    def fault(request):
        if not request.headers["Range"].startswith("bytes=0-"):
            barrier.wait(20)

    with Remote({"/x.pt2": BIG}) as remote:
        remote.fault = fault
        pulled(tmp_path, f"{remote.url}/x.pt2", "--connections", 5)
        assert len(remote.seen) == 5


def test_a_signature_comes_along_and_both_are_placed(tmp_path):
    with Remote({"/m/x.pt2": b"package", "/m/x.pt2.sig": b"signature"}) as remote:
        found = pulled(tmp_path, f"{remote.url}/m/x.pt2", "--to", tmp_path / "to")
    assert found == {str(tmp_path / "to/x.pt2"): digest(b"package"), str(tmp_path / "to/x.pt2.sig"): digest(b"signature")}
    assert (tmp_path / "to/x.pt2").read_bytes() == b"package"


def test_what_is_here_is_not_fetched_again(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        first = pulled(tmp_path, f"{remote.url}/x.pt2")
        sent = remote.sent
        assert pulled(tmp_path, f"{remote.url}/x.pt2") == first
        assert remote.sent == sent
        remote.files["/x.pt2"] = b"another"
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2").values()) == [digest(b"another")]


def test_a_server_without_ranges_or_validators_gives_one_stream(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        remote.ranges = False
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2").values()) == [digest(BIG)]
        remote.ranges, remote.validators, remote.files["/x.pt2"] = True, False, BIG + b"1"
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2").values()) == [digest(BIG + b"1")]
        remote.ranges = False
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2").values()) == [digest(BIG + b"1")]


def test_a_killed_pull_goes_on_where_it_ended(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        def fault(request):
            # The last two segments never come.
            return int(request.headers["Range"][6:].partition("-")[0]) >= 3 * SEGMENT and remote.stall(request)
        remote.fault = fault
        process = start(tmp_path, f"{remote.url}/x.pt2")
        journal = lambda: next((tmp_path / "cache/partial").glob("*.journal"), None)
        until(lambda: (tmp_path / "cache/partial").exists() and journal() and len(journal().read_text().splitlines()) == 4)
        process.kill()
        process.communicate()
        remote.fault, remote.sent, remote.seen = (lambda request: None), 0, []
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2").values()) == [digest(BIG)]
        assert remote.sent == len(BIG) - 3 * SEGMENT
        assert sorted(remote.ranges_of("/x.pt2")) == [f"bytes={3 * SEGMENT}-{4 * SEGMENT - 1}",
                                                      f"bytes={4 * SEGMENT}-{len(BIG) - 1}"]


def test_a_pull_killed_again_and_again_ends(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        for milliseconds in range(20, 400, 40):
            process = start(tmp_path, f"{remote.url}/x.pt2")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(milliseconds / 1000)
            process.kill()
            process.communicate()
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2").values()) == [digest(BIG)]
        assert objects(tmp_path) == [digest(BIG)]


def test_a_file_that_changed_between_two_pulls_is_begun_anew(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        remote.fault = lambda request: "bytes=0-" not in request.headers["Range"] and remote.stall(request)
        process = start(tmp_path, f"{remote.url}/x.pt2")
        until(lambda: any("\n0\n" in file.read_text() for file in (tmp_path / "cache").glob("partial/*.journal")))
        process.kill()
        process.communicate()
        remote.fault, remote.files["/x.pt2"] = (lambda request: None), BIG[::-1]
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2").values()) == [digest(BIG[::-1])]


def test_what_a_changed_file_had_left_makes_room_for_it(tmp_path):
    """The cache has room for the file once, and the part of the earlier one has its whole size."""
    with Remote({"/x.pt2": BIG}) as remote:
        remote.fault = lambda request: "bytes=0-" not in request.headers["Range"] and remote.stall(request)
        process = start(tmp_path, f"{remote.url}/x.pt2")
        until(lambda: any("\n0\n" in file.read_text() for file in (tmp_path / "cache").glob("partial/*.journal")))
        process.kill()
        process.communicate()
        remote.fault, remote.files["/x.pt2"] = (lambda request: None), BIG[::-1]
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2", "--cache-size", len(BIG) * 3 // 2).values()) == [digest(BIG[::-1])]


@pytest.mark.parametrize("obeys", [True, False])
def test_a_file_that_changes_midway_is_begun_anew(tmp_path, obeys):
    """obeys: the server knows If-Match."""
    with Remote({"/x.pt2": BIG}) as remote:
        def fault(request):
            if not obeys and request.headers.get("If-Match"):
                request.headers.replace_header("If-Match", remote.etag("/x.pt2"))
            if len(remote.seen) == 3:
                remote.files["/x.pt2"] = BIG[::-1]
        remote.fault = fault
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2", "--connections", 1).values()) == [digest(BIG[::-1])]


def test_a_file_that_changes_all_the_time_is_given_up(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        remote.fault = lambda request: remote.etags.update({"/x.pt2": f'"{len(remote.seen)}"'})
        assert "changes while it is downloaded" in refused(tmp_path, f"{remote.url}/x.pt2")
        assert not objects(tmp_path)


def cut(request, after):
    """The answer announces all of the range, and ends early."""
    remote, begin = request.remote, int(request.headers["Range"][6:].partition("-")[0])
    data = remote.files["/x.pt2"]
    end = min(begin + SEGMENT, len(data))
    request.reply(206, data[begin:begin + after], {"ETag": remote.etag("/x.pt2"),
                                                   "Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"}, length=end - begin)
    request.close_connection = True
    return True


def test_cut_answers_are_continued(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        remote.fault = lambda request: len(remote.seen) <= 3 and request.headers["Range"].endswith(
            ("bytes=0-8388607", "16777215")) and cut(request, 1 << 20)
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2").values()) == [digest(BIG)]
        assert any("bytes=1048576-8388607" in asked for asked in remote.ranges_of("/x.pt2"))


def test_errors_of_the_moment_are_tried_again_and_others_are_not(tmp_path):
    with Remote({"/x.pt2": b"package"}) as remote:
        remote.fault = lambda request: len(remote.seen) <= 2 and request.reply(503)
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2").values()) == [digest(b"package")]
        remote.seen, remote.fault = [], lambda request: None
        assert "status 404" in refused(tmp_path, f"{remote.url}/y.pt2")
        assert len(remote.seen) == 1
        remote.fault = lambda request: request.reply(403)
        assert "credentials" in refused(tmp_path, f"{remote.url}/z.pt2")


def wrong_range(request, begin, end, total):
    return request.reply(206, BIG[begin:end], {"ETag": request.remote.etag("/x.pt2"),
                                               "Content-Range": f"bytes {begin}-{end - 1}/{total}"})


@pytest.mark.parametrize("answer", [
    lambda request: wrong_range(request, 1, SEGMENT, len(BIG)),
    lambda request: wrong_range(request, 0, 10, len(BIG)),
    lambda request: wrong_range(request, 0, SEGMENT + 1, len(BIG)),
    lambda request: request.reply(206, BIG[:10], {"ETag": '"e"', "Content-Range": "bytes 0-9/5"}) and request.remote.seen.clear(),
    lambda request: request.reply(200, b"x", {"Content-Encoding": "gzip"}),
    lambda request: request.reply(200, b"x" * 10, length=5) and False,
])
def test_wrong_answers_are_errors(tmp_path, answer):
    with Remote({"/x.pt2": BIG}) as remote:
        remote.fault = lambda request: answer(request) or True
        done = pull(tmp_path, f"{remote.url}/x.pt2")
        kept = [(tmp_path / "cache/objects" / name).read_bytes() for name in objects(tmp_path)]
    # An answer that is longer than it says is read as far as it says.
    assert done.returncode != 0 or kept in ([b"x" * 5], [BIG[:10]])


def test_later_ranges_that_are_wrong_are_not_taken(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        remote.fault = lambda request: len(remote.seen) == 2 and wrong_range(request, 0, SEGMENT, len(BIG))
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2", "--connections", 1).values()) == [digest(BIG)]


def test_redirects_are_followed_without_what_is_secret(tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login user password secret\n")
    with Remote({"/y.pt2": b"package"}) as other, Remote() as remote:
        remote.fault = lambda request: request.reply(302, b"", {"Location": f"http://localhost:{other.port}/y.pt2"})
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2").values()) == [digest(b"package")]
        assert "Authorization" in remote.seen[0][1]
        assert "Authorization" not in other.seen[0][1]


@pytest.mark.parametrize("target", ["http://example.invalid/x.pt2", "ftp://127.0.0.1/x", "file:///etc/passwd",
                                    "http://127.0.0.1.example.invalid/", "gopher://127.0.0.1/", "//example.invalid/x"])
def test_redirects_to_other_places_are_refused(tmp_path, target):
    with Remote() as remote:
        remote.fault = lambda request: request.reply(302, b"", {"Location": target})
        said = refused(tmp_path, f"{remote.url}/x.pt2")
    assert "not https" in said or "leads nowhere" in said, said


def test_redirects_without_end_are_given_up(tmp_path):
    with Remote() as remote:
        remote.fault = lambda request: request.reply(302, b"", {"Location": f"/x{len(remote.seen)}"})
        assert "more than 5 redirects" in refused(tmp_path, f"{remote.url}/x.pt2")


def test_tls_with_an_authority_of_its_own(tmp_path, authority, stranger):
    with Remote({"/x.pt2": BIG}, tls=authority.issue("remote")) as remote:
        url = f"{remote.url}/x.pt2"
        assert list(pulled(tmp_path, url, "--ca", authority.ca).values()) == [digest(BIG)]
        assert list(pulled(tmp_path, url, more={"CURL_CA_BUNDLE": str(authority.ca)}).values()) == [digest(BIG)]
        assert "certificate" in refused(tmp_path, url, "--ca", stranger.ca)
        assert "certificate" in refused(tmp_path, url)
        # From https there is no way back to http.
        remote.fault = lambda request: request.reply(302, b"", {"Location": "http://127.0.0.1:1/x.pt2"})
        assert "not https" in refused(tmp_path, f"{remote.url}/y.pt2", "--ca", authority.ca)


def test_a_body_without_end_is_cut_off(tmp_path):
    def fault(request):
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        while True:
            request.wfile.write(b"100000\r\n" + bytes(1 << 20) + b"\r\n")
    with Remote() as remote:
        remote.fault = fault
        assert "at most" in refused(tmp_path, f"{remote.url}/x.pt2", "--cache-size", 20 << 20)
        assert sum(file.stat().st_size for file in (tmp_path / "cache").rglob("*")) < 40 << 20


@pytest.mark.parametrize("line, reason", [
    (b"X: " + b"a" * 1000 + b"\r\n", "too long"), (b"HTTP/1.1 100 Continue\r\n\r\n", "too long"),
    (b'ETag: "a\rX-Evil: 1"\r\n', "control character")])
def test_a_head_that_is_hostile_is_refused(tmp_path, line, reason):
    """One without end takes no memory, and nothing of one is sent back in a later request."""
    def fault(request):
        if line.startswith(b"HTTP"):
            request.wfile.write(line * 20_000)
        else:
            request.wfile.write(b"HTTP/1.1 200 OK\r\n" + line * 2000)
        request.wfile.write(b"Content-Length: 1\r\n\r\nx")
        request.close_connection = True
        return True
    with Remote() as remote:
        remote.fault = fault
        said = refused(tmp_path, f"{remote.url}/x.pt2")
    # Later versions of libcurl have limits of their own.
    assert reason in said or "Too many" in said or "Too large" in said, said


def test_a_size_that_nothing_can_have_is_refused_before_room_is_made(tmp_path):
    with Remote({"/small.pt2": b"small", "/x.pt2": BIG}) as remote:
        pulled(tmp_path, f"{remote.url}/small.pt2")
        remote.fault = lambda request: wrong_range(request, 0, SEGMENT, 1 << 62)
        assert "4611686018427387904 bytes" in refused(tmp_path, f"{remote.url}/x.pt2")
        assert objects(tmp_path) == [digest(b"small")] and not list((tmp_path / "cache/partial").iterdir())


def test_a_server_that_says_nothing_is_given_up(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        remote.fault = lambda request: len(remote.seen) == 1 and remote.stall(request)
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2", "--stall", 3).values()) == [digest(BIG)]


def test_a_file_that_is_too_large_is_refused_before_it_comes(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        assert "at most" in refused(tmp_path, f"{remote.url}/x.pt2", "--cache-size", 1 << 20)
        assert not objects(tmp_path)


def test_a_full_disk_is_an_error_with_its_reason(tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    with Remote({"/x.pt2": BIG}) as remote:
        for ranges in (True, False):
            remote.ranges = ranges
            said = refused(tmp_path, f"{remote.url}/x.pt2", preexec_fn=limit)
            assert "File too large" in said and "partial" in said
            assert not objects(tmp_path)
        assert list(pulled(tmp_path, f"{remote.url}/x.pt2").values()) == [digest(BIG)]


def test_two_processes_share_a_cache_and_one_download(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        remote.fault = slowly(0.05)
        processes = [start(tmp_path, f"{remote.url}/x.pt2") for _ in range(4)]
        for process in processes:
            assert process.communicate(timeout=120)[0].startswith(digest(BIG)), process.returncode
        assert remote.sent == len(BIG)


def test_the_cache_keeps_to_its_size(tmp_path):
    files = {f"/{i}.pt2": bytes([i]) * (4 << 20) for i in range(5)}
    with Remote(files) as remote:
        for name in files:
            pulled(tmp_path, remote.url + name, "--cache-size", 10 << 20)
        assert objects(tmp_path) == sorted(digest(files[name]) for name in ("/3.pt2", "/4.pt2"))


def test_a_cache_from_before_the_last_boot_is_compared_with_its_digests(tmp_path):
    with Remote({"/x.pt2": BIG}) as remote:
        (path,) = pulled(tmp_path, f"{remote.url}/x.pt2")
        (known,) = (tmp_path / "cache/known").iterdir()
        boot = open("/proc/sys/kernel/random/boot_id").read().strip()
        known.write_text(known.read_text().replace(boot, "an-earlier-one"))
        pulled(tmp_path, f"{remote.url}/x.pt2")
        assert remote.sent == len(BIG) and "an-earlier-one" not in known.read_text()
        known.write_text(known.read_text().replace('"boot":""', '"boot":"an-earlier-one"'))
        os.chmod(path, 0o644)
        with open(path, "r+b") as file:
            file.write(b"torn")
        pulled(tmp_path, f"{remote.url}/x.pt2")
        assert remote.sent == 2 * len(BIG)
        assert digest(open(path, "rb").read()) == digest(BIG)


@pytest.mark.parametrize("session", [None, "SESSION/TOKEN+="])
def test_signed_requests_to_object_storage(tmp_path, session):
    with Bucket({"/models/a b/x+y.pt2": BIG}) as bucket:
        bucket.session = session
        url = "s3://models/a b/x+y.pt2"
        assert list(pulled(tmp_path, url, more=bucket.environment()).values()) == [digest(BIG)]
        assert "credentials" in refused(tmp_path, "s3://models/other.pt2",
                                        more={**bucket.environment(), "AWS_SECRET_ACCESS_KEY": "another"})
        folder = tmp_path / ".aws"
        folder.mkdir()
        (folder / "credentials").write_text("[default]\naws_access_key_id=AKIDEXAMPLE\n"
                                            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n"
                                            f"aws_session_token = {session or ''}\n")
        bucket.files["/models/other.pt2"] = b"package"
        assert list(pulled(tmp_path, "s3://models/other.pt2", more={
            "AWS_ENDPOINT_URL_S3": bucket.url, "AWS_REGION": bucket.region}).values()) == [digest(b"package")]


def test_the_interface_of_google_s_storage(tmp_path):
    with Bucket({"/models/x.pt2": BIG}, region="auto") as bucket:
        keys = {"GS_ENDPOINT_URL": bucket.url, "GS_ACCESS_KEY_ID": "AKIDEXAMPLE",
                "GS_SECRET_ACCESS_KEY": bucket.environment()["AWS_SECRET_ACCESS_KEY"]}
        assert list(pulled(tmp_path, "gs://models/x.pt2", more=keys).values()) == [digest(BIG)]
        bucket.open = True
        assert list(pulled(tmp_path, "gs://models/x.pt2", more={"GS_ENDPOINT_URL": bucket.url}).values()) == [digest(BIG)]
        assert "Authorization" not in bucket.seen[-1][1]


REPOSITORY = {"/models/pre fix/alone.pt2": b"1", "/models/pre fix/alone.pt2.sig": b"2", "/models/pre fix/m/1/model.pt2": b"3",
              "/models/pre fix/m/config.pbtxt": b"4", "/models/pre fix/m/labels.txt": b"5",
              "/models/pre fix/m/warmup/raw": b"6", "/models/pre fix/README.md": b"7", "/models/pre fixed/no.pt2": b"8"}


def test_a_whole_prefix_is_pulled(tmp_path):
    with Bucket(REPOSITORY) as bucket:
        found = pulled(tmp_path, "s3://models/pre fix", "--to", tmp_path / "to", more=bucket.environment())
        assert {os.path.relpath(path, tmp_path / "to") for path in found} == {
            "alone.pt2", "alone.pt2.sig", "m/1/model.pt2", "m/config.pbtxt", "m/labels.txt", "m/warmup/raw"}
        assert "--to" in refused(tmp_path, "s3://models/pre fix", more=bucket.environment())
        assert "no package" in refused(tmp_path, "s3://models/none", "--to", tmp_path / "to", more=bucket.environment())


@pytest.mark.parametrize("listing", [
    b"<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><ListBucketResult>&a;</ListBucketResult>",
    b"<ListBucketResult>" * 1000, b"\xff\xfe", b"{}", b"x" * (20 << 20)])
def test_hostile_listings_are_refused(tmp_path, listing):
    with Bucket({}) as bucket:
        bucket.fault = lambda request: request.reply(200, listing)
        assert refused(tmp_path, "s3://models/x", "--to", tmp_path / "to", more=bucket.environment())
        assert not objects(tmp_path)


def test_a_hub_s_large_and_small_files(tmp_path):
    with Remote() as storage, Hub({"x.pt2": BIG, "m/1/model.pt2": b"3", "m/config.pbtxt": b"4"}, storage, "hf_secret") as hub:
        more = hub.environment("hf_secret")
        assert list(pulled(tmp_path, "hf://org/repo@v1/x.pt2", more=more).values()) == [digest(BIG)]
        assert all("Authorization" not in headers for _, headers in storage.seen)
        sent = storage.sent
        pulled(tmp_path, "hf://org/repo@v1/x.pt2", more=more)
        assert storage.sent == sent
        found = pulled(tmp_path, "hf://org/repo", "--to", tmp_path / "to", more=more)
        assert sorted(os.path.relpath(path, tmp_path / "to") for path in found) == ["m/1/model.pt2", "m/config.pbtxt", "x.pt2"]
        assert "credentials" in refused(tmp_path, "hf://org/repo/y.pt2", more=hub.environment())
        assert "status 404" in refused(tmp_path, "hf://org/repo@v2/x.pt2", more=more)
        hub.wrong_digest = True
        hub.tree["x.pt2"] = BIG[::-1]
        assert "the hub says" in refused(tmp_path, "hf://org/repo@v1/x.pt2", more=more)


def test_an_expired_address_behind_a_redirect_is_asked_for_anew(tmp_path):
    with Remote() as storage, Hub({"x.pt2": BIG}, storage) as hub:
        storage.fault = lambda request: len(storage.seen) == 3 and request.reply(403)
        assert list(pulled(tmp_path, "hf://org/repo/x.pt2", "--connections", 1, more=hub.environment()).values()) == [digest(BIG)]
        assert len(hub.seen) == 2


def test_the_address_that_follows_an_expired_one_is_kept(tmp_path):
    with Remote() as storage, Hub({"x.pt2": BIG}, storage) as hub:
        storage.fault = lambda request: len(storage.seen) > 2 and request.path.endswith("=1") and request.reply(403)
        assert list(pulled(tmp_path, "hf://org/repo/x.pt2", "--connections", 1, more=hub.environment()).values()) == [digest(BIG)]
        assert len(hub.seen) == 2


def test_a_proxy_of_the_environment_is_asked(tmp_path):
    with Remote({"http://127.0.0.1:1/x.pt2": b"package"}) as proxy:
        more = {"http_proxy": proxy.url, "NO_PROXY": ""}
        assert list(pulled(tmp_path, "http://127.0.0.1:1/x.pt2", more=more).values()) == [digest(b"package")]


def test_the_help_names_every_form_of_an_address():
    said = " ".join(subprocess.run([PROGRAM, "pull", "--help"], capture_output=True, text=True).stdout.split())
    for form in ("s3://BUCKET/KEY", "gs://BUCKET/KEY", "az://ACCOUNT/CONTAINER/PATH", "https://HOST/FILE",
                 "hf://ORGANISATION/REPOSITORY[@REVISION]/FILE"):
        assert form in said
    said = " ".join(subprocess.run([PROGRAM, "serve", "--help"], capture_output=True, text=True).stdout.split())
    assert "(s3, gs, az, hf, https)" in said


def test_wrong_addresses_are_refused_before_anything_is_asked(tmp_path):
    for url in ("s3://x", "http://example.invalid/x.pt2", "/etc/passwd", "https://u:p@h/x", "hf://org/repo@/x"):
        assert "not an address" in refused(tmp_path, url)


def test_a_missing_library_is_named_where_an_address_is_used(tmp_path):
    """A file that is no library stands where libcurl is looked for first."""
    (tmp_path / "libcurl.so.4").write_bytes(b"none")
    with Remote({"/x.pt2": b"package"}) as remote:
        said = refused(tmp_path, f"{remote.url}/x.pt2", more={"LD_LIBRARY_PATH": str(tmp_path)})
        assert "install the package libcurl4" in said
    without = environment(tmp_path, {"LD_LIBRARY_PATH": str(tmp_path)})
    assert subprocess.run([PROGRAM, "inspect", DIGITS], env=without, capture_output=True).returncode == 0
    # Nor does a server need it that sends no request; a health check does.
    with Server(f"digits={DIGITS}", environment=without) as server:
        assert server.get("/v2/health/ready").status == 200
        health = subprocess.run([PROGRAM, "health", f"http://127.0.0.1:{server.port}"], env=without, capture_output=True, text=True)
        assert health.returncode != 0 and "install the package libcurl4" in health.stderr


def test_a_package_and_a_repository_are_served(tmp_path):
    package = DIGITS.read_bytes()
    with Bucket({"/models/r/a.pt2": package, "/models/r/m/1/model.pt2": package, "/models/r/m/2/model.pt2": package,
                 "/models/r/m/config.pbtxt": b'backend: "pytorch"\nversion_policy { all {} }\n'}) as bucket, \
            Remote({"/y.pt2": package}) as remote:
        with serving(tmp_path, "s3://models/r", f"named={remote.url}/y.pt2", f"{remote.url}/y.pt2",
                     more=bucket.environment()) as server:
            assert names(server) == {"a": "READY", "m": "READY", "named": "READY", "y": "READY"}
            metrics = server.metrics()
            assert metrics["sconce_remote_downloads_total"] >= 5 and metrics["sconce_remote_failures_total"] == 0
            assert metrics["sconce_remote_fetched_bytes_total"] >= len(package)
            assert metrics["sconce_remote_cache_bytes"] >= len(package)
            assert abs(metrics["sconce_remote_last_look_timestamp_seconds"] - time.time()) < 300
    # Nobody answers any more.
    with serving(tmp_path, "s3://models/r", f"named={remote.url}/y.pt2", more=bucket.environment()) as server:
        assert names(server) == {"a": "READY", "m": "READY", "named": "READY"}
        assert server.metrics()["sconce_remote_failures_total"] == 2
        assert any("what the cache has from earlier is served" in line for line in server.log)


def test_what_cannot_be_fetched_ends_the_server_or_comes_later(tmp_path):
    package = DIGITS.read_bytes()
    with Bucket({}) as bucket:
        bucket.fault = lambda request: request.reply(403)
        with pytest.raises(RuntimeError, match="the server refuses it"):
            Server("s3://models/r", flags=["--remote-cache", str(tmp_path / "cache")],
                   environment=environment(tmp_path, bucket.environment()))
        with serving(tmp_path, "s3://models/r", more=bucket.environment(), wait=False,
                     flags=[*WATCH, "--exit-on-error", "false"]) as server:
            bucket.files["/models/r/a.pt2"] = package
            bucket.fault = lambda request: None
            until(lambda: names(server) == {"a": "READY"})


def test_what_changes_is_noticed_and_what_goes_is_unloaded(tmp_path):
    package = DIGITS.read_bytes()
    with Bucket({"/models/a.pt2": package}) as bucket:
        with serving(tmp_path, "s3://models", more=bucket.environment(), flags=WATCH) as server:
            assert names(server) == {"a": "READY"}
            bucket.files["/models/b.pt2"] = package
            until(lambda: names(server) == {"a": "READY", "b": "READY"})
            del bucket.files["/models/a.pt2"]
            until(lambda: names(server) == {"b": "READY"})
            # A package that cannot be loaded leaves the earlier one.
            bucket.files["/models/b.pt2"] = b"no package"
            until(lambda: any("model b stays as it was" in line for line in server.log))
            assert names(server) == {"b": "READY"}
            bucket.fault = lambda request: request.reply(500)
            until(lambda: server.metrics()["sconce_remote_failures_total"] > 0)
            assert names(server) == {"b": "READY"}


def test_a_request_cannot_name_an_address(tmp_path):
    with Remote({"/x.pt2": DIGITS.read_bytes()}) as remote, serving(tmp_path, DIGITS, flags=["--http-admin", "true"]) as server:
        for name in (f"{remote.url}/x.pt2", f"x={remote.url}/x.pt2", "s3://models/x.pt2"):
            quoted = name.replace("/", "%2F").replace(":", "%3A")
            for body in (b"{}", {"parameters": {"config": "{}", "file:1/model.pt2": "eA==", "source": name}}):
                assert server.post(f"/v2/repository/models/{quoted}/load", body).status in (400, 404)
        assert not remote.seen
        assert not (tmp_path / "cache").exists()
