"""How many pods a rate of requests takes: each pod a queue of its own, whose requests a balancer draws at random."""
import dataclasses
import math

import queues


@dataclasses.dataclass
class Model:
    name: str
    seconds: float  # of a core, for a request
    bound: float  # of the time from a request's arrival to its end, for 99 of 100


def slowest_of_100(model, rate, cores, count=60_000):
    """The time within which 99 of 100 requests to one pod are answered. Service times are all the same: M/D/cores."""
    waited = queues.waits(queues.poisson(rate, count, 1), queues.constant(model.seconds, count), cores)
    return queues.quantile(waited[count // 10:], 0.99) + model.seconds


def most_of_a_pod(model, cores, steps=12):
    """The largest share of its cores that a pod may be busy with the bound still held."""
    low, high = 0.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        if slowest_of_100(model, middle * cores / model.seconds, cores) <= model.bound:
            low = middle
        else:
            high = middle
    return low


def pods(model, rate, cores, busy):
    return math.ceil(rate * model.seconds / (cores * busy))
