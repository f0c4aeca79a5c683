#!/usr/bin/env python3
"""Times one training step of Figure 7's transformer in PyTorch: eager, or by torch.compile; on a GPU also as a CUDA graph, as keel
replays one."""

import torch
from torch import nn

import common
import torch_net
import transformer_common as sizes


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(sizes.WIDTH, 3 * sizes.WIDTH)
        self.mixed = nn.Linear(sizes.WIDTH, sizes.WIDTH)
        self.hidden = nn.Linear(sizes.WIDTH, sizes.HIDDEN)
        self.back = nn.Linear(sizes.HIDDEN, sizes.WIDTH)

    def forward(self, h):
        n, length, width = h.shape
        heads = self.qkv(h).view(n, length, 3, sizes.HEADS, width // sizes.HEADS).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        h = h + self.mixed(mixed.transpose(1, 2).reshape(n, length, width))
        return h + self.back(nn.functional.relu(self.hidden(h)))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(1, sizes.WIDTH)
        self.places = nn.Parameter(torch.zeros(sizes.LENGTH, sizes.WIDTH))
        self.norm = nn.LayerNorm(sizes.WIDTH, eps=common.LAYER_NORM_EPS)
        self.blocks = nn.Sequential(*(Block() for _ in range(sizes.BLOCKS)))
        self.last = nn.Linear(sizes.WIDTH, 1)

    def forward(self, x):
        h = self.norm(self.embedding(x.unsqueeze(-1)) + self.places)
        return self.last(self.blocks(h)).squeeze(-1)


def main():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    device = arguments.device
    torch_net.set_up(arguments.threads, device)
    start = {name: torch.from_numpy(value) for name, value in sizes.initial_parameters().items()}
    net = Transformer().to(device)
    x = torch.from_numpy(sizes.sequences()).to(device)
    forward = torch.compile(net) if arguments.compile else net

    def new_training(**options):
        """(a step, its optimizer), from the start."""
        net.load_state_dict(start)
        optimizer = torch_net.adam(net.parameters(), fused=True, **options)

        def step():
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(forward(x), x)
            loss.backward()
            optimizer.step()
            return loss

        return step, optimizer

    step, _ = new_training()
    first = step().item()
    for _ in range(100):
        last = step().item()
    assert last < first / 10, (first, last)
    timing = common.measure(step, torch_net.waiting_for(device))
    result = {
        "peer": "torch.compile" if arguments.compile else "torch eager",
        "versions": torch_net.versions(),
        "device": device,
        "threads": arguments.threads,
        **timing,
        "first_loss": first,
        "loss": last,
    }
    common.print_result(result)

    def check(replay, loss):
        for _ in range(100):
            replay()
        assert loss.item() < first / 10, f"a replayed step ends at a loss of {loss.item()}"

    if device == "cuda":  # after what is known, as recording may break more than itself
        result["graph"] = torch_net.time_recorded(*new_training(capturable=True), check)
        common.print_result(result)


if __name__ == "__main__":
    main()
