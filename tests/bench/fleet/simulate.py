#!/usr/bin/env python3
"""Fleets on paper, from measured service times: how many pods a load takes, what a push to many costs, what the autoscaler does.

Prints the tables of docs/fleet.md. --measure SCONCE measures the digits example anew on this machine, which takes a minute, and
writes measured.json; figures of bert-base are those of docs/benchmarks.md.
"""
import argparse
import json
import pathlib

import autoscaler
import measure
import pods
import push_cost

FIGURES = pathlib.Path(__file__).with_name("measured.json")
LINK = 10e9 / 8  # bytes a second


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|---" + "|--:" * (len(head) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def models(figures):
    """Each with how many requests a pod of two cores works on at a time: the example on each core, bert-base with both."""
    return [(pods.Model("example", figures["measured"]["request_s"], 0.001), 2),
            (pods.Model("bert-base", figures["documents"]["bert_s"], 0.25), 1)]


def print_pods(figures):
    rows = []
    for model, servers in models(figures):
        most = pods.most_of_a_pod(model, servers)
        slowest = pods.slowest_of_100(model, 0.7 * servers / model.seconds, servers)
        rows.append((model.name, f"{model.seconds * 1000:.3g} ms", f"{servers / model.seconds:,.0f}", f"{slowest * 1000:.3g} ms",
                     f"{pods.pods(model, 1e6, servers, 0.7):,}", f"{model.bound * 1000:g} ms", f"{most:.2f}",
                     f"{pods.pods(model, 1e6, servers, most):,}"))
    table(["model", "service time", "requests/s of a pod", "p99 at 0.7", "pods at 0.7", "p99 bound", "utilization", "pods"], rows)


def print_pushes(figures):
    push = figures["measured"]["push"]
    costs = push_cost.Costs(LINK, figures["documents"]["stage_bytes_per_s"], push["hop_s"], push["stage_each_s"], push["commit_each_s"])
    longest, rows = push_cost.longest_relay(), []
    for how, function, count in (("from the coordinator to each", push_cost.direct, 1000), ("relay", push_cost.relayed, longest)):
        cost = function(costs, figures["documents"]["bert_bytes"], count)
        rows.append((how, f"{count:,}", f"{cost.sent / 1e9:,.3g} GB", f"{cost.staged:.3g} s", f"{cost.committed:.2f} s"))
    table(["bert-base", "pods", "sent by the coordinator", "all staged after", "then all committed after"], rows)


def rise(settings, low=70.0, factor=10, before=600.0, after=1200.0):
    """A load that rises tenfold at once, on as many pods as the autoscaler keeps for it before."""
    many = max(settings.minimum, -(-low * settings.service // 0.7))
    return autoscaler.simulate(settings, lambda now: low if now < before else low * factor, int(many), before + after, before)


SCENARIOS = [
    ("as the manifest has it", {}),
    ("ready after 60 s", {"start": 60.0}),
    ("busy replicas alone", {"waiting_target": None}),
    ("a queue of 100", {"queue": 100}),
]


def print_rises(figures):
    rows = []
    for name, change in SCENARIOS:
        given = {"service": figures["documents"]["bert_s"], "replicas": 1, "maximum": 100, **change}
        outcome = rise(autoscaler.Settings(**given))
        rows.append((name, seconds(outcome.enough), seconds(outcome.over), f"{outcome.refused / outcome.offered:.1%}",
                     f"{outcome.longest_wait:.3g} s", str(outcome.most_pods), str(outcome.last_pods)))
    table(["scenario", "enough pods after", "queues empty after", "refused", "longest wait", "most pods", "pods 20 minutes later"], rows)


def seconds(value):
    return "never" if value is None else f"{value:.0f} s"


def main(options):
    figures = json.loads(FIGURES.read_text())
    if options.measure:
        what = f"the digits example, simulate.py --measure {options.measure}"
        figures["measured"] = {"what": what, **measure.measure(options.measure)}
        FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    for group in figures.values():
        print(f"{group['what']}\n")
    print_pods(figures)
    print_pushes(figures)
    print_rises(figures)


if __name__ == "__main__":
    PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    PARSER.add_argument("--measure", metavar="SCONCE", help="measure the example anew with this program")
    main(PARSER.parse_args())
