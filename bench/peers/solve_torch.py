#!/usr/bin/env python3
"""Times torch.linalg.cholesky and torch.cholesky_solve in float32, for the NTK of a wide ReLU net with a ridge of a thousandth of its
mean diagonal. Making the matrix is not timed."""

import ntk_common

FEATURES = 9


def kernel(x, rows=2048):
    """Infinite-width NTK of dense relu dense, sigma_w2 = 2, sigma_b2 = 0.01: of x in double, in float32, so many rows at a time."""
    import torch

    diagonal = 2 * (x * x).sum(1) / FEATURES + 0.01
    theta = torch.empty(len(x), len(x), device=x.device)
    for i in range(0, len(x), rows):
        k = 2 * (x[i:i + rows] @ x.T) / FEATURES + 0.01
        size = torch.sqrt(torch.outer(diagonal[i:i + rows], diagonal))
        angle = torch.acos((k / size).clamp(-1, 1))
        step = (torch.pi - angle) / torch.pi
        theta[i:i + rows] = 2 * k * step + size * torch.sin(angle) / torch.pi + 0.01
    return theta


def main():
    parser = ntk_common.arguments(__doc__, n=8192)
    options = parser.parse_args()
    ntk_common.limit_threads(options.threads, options.device)
    import torch

    import torch_net

    torch_net.set_up(options.threads, options.device)
    x = torch.from_numpy(ntk_common.inputs(options.n, FEATURES)).double().to(options.device)
    matrix = kernel(x)
    matrix.diagonal().add_(1e-3 * matrix.diagonal().mean())
    y = torch.sin(x[:, :1]).float()

    def timed(work):
        return ntk_common.timed(lambda: (work(), torch_net.synchronize(options.device)), options.repeats)

    factor_times = timed(lambda: torch.linalg.cholesky(matrix))
    factor = torch.linalg.cholesky(matrix)
    solve_times = timed(lambda: torch.cholesky_solve(y, factor))
    residual = y - matrix @ torch.cholesky_solve(y, factor)
    ntk_common.common.print_result({
        "peer": "torch.linalg.cholesky, torch.cholesky_solve",
        "what": f"{options.n} x {options.n} float32, one right-hand side",
        "versions": torch_net.versions(),
        "n": options.n,
        "device": options.device,
        "threads": options.threads,
        "seconds": factor_times["seconds"] + solve_times["seconds"],
        "factor": factor_times,
        "solve": solve_times,
        "residual": float(residual.norm() / y.norm()),
    })


if __name__ == "__main__":
    main()
