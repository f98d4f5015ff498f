"""A repository that cannot be read: it concerns its own models, and the others are watched."""
import pytest
from serving import Server, until
from test_repository import ANSWER, FOLDED, PLAIN, control, index, load, put, result


@pytest.fixture()
def two(tmp_path):
    put(PLAIN, tmp_path / "here/a.pt2")
    put(PLAIN, tmp_path / "there/b.pt2")
    put(PLAIN, tmp_path / "there/both/1/model.pt2")
    put(PLAIN, tmp_path / "here/both/2/model.pt2")
    return tmp_path / "here", tmp_path / "there"


def says(server, folder):
    return any(f"repository {folder} " in line for line in server.log)


def test_a_repository_that_goes_away_stops_no_other(two):
    here, there = two
    away = there.with_name("away")
    with Server(here, there, flags=["--watch", "50ms", "--versions", "all"]) as server:
        there.rename(away)
        until(lambda: server.index().get(str(there), ("",))[0] == "UNAVAILABLE")
        assert "cannot read directory" in server.index()[str(there)][1] and says(server, there)
        # What it has goes on; nothing else is hindered.
        put(PLAIN, here / "new.pt2")
        until(lambda: result(server, "new") == ANSWER[PLAIN])
        put(FOLDED, here / "a.pt2")
        until(lambda: result(server, "a") == ANSWER[FOLDED])
        put(FOLDED, here / "both/2/model.pt2")
        until(lambda: result(server, "both", 2) == ANSWER[FOLDED])
        (here / "new.pt2").unlink()
        until(lambda: "new" not in server.index())
        assert result(server, "b") == result(server, "both", 1) == ANSWER[PLAIN]
        assert server.get("/v2/health/ready").status == 200
        load(server, "a")
        answer = control(server, "b", "load")
        assert answer.status != 200 and result(server, "b") == ANSWER[PLAIN]
        answer = control(server, "c", "load")
        assert answer.status == 503 and str(there) in answer.json["error"]
        put(FOLDED, away / "b.pt2")
        away.rename(there)
        until(lambda: result(server, "b") == ANSWER[FOLDED])
        until(lambda: set(index(server)) == {("a", "1"), ("b", "1"), ("both", "1"), ("both", "2")})
        until(lambda: all(found == ("READY", "") for found in index(server).values()))
        assert control(server, "c", "load").status == 404


@pytest.mark.parametrize("watch", [["--watch", "50ms"], []])
def test_a_repository_that_is_not_there_at_the_start(two, watch):
    here, there = two
    away = there.with_name("away")
    there.rename(away)
    with Server(here, there, flags=["--exit-on-error", "false", *watch], wait=False) as server:
        until(lambda: result(server, "a") == ANSWER[PLAIN])
        ready = server.get("/v2/health/ready")
        assert ready.status == 503 and str(there) in ready.json["reason"] and says(server, there)
        assert result(server, "b") == 503
        away.rename(there)
        until(lambda: server.get("/v2/health/ready").status == 200)
        assert result(server, "b") == ANSWER[PLAIN] and result(server, "c") == 404


def test_a_repository_that_is_not_there_ends_the_server_with_its_name(two):
    two[1].rename(two[1].with_name("away"))
    with pytest.raises(RuntimeError, match="no such package or repository: .*/there"):
        Server(*two)


def test_on_demand_a_repository_that_goes_away_stops_no_other(two):
    here, there = two
    with Server(here, there, flags=["--load", "demand", "--watch", "50ms"]) as server:
        assert result(server, "b") == ANSWER[PLAIN]
        there.rename(there.with_name("away"))
        until(lambda: says(server, there))
        put(PLAIN, here / "new.pt2")
        until(lambda: result(server, "new") == ANSWER[PLAIN])
        assert result(server, "b") == ANSWER[PLAIN]
        assert result(server, "c") == 404
