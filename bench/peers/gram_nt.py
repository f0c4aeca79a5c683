#!/usr/bin/env python3
"""Times neural_tangents' implementations of the empirical NTK, jitted, each by itself: [n, n, outputs, outputs]. --batch B goes
through nt.batch in blocks of B x B inputs; 0 computes all at once."""

import ntk_common

IMPLEMENTATIONS = ["JACOBIAN_CONTRACTION", "NTK_VECTOR_PRODUCTS", "STRUCTURED_DERIVATIVES"]


def main():
    parser = ntk_common.arguments(__doc__)
    parser.add_argument("--implementation", choices=IMPLEMENTATIONS, default=IMPLEMENTATIONS[-1])
    parser.add_argument("--batch", type=int, default=0)
    options = parser.parse_args()
    ntk_common.limit_threads(options.threads, options.device)
    import jax

    jax.config.update("jax_default_matmul_precision", "highest")  # no TF32
    nt = ntk_common.import_neural_tangents()
    from neural_tangents import stax

    case = ntk_common.CASES[options.case]
    n = options.n or case.n
    parameters = []
    for weight, bias in ntk_common.weights(case.features, case.widths):
        parameters += [(weight.T, bias), ()]
    parameters = jax.device_put(parameters[:-1])
    layers = []
    for width in case.widths:
        layers += [stax.Dense(width, parameterization="standard", b_std=0.1), stax.Relu()]
    apply = stax.serial(*layers[:-1])[1]
    x1 = jax.device_put(ntk_common.inputs(n, case.features))
    x2 = jax.device_put(ntk_common.inputs(n, case.features, seed=2)) if case.pair else None

    kernel = nt.empirical_ntk_fn(apply, trace_axes=(), vmap_axes=0,
                                 implementation=nt.NtkImplementation[options.implementation])
    kernel = nt.batch(kernel, batch_size=options.batch) if options.batch else jax.jit(kernel)
    theta = kernel(x1, x2, parameters).block_until_ready()
    measured = ntk_common.timed(lambda: kernel(x1, x2, parameters).block_until_ready(), options.repeats, warm_up=0)
    ntk_common.common.print_result({
        "peer": "neural_tangents " + options.implementation,
        "what": case.describe(n),
        "versions": {"neural_tangents": nt.__version__, "jax": jax.__version__},
        "n": n,
        "batch": options.batch,
        "device": options.device,
        "threads": options.threads,
        **measured,
        "sample": theta.reshape(-1)[:2].tolist(),
    })


if __name__ == "__main__":
    main()
