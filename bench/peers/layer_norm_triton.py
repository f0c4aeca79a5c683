"""LayerNorm with gain and bias as one would write it in Triton: a program a row, the row in registers, two passes over it there.
With TRITON_INTERPRET=1 it runs on the CPU, slowly: for checking."""

import torch
import triton
import triton.language as tl

EPS = 1e-5
MOST_WARPS = 8192  # of the backward pass, whose programs have their own sums over rows for gain and bias: 60 a multiprocessor of an H200


@triton.jit
def forward_kernel(x, gain, bias, out, means, rstds, cols, eps, RELU: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < cols
    values = tl.load(x + row * cols + column, mask=inside, other=0.0)
    mean = tl.sum(values, axis=0) / cols
    centred = tl.where(inside, values - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / cols + eps)
    tl.store(means + row, mean)
    tl.store(rstds + row, rstd)
    result = centred * rstd * tl.load(gain + column, mask=inside) + tl.load(bias + column, mask=inside)
    if RELU:
        result = tl.maximum(result, 0.0)
    tl.store(out + row * cols + column, result, mask=inside)


@triton.jit
def backward_kernel(d_out, x, gain, bias, means, rstds, d_x, d_gains, d_biases, rows, cols, RELU: tl.constexpr, BLOCK: tl.constexpr):
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    column = tl.arange(0, BLOCK)
    inside = column < cols
    g = tl.load(gain + column, mask=inside, other=0.0)
    b = tl.load(bias + column, mask=inside, other=0.0)
    d_gain = tl.zeros((BLOCK,), dtype=tl.float32)
    d_bias = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(program, rows, programs):
        at = row * cols + column
        rstd = tl.load(rstds + row)
        xhat = tl.where(inside, (tl.load(x + at, mask=inside, other=0.0) - tl.load(means + row)) * rstd, 0.0)
        d = tl.load(d_out + at, mask=inside, other=0.0)
        if RELU:
            d = tl.where(xhat * g + b > 0.0, d, 0.0)
        d_gain += d * xhat
        d_bias += d
        d *= g
        along = tl.sum(d * xhat, axis=0) / cols
        tl.store(d_x + at, rstd * (d - tl.sum(d, axis=0) / cols - xhat * along), mask=inside)
    tl.store(d_gains + program * cols + column, d_gain, mask=inside)
    tl.store(d_biases + program * cols + column, d_bias, mask=inside)


class Triton:
    def __init__(self, x, gain, bias, relu):
        self.x, self.gain, self.bias = x.contiguous(), gain, bias
        rows, cols = x.shape
        block = triton.next_power_of_2(cols)
        warps = min(max(block // 256, 1), 16)
        self.programs = min(rows, MOST_WARPS // warps)
        self.constants = {"RELU": relu, "BLOCK": block, "num_warps": warps}
        self.mean, self.rstd = (torch.empty(rows, device=x.device) for _ in range(2))

    def forward(self):
        rows, cols = self.x.shape
        out = torch.empty_like(self.x)
        forward_kernel[(rows,)](self.x, self.gain, self.bias, out, self.mean, self.rstd, cols, EPS, **self.constants)
        return out

    def backward(self, d_out):
        rows, cols = self.x.shape
        d_x = torch.empty_like(self.x)
        d_gain, d_bias = (torch.empty(self.programs, cols, device=self.x.device) for _ in range(2))
        backward_kernel[(self.programs,)](d_out.contiguous(), self.x, self.gain, self.bias, self.mean, self.rstd, d_x, d_gain, d_bias,
                                          rows, cols, **self.constants)
        return d_x, d_gain.sum(0), d_bias.sum(0)
