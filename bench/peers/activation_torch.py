#!/usr/bin/env python3
"""Times activations in PyTorch, forward and backward: its own kernels, called without autograd (eager), or torch.compile."""

import torch
from torch.nn import functional

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
    "elu": (functional.elu, lambda d, x, y: aten.elu_backward(d, 1, 1, 1, True, y)),
}


class Eager:
    """As a net has it: forward keeps what backward needs."""

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
    torch_net.check_passes(mine, d_out, wanted, 1e-5, x.abs() > 1e-6)


def main():
    peer, cases, shapes = torch_net.cases_of_shapes(__doc__, ["eager", "compile"], "100x128,65536x128")
    for shape, rows, cols in shapes:
        x, d_out = (torch.randn(rows, cols, device=cases.device) for _ in range(2))
        for name, (forward, backward) in ACTIVATIONS.items():
            mine = torch_net.compiled(forward, x) if peer == "compile" else Eager(forward, backward, x)
            check(mine, forward, x, d_out)
            cases.time(f"{name} forward {shape}", mine.forward)
            cases.time(f"{name} backward {shape}", lambda: mine.backward(d_out))
            cases.print()  # each time: who ends this keeps what there is


if __name__ == "__main__":
    main()
