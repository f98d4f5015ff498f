"""Each allocation of a request, a scrape, an update and a load finds no memory, in turn: once, and from there on."""
from campaign import Clock, finish, inject
from control import FOR_EVER, ONCE, Kind
from operations import everything, variants


def run(campaign, seconds):
    row = campaign.row("allocations")
    with variants() as subjects:
        places = []
        for subject, where, operations in subjects:
            everything(subject, operations)
            for operation in operations:
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
        memory = [subject.memory_kb() for subject, _, _ in subjects]
        clock = Clock(seconds)
        for subject, where, operation, n, times in campaign.shuffled(places):
            if clock.over():
                break
            inject(campaign, row, subject, operation, f"{where}, allocation {n}{'' if times == ONCE else ' and all behind it'}",
                   kind=Kind.ALLOCATION, nth=n, times=times)
        for (subject, _, _), kilobytes in zip(subjects, memory):
            finish(campaign, row, subject, kilobytes)
