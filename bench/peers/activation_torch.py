#!/usr/bin/env python3
"""Times activations in PyTorch, forward and backward: its own kernels, called without autograd (eager), or torch.compile."""

import torch
from torch.nn import functional

import common
import torch_net

SLOPE = 0.01
aten = torch.ops.aten
# name -> (forward, backward of the derivative, the input and the output)
ACTIVATIONS = {
    "relu": (torch.relu, lambda d, x, y: aten.threshold_backward(d, y, 0)),
    "leakyrelu": (lambda x: functional.leaky_relu(x, SLOPE), lambda d, x, y: aten.leaky_relu_backward(d, x, SLOPE, False)),
    "gelu": (functional.gelu, lambda d, x, y: aten.gelu_backward(d, x)),
    "silu": (functional.silu, lambda d, x, y: aten.silu_backward(d, x)),
    "tanh": (torch.tanh, lambda d, x, y: aten.tanh_backward(d, y)),
    "sigmoid": (torch.sigmoid, lambda d, x, y: aten.sigmoid_backward(d, y)),
    "softplus": (functional.softplus, lambda d, x, y: aten.softplus_backward(d, x, 1, 20)),
}


class Eager:
    def __init__(self, forward, backward, x):
        self.run, self.pull, self.x = forward, backward, x
        self.y = forward(x)

    def forward(self):
        return self.run(self.x)

    def backward(self, d_out):
        return [self.pull(d_out, self.x, self.y)]


def check(mine, forward, x, d_out):
    """Against autograd in double, but within what float32 tells from 0, a kink of some."""
    leaf = x.double().requires_grad_()
    out = forward(leaf)
    wanted = [out, *torch.autograd.grad(out, [leaf], d_out.double())]
    for name, got, reference in zip(("out", "d_x"), [mine.forward(), *mine.backward(d_out)], wanted):
        error = (got - reference).abs()[x.abs() > 1e-6].max().item() / reference.abs().max().item()
        assert error < 1e-5, f"{name} is off by {error}"


def main():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--peer", choices=["eager", "compile"], default="eager")
    parser.add_argument("--shapes", default="100x128,65536x128", help="rows x columns, separated by commas")
    arguments = parser.parse_args()
    torch_net.set_up(arguments.threads, arguments.device)
    if arguments.device == "cpu":
        common.keep_freed_memory()
    cases = torch_net.Cases(arguments.peer, arguments)
    for shape in arguments.shapes.split(","):
        x, d_out = (torch.randn(*map(int, shape.split("x")), device=arguments.device) for _ in range(2))
        for name, (forward, backward) in ACTIVATIONS.items():
            mine = torch_net.compiled(forward, x) if arguments.peer == "compile" else Eager(forward, backward, x)
            check(mine, forward, x, d_out)
            cases.time(f"{name} forward {shape}", mine.forward)
            cases.time(f"{name} backward {shape}", lambda: mine.backward(d_out))
            cases.print()  # each time: who ends this keeps what there is


if __name__ == "__main__":
    main()
