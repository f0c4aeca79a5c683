"""The problem that all peers solve: nets, data and initial weights, as NumPy arrays."""

import itertools
import json
import os
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


def print_result(result):
    """One JSON line; the load tells whether the machine was quiet enough for the numbers to count."""
    print(json.dumps(result | {"load_average": os.getloadavg()[0]}), flush=True)
