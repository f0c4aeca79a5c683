#!/usr/bin/env python3
"""Times LayerNorm in PyTorch, plain and with a relu after it, forward and backward, with gain and bias: its own kernels called without
autograd (eager), torch.compile, or layer_norm_triton.py (on a GPU)."""

import torch
from torch.nn import functional

import common
import torch_net

EPS = 1e-5


class Eager:
    """A relu is a pass over memory of its own here."""

    def __init__(self, x, gain, bias, relu):
        self.x, self.gain, self.bias, self.relu = x, gain, bias, relu

    def forward(self):
        self.normalised = None  # or two outputs would take turns, and twice the cache
        shape = self.x.shape[-1:]
        self.normalised, self.mean, self.rstd = torch.native_layer_norm(self.x, shape, self.gain, self.bias, EPS)
        return torch.relu(self.normalised) if self.relu else self.normalised

    def backward(self, d_out):
        if self.relu:
            d_out = torch.ops.aten.threshold_backward(d_out, self.normalised, 0)
        shape = self.x.shape[-1:]
        return torch.ops.aten.native_layer_norm_backward(
            d_out, self.x, shape, self.mean, self.rstd, self.gain, self.bias, [True] * 3)


class Compiled:
    def __init__(self, x, gain, bias, relu):
        import torch._functorch.config

        torch._functorch.config.donated_buffer = False  # backward runs many times after one forward
        torch._dynamo.reset()

        def function(x, gain, bias):
            out = functional.layer_norm(x, x.shape[-1:], gain, bias, EPS)
            return functional.relu(out) if relu else out

        self.leaves = [tensor.clone().requires_grad_() for tensor in (x, gain, bias)]
        self.arguments = x, gain, bias
        self.function = torch.compile(function, fullgraph=True, dynamic=False)
        self.out = self.function(*self.leaves)

    @torch.no_grad()
    def forward(self):
        return self.function(*self.arguments)

    def backward(self, d_out):
        return torch.autograd.grad(self.out, self.leaves, d_out, retain_graph=True)


def implementation(peer):
    if peer == "triton":
        from layer_norm_triton import Triton
        return Triton
    return {"eager": Eager, "compile": Compiled}[peer]


def check(norm, x, gain, bias, d_out, relu):
    """Against autograd in double. What float32 cannot tell from relu's kink gets no gradient."""
    leaves = [tensor.double().requires_grad_() for tensor in (x, gain, bias)]
    out = functional.layer_norm(leaves[0], x.shape[-1:], *leaves[1:], EPS)
    if relu:
        d_out = torch.where(out.detach().abs() < 1e-5, 0, d_out)
        out = functional.relu(out)
    wanted = [out, *torch.autograd.grad(out, leaves, d_out.double())]
    for name, mine, reference in zip(("out", "d_x", "d_gain", "d_bias"), [norm.forward(), *norm.backward(d_out)], wanted):
        error = (mine - reference).abs().max().item() / reference.abs().max().item()
        assert error < 1e-4, f"{name} is off by {error}"


def main():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--peer", choices=["eager", "compile", "triton"], default="eager")
    parser.add_argument("--shapes", default="100x128,65536x128,8192x768", help="rows x columns, separated by commas")
    arguments = parser.parse_args()
    torch_net.set_up(arguments.threads, arguments.device)
    if arguments.device == "cpu":
        common.keep_freed_memory()
    make = implementation(arguments.peer)
    cases = torch_net.Cases(arguments.peer, arguments)
    for shape in arguments.shapes.split(","):
        rows, cols = map(int, shape.split("x"))
        x, d_out = (torch.randn(rows, cols, device=arguments.device) for _ in range(2))
        gain, bias = torch.ones(cols, device=arguments.device), torch.zeros(cols, device=arguments.device)
        for relu, name in ((False, "layer_norm"), (True, "layer_norm_relu")):
            norm = make(x, gain, bias, relu)
            check(norm, x, gain, bias, d_out, relu)
            cases.time(f"{name} forward {shape}", norm.forward)
            cases.time(f"{name} backward {shape}", lambda: norm.backward(d_out))
        cases.print()  # each time: who ends this keeps what there is


if __name__ == "__main__":
    main()
