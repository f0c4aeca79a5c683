#!/usr/bin/env python3
"""Times the infinite-width kernel of dense(128) relu dense(128) relu dense(1) as one would write it in JAX, jitted: the arc-cosine formulas
of Cho and Saul (2009) layer by layer, Theta(x, x) of n inputs, full. --layernorm puts one before each relu, without gain and bias. In
float64, as keel's; --float32: half the digits, of which near-parallel inputs lose half again. Works on a GPU, where neural_tangents, which
wants an older JAX, may be missing."""

import math

import ntk_common

FEATURES = 9
WEIGHT_VARIANCE, BIAS_VARIANCE, EPS = 2.0, 0.01, 1e-5


def theta_of(jnp, x, layer_norm):
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
        size = jnp.sqrt(q[:, None] * q[None, :])
        angle = jnp.arccos(jnp.clip(k / size, -1, 1))
        slope = (math.pi - angle) / (2 * math.pi)  # E[relu' relu']
        k = dense(size * jnp.sin(angle) / (2 * math.pi) + k * slope)  # E[relu relu'], and on
        theta = WEIGHT_VARIANCE * theta * slope + k
        q = dense(q / 2)
    return theta


def main():
    parser = ntk_common.arguments(__doc__, n=8192)
    parser.add_argument("--layernorm", action="store_true")
    parser.add_argument("--float32", action="store_true")
    options = parser.parse_args()
    ntk_common.limit_threads(options.threads, options.device)
    import jax

    jax.config.update("jax_enable_x64", not options.float32)
    jax.config.update("jax_default_matmul_precision", "highest")  # no TF32
    import jax.numpy as jnp

    kernel = jax.jit(lambda x: theta_of(jnp, x, options.layernorm))
    x = ntk_common.inputs(options.n, FEATURES)
    x = jax.device_put(x if options.float32 else x.astype(float))
    first = kernel(x).block_until_ready()
    measured = ntk_common.timed(lambda: kernel(x).block_until_ready(), options.repeats, warm_up=0)
    ntk_common.common.print_result({
        "peer": "jax",
        "what": f"infinite-width NTK{' with LayerNorm' if options.layernorm else ''}, {options.n} x {options.n} inputs of {FEATURES} features, {x.dtype}",
        "versions": {"jax": jax.__version__},
        "n": options.n,
        "device": options.device,
        "threads": options.threads,
        **measured,
        "sample": first.reshape(-1)[:2].tolist(),
    })


if __name__ == "__main__":
    main()
