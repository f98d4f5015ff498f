"""What a push of weights to many pods takes: to each from the coordinator, or from pod to pod."""
import dataclasses

LIST = 8000  # bytes of the servers' URLs; with more of them, `--relay` is refused (docs/pushes.md)


@dataclasses.dataclass
class Costs:
    link: float  # bytes a second of the coordinator's and of each pod's link
    stage: float  # bytes a second that a pod stages: it digests and checks them
    hop: float  # seconds that a relay takes to reach the next pod
    stage_each: float  # seconds of the coordinator for each pod that it sends to itself
    commit_each: float  # seconds of the coordinator for each pod's prepare and commit


@dataclasses.dataclass
class Push:
    sent: float  # bytes that leave the coordinator
    staged: float  # seconds until all have staged
    committed: float  # seconds more until all have committed


def direct(costs, size, pods):
    """The coordinator sends to all at the same time over its own link."""
    transfer = max(pods * size / costs.link, size / costs.stage)
    return Push(pods * size, max(transfer, pods * costs.stage_each), pods * costs.commit_each)


def relayed(costs, size, pods):
    """The coordinator sends once; each pod passes on what arrives, so all links work at the same time."""
    return Push(size, size / min(costs.link, costs.stage) + (pods - 1) * costs.hop, pods * costs.commit_each)


def longest_relay(url="http://10.200.100.100:8003"):
    """How many servers fit in the list of them."""
    return (LIST + 1) // (len(url) + 1)
