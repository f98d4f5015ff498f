"""The fault campaign: python tests/faults/run.py [MINUTES] [--only KIND[/OPERATION]] [--seed N], or soak [MINUTES]."""
import argparse
import sys

import allocations
import calls
import clocks
import crashes
import cuda
import disks
import files
import limits
import peers
import soak
from campaign import Campaign, TooMany
from subject import Lost

# (kind, share of the time)
KINDS = [(allocations, 5), (calls, 4), (peers, 2), (crashes, 2), (limits, 2), (disks, 1), (clocks, 1), (files, 1),
         (cuda, 1)]


def run_some(campaign, kinds, seconds):
    try:
        for kind, share in kinds:
            kind.run(campaign, seconds * share / sum(s for _, s in kinds))
    except TooMany:
        campaign.say("faults: too many are lost; ended early")
    except Lost as problem:
        campaign.lose(campaign.row("without a fault"), "", problem)
    campaign.say(campaign.table())
    campaign.say(f"{campaign.injected} faults injected, {campaign.lost} lost")
    return campaign.lost == 0 and campaign.injected > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["10"], help="MINUTES, or soak MINUTES")
    parser.add_argument("--only", help="allocations, calls/load and so on")
    parser.add_argument("--seed", type=int, default=1, help="another order")
    parser.add_argument("--every", type=int, default=64, help="look for what is left behind each so many faults")
    arguments = parser.parse_args()
    if arguments.what[0] == "soak":
        minutes = float(arguments.what[1]) if len(arguments.what) > 1 else 10
        return 0 if soak.run(60 * minutes, lambda text: print(text, flush=True)) else 1
    campaign = Campaign(arguments.seed, arguments.only, every=arguments.every)
    kinds = [(kind, share) for kind, share in KINDS if campaign.wanted(kind.__name__)]
    return 0 if run_some(campaign, kinds, 60 * float(arguments.what[0])) else 1


if __name__ == "__main__":
    sys.exit(main())
