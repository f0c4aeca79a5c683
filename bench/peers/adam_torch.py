#!/usr/bin/env python3
"""Times a step of torch.optim.Adam on one flat float32 parameter of each size."""

import torch

import common
import torch_net


def main():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--sizes", default="17921,1048576,16777216", help="separated by commas")
    parser.add_argument("--adam", choices=["fused", "default"], default="fused")
    arguments = parser.parse_args()
    torch_net.set_up(arguments.threads, arguments.device)
    cases = torch_net.Cases(f"torch.optim.Adam, {arguments.adam}", arguments)
    for size in map(int, arguments.sizes.split(",")):
        parameter = torch.nn.Parameter(torch.zeros(size, device=arguments.device))
        parameter.grad = torch.full_like(parameter, 0.5)
        adam = torch_net.adam([parameter], fused=arguments.adam == "fused")
        adam.step()
        moved = parameter.detach().mean().item()
        assert abs(moved + common.LEARNING_RATE) < 1e-6, f"the first step is {moved}"
        cases.time(str(size), adam.step)
        cases.print()


if __name__ == "__main__":
    main()
