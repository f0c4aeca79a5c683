#!/usr/bin/env python3
"""Times one training epoch of dense(1->128) LayerNorm ReLU dense(128->128) ReLU dense(128->1) in eager PyTorch."""

import statistics
import time

import torch

import common
import torch_net

BLOCK_SECONDS = 0.2
WARM_UP_EPOCHS = 100


def main():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--epochs", type=int, help=f"epochs per timed block (default: about {BLOCK_SECONDS} s)")
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--no-layernorm", action="store_true")
    parser.add_argument("--adam", choices=["fused", "default"], default="fused")
    arguments = parser.parse_args()

    device = arguments.device
    torch_net.set_up(arguments.threads, device)
    architecture = "standard" if arguments.no_layernorm else "ln_first"
    member = common.MEMBERS[0]
    net = torch_net.initialise(torch_net.relu_net(common.ARCHITECTURES[architecture]), member.seed).to(device)
    optimizer = torch_net.adam(net.parameters(), fused=arguments.adam == "fused")
    x = torch.from_numpy(common.inputs()).to(device)
    y = torch.from_numpy(common.targets(member)).to(device)

    def epoch_microseconds(epochs):
        torch_net.synchronize(device)
        start = time.perf_counter()
        torch_net.train(net, optimizer, x, y, epochs)
        torch_net.synchronize(device)
        return (time.perf_counter() - start) / epochs * 1e6

    epoch_microseconds(WARM_UP_EPOCHS)
    block_epochs = arguments.epochs or max(1, round(BLOCK_SECONDS * 1e6 / epoch_microseconds(WARM_UP_EPOCHS)))
    timings = [epoch_microseconds(block_epochs) for _ in range(arguments.blocks)]
    with torch.no_grad():
        final_loss = torch.nn.functional.mse_loss(net(x), y).item()

    common.print_result({
        "peer": "torch eager",
        "versions": torch_net.versions(),
        "device": device,
        "threads": arguments.threads,
        "layernorm": not arguments.no_layernorm,
        "adam": arguments.adam,
        "blocks": arguments.blocks,
        "epochs_per_block": block_epochs,
        "seconds": statistics.median(timings) * 1e-6,  # of an epoch
        "epoch_us": {"median": statistics.median(timings), "min": min(timings), "max": max(timings)},
        "final_loss": final_loss,
    })


if __name__ == "__main__":
    main()
