#!/usr/bin/env python3
"""Times the training of the 60 nets of the paper's Figure 1: 3 data sets x 4 architectures x 5 seeds, 3000 epochs.
With --epochs 50 all final_mse agree to three digits; later rounding drives nets with LayerNorm apart."""

from functools import partial

import common

FULL_EPOCHS = 3000
FULL_NETS = len(common.ARCHITECTURES) * len(common.MEMBERS)


def load_peer(name):
    """The module of a peer and its run(members, epochs, device); imports only the library asked for."""
    if name.startswith("torch"):
        import fig1_torch
        return fig1_torch, {
            "torch-eager": fig1_torch.run_eager,
            "torch-eager-fused": partial(fig1_torch.run_eager, fused_adam=True),
            "torch-compile": fig1_torch.run_compiled,
        }[name]
    import fig1_jax
    return fig1_jax, partial(fig1_jax.run, {
        "jax-vmap": fig1_jax.train_batched,
        "jax-map": fig1_jax.train_in_turn,
    }[name])


def main():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--peer", required=True, choices=["torch-eager", "torch-eager-fused", "torch-compile", "jax-vmap", "jax-map"])
    parser.add_argument("--epochs", type=int, default=FULL_EPOCHS)
    parser.add_argument("--nets", type=int, default=FULL_NETS,
                        help="how many nets, the same number of each architecture: a multiple of 4")
    arguments = parser.parse_args()
    members, remainder = divmod(arguments.nets, len(common.ARCHITECTURES))
    if remainder or not 1 <= members <= len(common.MEMBERS):
        parser.error(f"--nets must be a multiple of {len(common.ARCHITECTURES)} from 4 to {FULL_NETS}")

    module, run = load_peer(arguments.peer)
    module.set_up(arguments.threads, arguments.device)
    measured = run(common.MEMBERS[:members], arguments.epochs, arguments.device)

    scale = FULL_NETS * FULL_EPOCHS / (arguments.nets * arguments.epochs)
    result = {
        "peer": arguments.peer,
        "versions": module.versions(),
        "device": arguments.device,
        "threads": arguments.threads,
        "nets": FULL_NETS,
        "epochs": FULL_EPOCHS,
        "seconds": measured["seconds"] * scale,  # of the whole work
        "compile_seconds": measured["compile_seconds"],
        "final_mse": measured["final_mse"],
    }
    if scale != 1:
        result["scaled_from"] = {"nets": arguments.nets, "epochs": arguments.epochs, "seconds": measured["seconds"]}
    common.print_result(result)


if __name__ == "__main__":
    main()
