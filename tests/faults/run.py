"""./dev faults [MINUTES] [--only KIND[/OPERATION]] [--seed N]: the campaign. ./dev faults soak MINUTES: mixed load."""
import argparse
import sys

import allocations
import calls
import clocks
import crashes
import disks
import limits
import peers
from campaign import Campaign, TooMany

# Kind, its share of the time.
KINDS = [(allocations, 4), (calls, 4), (peers, 3), (crashes, 2), (limits, 2), (disks, 1), (clocks, 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", nargs="?", type=float, default=10)
    parser.add_argument("--only", help="KIND or KIND/OPERATION")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=64, help="look for what is left behind each so many faults")
    arguments = parser.parse_args()
    campaign = Campaign(arguments.seed, arguments.only, every=arguments.every)
    kinds = [(kind, share) for kind, share in KINDS if campaign.wanted(kind.__name__)]
    try:
        for kind, share in kinds:
            kind.run(campaign, 60 * arguments.minutes * share / sum(s for _, s in kinds))
    except TooMany:
        campaign.say("faults: too many are lost; ended early")
    campaign.say(campaign.table())
    campaign.say(f"{campaign.injected} faults injected, {campaign.lost} lost")
    return 1 if campaign.lost or not campaign.injected else 0


if __name__ == "__main__":
    sys.exit(main())
