#!/usr/bin/env python3
"""Times neural_tangents' infinite-width kernel of dense(128) PHI dense(128) PHI dense(1), jitted: Theta(x, x) of n inputs, full.
--activation says PHI: of relu and gelu it has closed forms, of silu and elu Gauss and Hermite's rule, of --degree points each way.
--layernorm puts one before each PHI, without gain and bias. --batch B goes through nt.batch in blocks of B x B inputs."""

import infinite_exact
import ntk_common

FEATURES = 9


def main():
    parser = ntk_common.arguments(__doc__, n=8192)
    parser.add_argument("--activation", choices=infinite_exact.ACTIVATIONS, default="relu")
    parser.add_argument("--degree", type=int, default=25, help="of silu and elu (25: its own default)")
    parser.add_argument("--layernorm", action="store_true")
    parser.add_argument("--x64", action="store_true")
    parser.add_argument("--batch", type=int, default=0)
    options = parser.parse_args()
    ntk_common.limit_threads(options.threads, options.device)
    import jax

    jax.config.update("jax_enable_x64", options.x64)
    jax.config.update("jax_default_matmul_precision", "highest")  # no TF32
    nt = ntk_common.import_neural_tangents()
    from neural_tangents import stax

    def dense(width):
        return stax.Dense(width, W_std=2**0.5, b_std=0.1)

    if options.activation in ("relu", "gelu"):
        phi = {"relu": stax.Relu, "gelu": stax.Gelu}[options.activation]()
    else:
        phi = stax.ElementwiseNumerical(getattr(jax.nn, options.activation), deg=options.degree)
    hidden = [stax.LayerNorm(eps=1e-5), phi] if options.layernorm else [phi]
    kernel_fn = stax.serial(dense(128), *hidden, dense(128), *hidden, dense(1))[2]

    def theta(x1, x2):
        return kernel_fn(x1, x2, "ntk")

    kernel = nt.batch(theta, batch_size=options.batch) if options.batch else jax.jit(theta)
    x = ntk_common.inputs(options.n, FEATURES)
    x = jax.device_put(x.astype(float) if options.x64 else x)
    first = kernel(x, None).block_until_ready()
    measured = ntk_common.timed(lambda: kernel(x, None).block_until_ready(), options.repeats, warm_up=0)
    ntk_common.common.print_result({
        "peer": "neural_tangents kernel_fn",
        "what": f"infinite-width NTK, {options.activation}{' with LayerNorm' if options.layernorm else ''}, {options.n} x {options.n} inputs of {FEATURES} features, {x.dtype}",
        "versions": {"neural_tangents": nt.__version__, "jax": jax.__version__},
        "n": options.n,
        "batch": options.batch,
        "device": options.device,
        "threads": options.threads,
        **measured,
        "error": infinite_exact.error_of(first, x, options.activation, options.layernorm),
        "sample": first.reshape(-1)[:2].tolist(),
    })


if __name__ == "__main__":
    main()
