"""The problem that all peers solve: nets, data and initial weights, as NumPy arrays."""

import argparse
import ctypes
import itertools
import json
import os
import statistics
import time
from dataclasses import dataclass

import numpy as np

WIDTH = 128
SAMPLES = 100
LEARNING_RATE = 1e-3
BETA1, BETA2, ADAM_EPS = 0.9, 0.999, 1e-8
LAYER_NORM_EPS = 1e-5
BIAS_STD = 0.1  # biases are N(0, 0.01)

TARGETS = {
    "sine": np.sin,
    "linear": lambda x: x / 2,
    "quadratic": lambda x: x**2 / 5,
}
SEEDS = range(5)

# name -> LayerNorm after the (first, second) dense layer
ARCHITECTURES = {
    "standard": (False, False),
    "ln_first": (True, False),
    "ln_second": (False, True),
    "ln_every": (True, True),
}


@dataclass(frozen=True)
class Member:
    """One net of an architecture: what it learns and where its weights start."""

    target: str
    seed: int


# The targets vary fastest, so that any three successive members cover all data sets.
MEMBERS = [Member(target, seed) for seed, target in itertools.product(SEEDS, TARGETS)]


def inputs():
    """[SAMPLES, 1] evenly spaced points of [-5, 5]."""
    return np.linspace(-5, 5, SAMPLES, dtype=np.float32)[:, None]


def targets(member):
    return TARGETS[member.target](inputs())


def initial_dense_layers(seed):
    """(weight [fan_in, fan_out], bias [fan_out]) of the three dense layers, weights Kaiming-normal."""
    generator = np.random.default_rng(seed)
    layers = []
    for fan_in, fan_out in [(1, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]:
        weight = generator.normal(0, np.sqrt(2 / fan_in), (fan_in, fan_out))
        bias = generator.normal(0, BIAS_STD, fan_out)
        layers.append((weight.astype(np.float32), bias.astype(np.float32)))
    return layers


def limit_cpus(threads):
    """Confines the process to some CPUs: the one limit that XLA's thread pool obeys. Call before JAX computes anything."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def argument_parser(description):
    """The two options that every peer takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of the processor")
    return parser


def free_gigabytes():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable")) / 1e6


def keep_freed_memory():
    """glibc gives large blocks back to the system and takes them anew, page by page: that would be most of what is timed."""
    mallopt = ctypes.CDLL(None).mallopt
    trim_threshold, mmap_max = -1, -4
    assert mallopt(trim_threshold, 2**31 - 1) and mallopt(mmap_max, 0)


def measure(work, synchronize=None, seconds=0.5, repeats=7, prepare=None):
    """Seconds of a call of work(): {"seconds": median, "fastest", "slowest"}, as keel_bench measures. `synchronize`, which a GPU
    needs, waits for the device; then a repetition is as many calls as take 10 ms. `prepare` runs before each, unmeasured, and a
    repetition is one call."""
    def repetition(calls):
        if prepare:
            prepare()
        if synchronize:
            synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            work()
        if synchronize:
            synchronize()
        return (time.perf_counter() - start) / calls

    last = [repetition(1) for _ in range(3)][-1]
    calls = max(1, int(10e-3 / last)) if synchronize and not prepare else 1
    times, start = [], time.perf_counter()
    while len(times) < repeats or time.perf_counter() - start < seconds:
        times.append(repetition(calls))
    return {"seconds": statistics.median(times), "fastest": min(times), "slowest": max(times)}


def print_result(result):
    """One JSON line; the load tells whether the machine was quiet enough for the numbers to count."""
    print(json.dumps(result | {"load_average": os.getloadavg()[0]}), flush=True)
