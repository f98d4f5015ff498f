"""What Kubernetes' horizontal autoscaler does with examples/kubernetes/components/hpa when the load changes.

Requests are a fluid, pods are alike, and the balancer gives each ready pod the same share. The autoscaler is
kube-controller-manager's: for each metric, the sum over the pods divided by the target, rounded up; the metric that wants most
counts; nothing within a tenth; behaviour as in the manifest.
"""
import collections
import dataclasses
import math


@dataclasses.dataclass
class Settings:
    service: float  # seconds of a replica for a request
    replicas: int = 1  # of a pod
    queue: int = 1000  # places of a pod; more is refused with 429
    busy_target: float | None = 0.7  # replicas that are busy in a pod
    waiting_target: float | None = 4.0  # requests that wait in a pod; None: not looked at
    busy_window: float = 60.0
    waiting_window: float = 30.0
    scrape: float = 15.0
    sync: float = 15.0
    start: float = 5.0  # seconds from the decision to a pod that is ready
    up_percent: float = 200.0  # in 15 seconds
    up_pods: int = 4
    stabilisation: float = 300.0
    minimum: int = 2
    maximum: int = 50
    tolerance: float = 0.1


@dataclasses.dataclass
class Outcome:
    enough: float | None = None  # seconds from the rise until ready pods can do the load
    over: float | None = None  # seconds from the rise until nothing waits
    refused: float = 0.0
    offered: float = 0.0
    longest_wait: float = 0.0
    most_pods: int = 0
    last_pods: int = 0
    pods: list = dataclasses.field(default_factory=list)  # (second, ready pods), at changes


class Pod:
    def __init__(self, ready):
        self.ready, self.waiting = ready, 0.0
        self.busy_total = 0.0
        self.busy_samples, self.waiting_samples = collections.deque(), collections.deque()

    def scrape(self, now, settings):
        for samples, value, window in ((self.busy_samples, self.busy_total, settings.busy_window),
                                       (self.waiting_samples, self.waiting, settings.waiting_window)):
            samples.append((now, value))
            while samples[0][0] < now - window - 1e-9:
                samples.popleft()

    def busy(self):
        """Prometheus' rate() of the time that replicas ran; nothing from a single sample."""
        if len(self.busy_samples) < 2:
            return 0.0
        (first, low), (last, high) = self.busy_samples[0], self.busy_samples[-1]
        return (high - low) / (last - first)

    def waits(self):
        return sum(value for _, value in self.waiting_samples) / len(self.waiting_samples) if self.waiting_samples else 0.0


def wanted(pods, count, settings):
    """As many pods as the metrics ask for. Pods without metrics count as idle."""
    found = 0
    for target, total in ((settings.busy_target, sum(p.busy() for p in pods)), (settings.waiting_target, sum(p.waits() for p in pods))):
        if target is None:
            continue
        ratio = total / target / count
        found = max(found, count if abs(ratio - 1) <= settings.tolerance else math.ceil(total / target - 1e-9))
    return min(max(found, settings.minimum), settings.maximum)


def simulate(settings, load, pods, seconds, rise, step=0.1):
    """load: requests a second at a time. pods: as many at the beginning. rise: when the load becomes what it then stays."""
    fleet = [Pod(0.0) for _ in range(pods)]
    starting = []  # when each will be ready
    outcome, proposals = Outcome(), collections.deque()
    grown = collections.deque()  # (time, pods) of what was added, for the limit in 15 seconds
    each = settings.replicas / settings.service
    for tick in range(round(seconds / step)):
        now = tick * step
        ready = [at for at in starting if at <= now]
        starting = [at for at in starting if at > now]
        fleet += [Pod(at) for at in ready]
        share = load(now) / len(fleet)
        for pod in fleet:
            waiting = pod.waiting + (share - each) * step
            outcome.refused += max(0.0, waiting - settings.queue)
            pod.busy_total += min(settings.replicas, (pod.waiting / step + share) / each * settings.replicas) * step
            pod.waiting = min(max(0.0, waiting), settings.queue)
            outcome.longest_wait = max(outcome.longest_wait, pod.waiting / each)
        outcome.offered += load(now) * step
        if now >= rise:
            if outcome.enough is None and len(fleet) * each >= load(now):
                outcome.enough = now - rise
            calm = all(pod.waiting < 1 for pod in fleet)
            outcome.over = (outcome.over if outcome.over is not None else now - rise) if calm else None
        if not outcome.pods or outcome.pods[-1][1] != len(fleet):
            outcome.pods.append((round(now, 1), len(fleet)))
        if due(now, settings.scrape, step):
            for pod in fleet:
                pod.scrape(now, settings)
        if due(now, settings.sync, step) and now > 0:
            scale(fleet, starting, proposals, grown, settings, now)
        outcome.most_pods = max(outcome.most_pods, len(fleet))
    outcome.last_pods = len(fleet)
    return outcome


def due(now, period, step):
    return (now + step / 2) % period < step


def scale(fleet, starting, proposals, grown, settings, now):
    count = len(fleet) + len(starting)
    want = wanted(fleet, count, settings)
    proposals.append((now, want))
    while proposals[0][0] < now - settings.stabilisation:
        proposals.popleft()
    while grown and grown[0][0] <= now - 15:
        grown.popleft()
    if want > count:
        before = count - sum(added for _, added in grown)
        limit = max(math.ceil(before * (1 + settings.up_percent / 100)), before + settings.up_pods)
        more = min(want, limit) - count
        if more > 0:
            starting += [now + settings.start] * more
            grown.append((now, more))
    elif want < count:
        # Fewer only as far as the largest wish of the last minutes allows.
        keep = max(value for _, value in proposals)
        for _ in range(min(count - keep, len(fleet) - 1)):
            fleet.pop()
