"""Queues: one simulated exactly, and the closed forms that it is checked against."""
import heapq
import math
import random


def waits(arrivals, service_times, servers):
    """How long each customer waits: first come, first served, any arrivals and service times, `servers` alike."""
    free = [0.0] * servers
    found = []
    for arrival, service in zip(arrivals, service_times):
        begin = max(arrival, heapq.heappop(free))
        heapq.heappush(free, begin + service)
        found.append(begin - arrival)
    return found


def poisson(rate, count, seed):
    """Arrivals with exponential gaps."""
    source, now = random.Random(seed), 0.0
    for _ in range(count):
        now += source.expovariate(rate)
        yield now


def exponential(mean, count, seed):
    source = random.Random(seed)
    return (source.expovariate(1 / mean) for _ in range(count))


def constant(value, count):
    return (value for _ in range(count))


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def erlang_c(load, servers):
    """The share of customers of M/M/servers that wait. load: arrivals times mean service time."""
    blocked = 1.0  # Erlang B, by its recursion
    for n in range(1, servers + 1):
        blocked = load * blocked / (n + load * blocked)
    return servers * blocked / (servers - load * (1 - blocked))


def mean_wait_of_mmc(rate, service, servers):
    return erlang_c(rate * service, servers) / (servers / service - rate)


def late_share_of_mmc(rate, service, servers, wait):
    """The share of customers of M/M/servers that wait longer."""
    return erlang_c(rate * service, servers) * math.exp(-(servers / service - rate) * wait)


def mean_wait_of_md1(rate, service):
    """Pollaczek and Khinchine's for a service time that is always the same."""
    load = rate * service
    return load * service / (2 * (1 - load))
