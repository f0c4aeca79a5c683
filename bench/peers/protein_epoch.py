#!/usr/bin/env python3
"""Times one full-batch training epoch of dense(9->128) LayerNorm ReLU dense(128->128) LayerNorm ReLU dense(128->1) on 40,132 rows in
eager PyTorch; on a GPU also as a CUDA graph, as keel replays one."""

import torch

import common
import torch_net

ROWS, FEATURES = 40132, 9


def main():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--epochs", type=int, default=15, help="timed at least")
    parser.add_argument("--adam", choices=["fused", "default"], default="fused")
    arguments = parser.parse_args()

    device = arguments.device
    torch_net.set_up(arguments.threads, device)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(arguments.rows, FEATURES, generator=generator).to(device)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2]
    layers = []
    for fan_in in (FEATURES, common.WIDTH):
        layers += [torch.nn.Linear(fan_in, common.WIDTH), torch.nn.LayerNorm(common.WIDTH), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(common.WIDTH, 1))
    for layer in net[::3]:
        torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
        torch.nn.init.normal_(layer.bias, std=common.BIAS_STD, generator=generator)
    net.to(device)
    start = {name: value.clone() for name, value in net.state_dict().items()}

    def new_training(**options):
        """(an epoch, its optimizer), from the start."""
        net.load_state_dict(start)
        optimizer = torch_net.adam(net.parameters(), fused=arguments.adam == "fused", **options)
        return lambda: torch_net.train(net, optimizer, x, y, 1), optimizer

    epoch, _ = new_training()
    timing = common.measure(epoch, torch_net.waiting_for(device), repeats=arguments.epochs)
    result = {
        "peer": "torch eager",
        "versions": torch_net.versions(),
        "device": device,
        "threads": arguments.threads,
        "rows": arguments.rows,
        "adam": arguments.adam,
        **timing,
    }
    common.print_result(result)

    def check(replay, loss):
        replay()
        before = loss.item()
        for _ in range(100):
            replay()
        assert loss.item() < before, f"replayed epochs lead from a loss of {before} to {loss.item()}"

    if device == "cuda":  # after what is known, as recording may break more than itself
        result["graph"] = torch_net.time_recorded(*new_training(capturable=True), check)
        common.print_result(result)


if __name__ == "__main__":
    main()
