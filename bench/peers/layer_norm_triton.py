"""LayerNorm with gain and bias as one would write it in Triton: a program a row, or a tile of short rows, in registers, two passes
over it there. With TRITON_INTERPRET=1 it runs on the CPU, slowly: for checking."""

import torch
import triton
import triton.language as tl

EPS = 1e-5
MOST_WARPS = 8192  # of the backward pass, whose programs have their own sums over rows for gain and bias: 60 a multiprocessor of an H200
TILE = 1024  # numbers of a program, where a row is shorter


@triton.jit
def forward_kernel(x, gain, bias, out, means, rstds, rows, cols, eps, RELU: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < cols)
    values = tl.load(x + row * cols + column, mask=inside, other=0.0)
    mean = (tl.sum(values, axis=1) / cols)[:, None]
    centred = tl.where(inside, values - mean, 0.0)
    rstd = (1.0 / tl.sqrt(tl.sum(centred * centred, axis=1) / cols + eps))[:, None]
    tl.store(means + row, mean, mask=row < rows)
    tl.store(rstds + row, rstd, mask=row < rows)
    result = centred * rstd * tl.load(gain + column, mask=column < cols) + tl.load(bias + column, mask=column < cols)
    if RELU:
        result = tl.maximum(result, 0.0)
    tl.store(out + row * cols + column, result, mask=inside)


@triton.jit
def backward_kernel(d_out, x, gain, bias, means, rstds, d_x, d_gains, d_biases, rows, cols,
                    RELU: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    column = tl.arange(0, BLOCK)[None, :]
    g = tl.load(gain + column, mask=column < cols, other=0.0)
    b = tl.load(bias + column, mask=column < cols, other=0.0)
    d_gain = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    d_bias = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for first in range(program * ROWS, rows, programs * ROWS):
        row = first + tl.arange(0, ROWS)[:, None]
        inside = (row < rows) & (column < cols)
        at = row * cols + column
        rstd = tl.load(rstds + row, mask=row < rows, other=0.0)
        mean = tl.load(means + row, mask=row < rows, other=0.0)
        xhat = tl.where(inside, (tl.load(x + at, mask=inside, other=0.0) - mean) * rstd, 0.0)
        d = tl.load(d_out + at, mask=inside, other=0.0)
        if RELU:
            d = tl.where(xhat * g + b > 0.0, d, 0.0)
        d_gain += d * xhat
        d_bias += d
        d *= g
        along = (tl.sum(d * xhat, axis=1) / cols)[:, None]
        level = (tl.sum(d, axis=1) / cols)[:, None]
        tl.store(d_x + at, rstd * (d - level - xhat * along), mask=inside)
    column = tl.arange(0, BLOCK)
    tl.store(d_gains + program * cols + column, tl.sum(d_gain, axis=0), mask=column < cols)
    tl.store(d_biases + program * cols + column, tl.sum(d_bias, axis=0), mask=column < cols)


class Triton:
    def __init__(self, x, gain, bias, relu):
        self.x, self.gain, self.bias = x.contiguous(), gain, bias
        rows, cols = x.shape
        block = triton.next_power_of_2(cols)
        tile = max(1, TILE // block)
        warps = min(max(tile * block // 256, 1), 16)
        self.programs = triton.cdiv(rows, tile)
        self.summing = min(self.programs, MOST_WARPS // warps)
        self.constants = {"RELU": relu, "BLOCK": block, "ROWS": tile, "num_warps": warps}
        self.mean, self.rstd = (torch.empty(rows, device=x.device) for _ in range(2))

    def forward(self):
        rows, cols = self.x.shape
        out = torch.empty_like(self.x)
        forward_kernel[(self.programs,)](self.x, self.gain, self.bias, out, self.mean, self.rstd, rows, cols, EPS, **self.constants)
        return out

    def backward(self, d_out):
        rows, cols = self.x.shape
        d_x = torch.empty_like(self.x)
        d_gain, d_bias = (torch.empty(self.summing, cols, device=self.x.device) for _ in range(2))
        backward_kernel[(self.summing,)](d_out.contiguous(), self.x, self.gain, self.bias, self.mean, self.rstd, d_x, d_gain, d_bias,
                                         rows, cols, **self.constants)
        return d_x, d_gain.sum(0), d_bias.sum(0)
