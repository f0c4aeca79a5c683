#!/usr/bin/env python3
"""Times the infinite-width kernel of dense(128) PHI dense(128) PHI dense(1) as one would write it in JAX, jitted: Theta(x, x) of n inputs,
full, layer by layer by the formulas of Cho and Saul (2009) for relu, of Tsuchida et al. (2021) for gelu. --layernorm puts one before each
PHI, without gain and bias. In float64, as keel's; --float32: half the digits, of which near-parallel inputs lose half again. Works on a
GPU, where neural_tangents, which wants an older JAX, may be missing."""

import math

import infinite_exact
import ntk_common
from infinite_exact import BIAS_VARIANCE, EPS, WEIGHT_VARIANCE

FEATURES = 9


def relu(jnp, q1, q2, k):
    """E[phi(u) phi(u')] and E[phi'(u) phi'(u')] of variances q1, q2 and covariance k."""
    size = jnp.sqrt(q1 * q2)
    angle = jnp.arccos(jnp.clip(k / size, -1, 1))
    slope = (math.pi - angle) / (2 * math.pi)
    return size * jnp.sin(angle) / (2 * math.pi) + k * slope, slope


def gelu(jnp, q1, q2, k):
    a, b = q1 + 1, q2 + 1
    d = a * b - k * k
    root, r = jnp.sqrt(d), 1 / a + 1 / b
    both = (math.pi - jnp.arccos(k / jnp.sqrt(a * b))) / (2 * math.pi)  # P(u > e, u' > e'), e and e' standard normal
    return k * both + (q1 * q2 - k * k + k * k * r) / (2 * math.pi * root), both + k / root * (r + 1 / d) / (2 * math.pi)


def theta_of(jnp, x, moments, layer_norm):
    """Theta(x, x) in the NTK parameterisation; q [n]: the diagonal of K."""

    def dense(k):
        return WEIGHT_VARIANCE * k + BIAS_VARIANCE

    k = dense(x @ x.T / x.shape[1])
    q = jnp.diagonal(k)
    theta = k
    for _ in range(2):
        if layer_norm:
            scale = 1 / jnp.sqrt(q + EPS)
            scales = scale[:, None] * scale[None, :]
            k, theta, q = k * scales, theta * scales, q / (q + EPS)
        value, slope = moments(jnp, q[:, None], q[None, :], k)
        k = dense(value)
        theta = WEIGHT_VARIANCE * theta * slope + k
        q = dense(moments(jnp, q, q, q)[0])
    return theta


def main():
    parser = ntk_common.arguments(__doc__, n=8192)
    parser.add_argument("--activation", choices=("relu", "gelu"), default="relu")
    parser.add_argument("--layernorm", action="store_true")
    parser.add_argument("--float32", action="store_true")
    options = parser.parse_args()
    ntk_common.limit_threads(options.threads, options.device)
    import jax

    jax.config.update("jax_enable_x64", not options.float32)
    jax.config.update("jax_default_matmul_precision", "highest")  # no TF32
    import jax.numpy as jnp

    moments = {"relu": relu, "gelu": gelu}[options.activation]
    kernel = jax.jit(lambda x: theta_of(jnp, x, moments, options.layernorm))
    x = ntk_common.inputs(options.n, FEATURES)
    x = jax.device_put(x if options.float32 else x.astype(float))
    first = kernel(x).block_until_ready()
    measured = ntk_common.timed(lambda: kernel(x).block_until_ready(), options.repeats, warm_up=0)
    ntk_common.common.print_result({
        "peer": "jax",
        "what": f"infinite-width NTK, {options.activation}{' with LayerNorm' if options.layernorm else ''}, {options.n} x {options.n} inputs of {FEATURES} features, {x.dtype}",
        "versions": {"jax": jax.__version__},
        "n": options.n,
        "device": options.device,
        "threads": options.threads,
        **measured,
        "error": infinite_exact.error_of(first, x, options.activation, options.layernorm),
        "sample": first.reshape(-1)[:2].tolist(),
    })


if __name__ == "__main__":
    main()
