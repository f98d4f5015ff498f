"""Fails each allocation of a request, a scrape, an update and a load in turn: once, and from there on."""
from campaign import Clock, finish, inject
from control import FOR_EVER, ONCE, Kind
from operations import dry_runs, some_of, variants


def run(campaign, seconds):
    row = campaign.row("allocations")
    with variants() as subjects:
        places = [(subject, where, operation, n, times)
                  for subject, where, operation, count, _ in dry_runs(campaign, "allocations", subjects)
                  for n, times in some_of(campaign, operation,
                                          [(n, times) for n in range(1, count + 1) for times in (ONCE, FOR_EVER)])]
        row.places = len(places)
        memory = [subject.memory_kb() for subject, _, _ in subjects]
        clock = Clock(seconds)
        for subject, where, operation, n, times in campaign.shuffled(places):
            if clock.over():
                break
            inject(campaign, row, subject, operation, f"{where}, allocation {n}{'' if times == ONCE else ' and all behind it'}",
                   kind=Kind.ALLOCATION, nth=n, times=times)
        for (subject, _, _), kilobytes in zip(subjects, memory):
            finish(campaign, row, subject, kilobytes)
