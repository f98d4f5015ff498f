"""Each allocation of a request, a scrape, an update and a load finds no memory, in turn: once, and from there on."""
from campaign import Clock, finish, inject
from control import FOR_EVER, ONCE, Kind
from operations import ALL
from subject import Subject


def run(campaign, seconds, quick=False):
    row = campaign.row("allocations")
    with Subject(flags=["--inline-below", "1s"]) as here, Subject(flags=["--inline-below", "0"]) as lane:
        places = []
        for subject, where in ((here, "here"), (lane, "on a lane")):
            for operation in ALL:
                if not campaign.wanted("allocations", operation.name):
                    continue
                if operation.prepare:
                    operation.prepare(subject)
                with subject.control.armed() as page:
                    outcome = operation.act(subject)
                count = page.allocations
                operation.check(subject, outcome)
                places += [(subject, where, operation, n, times) for n in range(1, count + 1)
                           for times in (ONCE, FOR_EVER)]
            subject.settle()
        row.places = len(places)
        memory = [s.memory_kb() for s in (here, lane)]
        clock = Clock(seconds)
        for subject, where, operation, n, times in campaign.shuffled(places):
            if clock.over():
                break
            inject(campaign, row, subject, operation, f"{where}, allocation {n}{'' if times == ONCE else ' and all behind it'}",
                   kind=Kind.ALLOCATION, nth=n, times=times)
        for subject, kilobytes in zip((here, lane), memory):
            finish(campaign, row, subject, kilobytes)
