#!/usr/bin/env python3
"""Times LayerNorm in PyTorch, and RMSNorm where rows have 768 columns, plain and with a relu after it, forward and backward, with gain and
bias: its own kernels, LayerNorm's called without autograd (eager), torch.compile, or layer_norm_triton.py (on a GPU; LayerNorm alone)."""

import torch
from torch.nn import functional

import torch_net

EPS = 1e-5
RMS_COLS = 768


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


def layer_norm(x, gain, bias):
    return functional.layer_norm(x, x.shape[-1:], gain, bias, EPS)


def rms_norm(x, gain):
    return functional.rms_norm(x, x.shape[-1:], gain, EPS)


def followed(norm, relu):
    return (lambda *arguments: functional.relu(norm(*arguments))) if relu else norm


def implementation(peer, norm, relu):
    """Makes one of x and the parameters; None: the peer has none."""
    if peer == "compile":
        return lambda *arguments: torch_net.compiled(followed(norm, relu), *arguments)
    if norm is rms_norm:
        return None if peer == "triton" else lambda *arguments: torch_net.Recorded(followed(norm, relu), *arguments)
    if peer == "triton":
        from layer_norm_triton import Triton
        return lambda *arguments: Triton(*arguments, relu)
    return lambda *arguments: Eager(*arguments, relu)


def check(mine, norm, arguments, d_out, relu):
    """Against autograd in double. What float32 cannot tell from relu's kink gets no gradient."""
    leaves = [tensor.double().requires_grad_() for tensor in arguments]
    out = norm(*leaves)
    if relu:
        d_out = torch.where(out.detach().abs() < 1e-5, 0, d_out)
        out = functional.relu(out)
    wanted = [out, *torch.autograd.grad(out, leaves, d_out.double())]
    torch_net.check_passes(mine, d_out, wanted, 1e-4)


def main():
    peer, cases, shapes = torch_net.cases_of_shapes(__doc__, ["eager", "compile", "triton"], "100x128,65536x128,8192x768")
    for shape, rows, cols in shapes:
        x, d_out = (torch.randn(rows, cols, device=cases.device) for _ in range(2))
        gain, bias = torch.ones(cols, device=cases.device), torch.zeros(cols, device=cases.device)
        norms = [(layer_norm, (x, gain, bias))] + [(rms_norm, (x, gain))] * (cols == RMS_COLS)
        for norm, parts in norms:
            for relu in (False, True):
                make = implementation(peer, norm, relu)
                if make is None:
                    continue
                mine, name = make(*parts), norm.__name__ + "_relu" * relu
                check(mine, norm, parts, d_out, relu)
                cases.time(f"{name} forward {shape}", mine.forward)
                cases.time(f"{name} backward {shape}", lambda: mine.backward(d_out))
        cases.print()  # each time: who ends this keeps what there is


if __name__ == "__main__":
    main()
