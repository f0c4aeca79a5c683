#!/usr/bin/env python3
"""The logistic function as a mixture of normal distribution functions, sum_m w_m Phi(u / s_m).

logistic_mixture.py [terms]     Prints the weights and scales in kernels/gaussian_moments.h, and their errors.

Needs NumPy and SciPy. Best uniform approximation by Remez's exchange: the error of 2 m - 1 free
parameters takes its largest size with alternating sign at 2 m points of u > 0. docs/kernels.md
says what it is for.
"""
import sys

import numpy as np
from scipy.optimize import least_squares
from scipy.special import erfc, expit, ndtr

U = np.concatenate([np.linspace(0, 60, 240_001)[1:], np.linspace(60, 400, 34_001)])


def split(p, terms):
    """Weights, the last from their sum 1, and scales."""
    w = p[: terms - 1]
    return np.append(w, 1 - w.sum()), np.exp(p[terms - 1:])


def upper_tail(u, w, s):
    return (w * erfc(u[:, None] / (s * np.sqrt(2)))).sum(1) / 2


def error(u, p, terms):
    """sigma - mixture, from their upper tails: no cancellation."""
    return upper_tail(u, *split(p, terms)) - expit(-u)


def start(terms):
    """Least squares from scales spread by the mixing density's quantiles."""
    u = np.linspace(0.02, 40, 3000)
    s = np.exp(np.linspace(np.log(0.75), np.log(4.5), terms))
    best = None
    for width in (0.3, 0.5, 0.8):
        w = np.exp(-((np.log(s) - np.log(1.6)) ** 2) / (2 * width**2))
        p = np.concatenate([(w / w.sum())[:-1], np.log(s)])
        fit = least_squares(lambda p: 1e6 * error(u, p, terms), p, method="lm",
                            xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=40_000)
        if best is None or fit.cost < best.cost:
            best = fit
    return best.x


def extrema(e, count):
    """One extreme point of each run of equal sign, the `count` neighbours with the largest ones."""
    runs = np.split(np.arange(len(U)), np.flatnonzero(np.diff(np.sign(e))) + 1)
    at = np.array([run[np.abs(e[run]).argmax()] for run in runs])
    first = max(range(len(at) - count + 1), key=lambda i: np.abs(e[at[i:i + count]]).min())
    return at[first:first + count]


def remez(p, terms, sweeps=60):
    """Newton's method for error(u_i) = (-1)^i E at the present extrema, then new extrema."""
    for _ in range(sweeps):
        e = error(U, p, terms)
        at = extrema(e, 2 * terms)
        if np.ptp(np.abs(e[at])) < 1e-3 * np.abs(e[at]).max():
            break
        sign = np.sign(e[at])
        level = np.abs(e[at]).mean()
        for _ in range(20):
            residual = error(U[at], p, terms) - sign * level
            jacobian = np.empty((2 * terms, 2 * terms))
            for k in range(2 * terms - 1):
                step = np.zeros_like(p)
                step[k] = 1e-5
                jacobian[:, k] = (error(U[at], p + step, terms) - error(U[at], p - step, terms)) / 2e-5
            jacobian[:, -1] = -sign
            move = np.linalg.solve(jacobian, -residual)
            shrink = min(1, 0.05 / np.abs(move[:-1]).max())
            p, level = p + shrink * move[:-1], level + shrink * move[-1]
            if shrink == 1 and np.abs(move[:-1]).max() < 1e-12:
                break
    return p


def main():
    terms = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    p = remez(start(terms), terms)
    w, s = split(p, terms)
    order = np.argsort(s)
    w, s = w[order], s[order]
    e = error(U, p, terms)
    density = (w / s * np.exp(-((U[:, None] / s) ** 2) / 2)).sum(1) / np.sqrt(2 * np.pi)
    slope = e + U * (expit(U) * expit(-U) - density)
    print("weights", ", ".join(f"{x:.17g}" for x in w))
    print("scales ", ", ".join(f"{x:.17g}" for x in s))
    print(f"all weights positive: {bool((w > 0).all())}, their sum - 1: {w.sum() - 1:.1e}")
    print(f"largest error of sigma {np.abs(e).max():.3e}, of silu {np.abs(U * e).max():.3e}, "
          f"of silu' {np.abs(slope).max():.3e}, of u silu' {np.abs(U * slope).max():.3e}")
    # softplus, sigma's integral: of a term u Phi(u / s) + s pdf(u / s), of |u| as their errors are even
    terms_of = U[:, None] * ndtr(U[:, None] / s) + s * np.exp(-((U[:, None] / s) ** 2) / 2) / np.sqrt(2 * np.pi)
    of_softplus = (w * terms_of).sum(1) - np.logaddexp(0, U)
    print(f"of softplus {np.abs(of_softplus).max():.3e}, of sigma' {np.abs(expit(U) * expit(-U) - density).max():.3e}, "
          f"of u sigma' {np.abs(U * (expit(U) * expit(-U) - density)).max():.3e}")
    # tanh(u) = 2 sigma(2 u) - 1
    of_tanh = 4 * (expit(U) * expit(-U) - density)
    print(f"of tanh {2 * np.abs(e).max():.3e}, of tanh' {np.abs(of_tanh).max():.3e}, "
          f"of u tanh' {np.abs(U / 2 * of_tanh).max():.3e}")


if __name__ == "__main__":
    main()
