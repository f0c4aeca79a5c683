"""What the NTK peers share: nets, inputs, timing. Weights and inputs are NumPy arrays; nothing here imports a framework."""

import os
import statistics
import time
from dataclasses import dataclass

import numpy as np

import common


@dataclass(frozen=True)
class Case:
    """Theta(x, x), or Theta(x, x') where `pair`, of a ReLU net whose dense layers have these widths."""

    features: int
    widths: tuple
    n: int
    pair: bool

    def describe(self, n):
        return f"empirical NTK, {n} x {n} inputs of {self.features} features, dense layers {self.widths}, float32"


CASES = {
    "small": Case(9, (128, 128, 1), 4096, pair=False),
    "wide": Case(3072, (2048, 2048, 2048, 8), 16, pair=True),  # neural_tangents' notebook empirical_ntk_fcn
}


def arguments(description, n=None):
    """Options of every NTK peer. Threads are limited before a framework is imported."""
    parser = common.argument_parser(description)
    if n is None:
        parser.add_argument("--case", choices=CASES, default="small")
    parser.add_argument("--n", type=int, default=n, help="inputs" + ("" if n else " (default: the case's own)"))
    parser.add_argument("--repeats", type=int, default=3)
    return parser


def limit_threads(threads, device="cpu"):
    """To be called before PyTorch or JAX is imported."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["JAX_PLATFORMS"] = device
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # on a GPU that is shared with keel_bench
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # neural_tangents imports TensorFlow
    common.limit_cpus(threads)


def import_neural_tangents():
    """neural_tangents 0.6.5 reaches for two names that JAX has since taken out of jax.interpreters.ad."""
    import jax
    from jax._src import source_info_util

    jax.interpreters.ad.config = jax.config
    jax.interpreters.ad.source_info_util = source_info_util
    import neural_tangents

    return neural_tangents


def inputs(n, features, seed=0):
    return np.random.default_rng(seed).normal(size=(n, features)).astype(np.float32)


def weights(features, widths):
    """[(W [out, in], b [out])]: W ~ N(0, 2 / fan_in), b ~ N(0, 0.01)."""
    generator = np.random.default_rng(1)
    layers, fan_in = [], features
    for width in widths:
        weight = generator.normal(0, (2 / fan_in) ** 0.5, (width, fan_in))
        layers.append((weight.astype(np.float32), generator.normal(0, 0.1, width).astype(np.float32)))
        fan_in = width
    return layers


def timed(work, repeats, warm_up=1):
    """Seconds of each repetition after the warm-up; work() returns when its result is there."""
    times = []
    for repetition in range(warm_up + repeats):
        start = time.perf_counter()
        work()
        if repetition >= warm_up:
            times.append(time.perf_counter() - start)
    return {"seconds": statistics.median(times), "times": times}
