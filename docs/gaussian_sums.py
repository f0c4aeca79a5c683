#!/usr/bin/env python3
"""What ELU and GELU's form by tanh have beside relu, as sums of (w + v x) exp(-p x^2 / 2), x >= 0.

gaussian_sums.py     Prints the numbers in kernels/gaussian_sum.h, and their errors.

Needs NumPy and SciPy. exp(-x), and psi(x) = -x sigma(-g(x)) with its derivative, which share their p. Least squares whose
weights rise where the error is large (Lawson 1961), within a search for log p as a cubic of the term's number (Nelder and
Mead); coefficients are kept small, since the moments of a sum are rounded by the square of its coefficients' sum. What must
hold at 0 holds there: phi(0) = 0, and phi' on either side. docs/kernels.md says what it is for.
"""
import numpy as np
from scipy.optimize import minimize

X = np.unique(np.concatenate([[0], np.geomspace(1e-5, 3, 700), np.linspace(0, 30, 700)]))
SMALL = 1e-7  # what a coefficient of 1 counts beside an error of that size


def basis(p, x):
    bells = np.exp(-0.5 * x[:, None] ** 2 * p[None, :])
    return np.hstack([bells, x[:, None] * bells])


def fit(p, wanted, sums, sweeps):
    """Coefficients w, v of least largest error on X, whose sums are `sums` (None: any)."""
    n = len(p)
    rows = [np.repeat([1.0, 0.0] if k == 0 else [0.0, 1.0], n) for k, s in enumerate(sums) if s is not None]
    fixed, of = np.array(rows), np.array([s for s in sums if s is not None])
    basis_of_rest = np.linalg.qr(fixed.T, mode="complete")[0][:, len(of):]
    part = fixed.T @ np.linalg.solve(fixed @ fixed.T, of)
    columns = basis(p, X)
    rest, target = columns @ basis_of_rest, wanted - columns @ part
    weight, best = np.ones(len(X)), (np.inf, part)
    for _ in range(sweeps):
        left = np.vstack([rest * weight[:, None], SMALL * basis_of_rest])
        right = np.concatenate([target * weight, -SMALL * part])
        free = np.linalg.lstsq(left, right, rcond=1e-16)[0]
        error = np.abs(rest @ free - target)
        if error.max() < best[0]:
            best = (error.max(), part + basis_of_rest @ free)
        weight *= np.sqrt(0.3 + error / error.max())
        weight /= np.sqrt((weight**2).mean())
    return best


def search(start, n, targets):
    """p, and (error, coefficients) of each target: (values on X, sums)."""
    i = np.arange(n) / (n - 1)

    def p_of(t):
        return np.exp(t[0] + t[1] * i + t[2] * i**2 + t[3] * i**3)

    def cost(t):
        return max(np.log(fit(p_of(t), *target, 12)[0]) for target in targets)

    simplex = np.array([start] + [np.array(start) + 0.4 * row for row in np.eye(4)])
    t = minimize(cost, start, method="Nelder-Mead", options={"maxiter": 200, "initial_simplex": simplex}).x
    return p_of(t), [fit(p_of(t), *target, 400) for target in targets]


def tell(name, p, error, coefficients):
    n = len(p)
    print(f"{name}: error {error:.2g}, sum of sizes {np.abs(coefficients).sum():.3g}")
    for word, values in (("w", coefficients[:n]), ("v", coefficients[n:])):
        print(f"  {word}: " + ", ".join(f"{value:.17g}" for value in values))


def gelu():
    """psi and psi' of x = X, phi' and phi'' of u = X."""
    a = 2 * np.sqrt(2 / np.pi)
    g, dg, ddg = a * (X + 0.044715 * X**3), a * (1 + 3 * 0.044715 * X**2), a * 6 * 0.044715 * X
    tail = 1 / (1 + np.exp(np.minimum(g, 700)))
    bell = tail * (1 - tail)
    below = -tail + X * bell * dg  # psi', and -phi'(-x)
    bend = 2 * bell * dg + X * bell * (ddg + (2 * tail - 1) * dg**2)  # phi'', an even function
    return -X * tail, below, 1 + below, bend


def main():
    p, [(error, c)] = search([np.log(0.08), np.log(1.6) * 11, 0, 0], 12, [(np.exp(-X), (1, -1))])
    print("exp(-x)\n  p: " + ", ".join(f"{value:.17g}" for value in p))
    tell("exp(-x)", p, error, c)
    off = basis(p, X) @ c - np.exp(-X)
    print(f"x times its error: {np.abs(X * off).max():.2g}; over 1 - exp(-x): "
          f"{np.abs(off[1:] / -np.expm1(-X[1:])).max():.2g}")

    psi, slope, above, bend = gelu()
    p, fits = search([np.log(0.6), np.log(1.5) * 7, 0, 0], 8, [(psi, (0, -0.5)), (slope, (-0.5, None))])
    print("\npsi\n  p: " + ", ".join(f"{value:.17g}" for value in p))
    for name, values, (error, c) in zip(("psi", "psi'"), (psi, slope), fits):
        tell(name, p, error, c)
        print(f"x times its error: {np.abs(X * (basis(p, X) @ c - values)).max():.2g}")
    print(f"sup |phi'| {above.max():.4f}, |phi''| {np.abs(bend).max():.4f}, |u phi''| {np.abs(X * bend).max():.4f}")
    # d E[phi'^2] / d log q = E[u phi' phi'']: of u and -u together u phi'' (phi'(u) - phi'(-u)).
    both = np.abs(X * bend * (2 * above - 1))
    step = np.diff(X)
    print(f"E[phi'^2]: sup |phi'' (phi'(u) - phi'(-u))| {np.abs(bend * (2 * above - 1)).max():.4f}, "
          f"integral of |u phi'' (phi'(u) - phi'(-u))| {(step * (both[1:] + both[:-1]) / 2).sum():.4f}, "
          f"of phi''^2 {2 * (step * (bend[1:]**2 + bend[:-1]**2) / 2).sum():.4f}")


if __name__ == "__main__":
    main()
