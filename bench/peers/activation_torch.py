#!/usr/bin/env python3
"""Times activations in PyTorch, forward and backward: its own kernels, called without autograd (eager), or torch.compile."""

import torch
from torch.nn import functional

import torch_net

SLOPE, PRELU = 0.01, 0.25
aten = torch.ops.aten


def prelu_backward(d, x, y, slopes):
    d_x, d_slopes = aten._prelu_kernel_backward(d, x, slopes)
    return d_x, d_slopes.sum(0)


# name -> (forward, backward of the derivative, the input and the output); prelu has slopes, too
ACTIVATIONS = {
    "relu": (torch.relu, lambda d, x, y: aten.threshold_backward(d, y, 0)),
    "leakyrelu": (lambda x: functional.leaky_relu(x, SLOPE), lambda d, x, y: aten.leaky_relu_backward(d, x, SLOPE, False)),
    "prelu": (functional.prelu, prelu_backward),
    "gelu": (functional.gelu, lambda d, x, y: aten.gelu_backward(d, x)),
    "gelu(tanh=1)": (lambda x: functional.gelu(x, approximate="tanh"), lambda d, x, y: aten.gelu_backward(d, x, approximate="tanh")),
    "silu": (functional.silu, lambda d, x, y: aten.silu_backward(d, x)),
    "tanh": (torch.tanh, lambda d, x, y: aten.tanh_backward(d, y)),
    "sigmoid": (torch.sigmoid, lambda d, x, y: aten.sigmoid_backward(d, y)),
    "softplus": (functional.softplus, lambda d, x, y: aten.softplus_backward(d, x, 1, 20)),
    "elu": (functional.elu, lambda d, x, y: aten.elu_backward(d, 1, 1, 1, True, y)),
}


class Eager:
    """As a net has it: forward keeps what backward needs."""

    def __init__(self, forward, backward, x, *slopes):
        self.run, self.pull, self.x, self.slopes = forward, backward, x, slopes
        self.y = forward(x, *slopes)

    def forward(self):
        return self.run(self.x, *self.slopes)

    def backward(self, d_out):
        pulled = self.pull(d_out, self.x, self.y, *self.slopes)
        return pulled if self.slopes else [pulled]


def check(mine, forward, arguments, d_out):
    """Against autograd in double, of x but within what float32 tells from 0, a kink of some."""
    leaves = [each.double().requires_grad_() for each in arguments]
    out = forward(*leaves)
    wanted = [out, *torch.autograd.grad(out, leaves, d_out.double())]
    torch_net.check_passes(mine, d_out, wanted[:2], 1e-5, arguments[0].abs() > 1e-6)
    for got, reference in zip(mine.backward(d_out)[1:], wanted[2:]):
        assert (got - reference).abs().max() < 1e-4 * reference.abs().max(), "d_slopes is off"


def main():
    peer, cases, shapes = torch_net.cases_of_shapes(__doc__, ["eager", "compile"], "100x128,65536x128")
    for shape, rows, cols in shapes:
        x, d_out = (torch.randn(rows, cols, device=cases.device) for _ in range(2))
        for name, (forward, backward) in ACTIVATIONS.items():
            arguments = (x, torch.full((cols,), PRELU, device=cases.device)) if name == "prelu" else (x,)
            mine = torch_net.compiled(forward, *arguments) if peer == "compile" else Eager(forward, backward, *arguments)
            check(mine, forward, arguments, d_out)
            cases.time(f"{name} forward {shape}", mine.forward)
            cases.time(f"{name} backward {shape}", lambda: mine.backward(d_out))
            cases.print()  # each time: who ends this keeps what there is


if __name__ == "__main__":
    main()
