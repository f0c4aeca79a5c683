#!/usr/bin/env python3
"""The polynomial of kernels/math.h for the tail of the normal distribution: its coefficients and its error.

P(N(0, 1) > x) = exp(-x^2/2) t G(t), t = 1 / (1 + x/scale), for 0 <= x <= 13.4, beyond which exp(-x^2/2) is 0 in float32. G is
fitted so that its largest relative error is small, by least squares with weights that grow where the error is large (Lawson 1961).
"""
import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import erfcx

FARTHEST, DEGREE, SCALE = 13.4, 8, 3.8


def fit(scale, degree):
    """(the largest relative error, G as a polynomial of t)"""
    nearest = 1 / (1 + FARTHEST / scale)
    t = (1 + nearest) / 2 - (1 - nearest) / 2 * np.cos(np.linspace(0, np.pi, 2001))
    wanted = erfcx(scale * (1 / t - 1) / np.sqrt(2)) / (2 * t)
    basis = np.polynomial.chebyshev.chebvander((2 * t - 1 - nearest) / (1 - nearest), degree) / wanted[:, None]
    weights, best = np.ones_like(t), (np.inf, None)
    for _ in range(200):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(basis * root[:, None], root, rcond=None)[0]
        error = np.abs(basis @ found - 1)
        best = min(best, (error.max(), tuple(found)))
        weights *= error + 1e-12
        weights /= weights.sum()
    return best[0], Chebyshev(best[1], domain=(nearest, 1)).convert(kind=Polynomial)


def main():
    for scale in (3.0, 3.4, 3.6, 3.7, SCALE, 3.9, 4.0, 4.4, 5.0):
        print(f"scale {scale}: largest relative error {fit(scale, DEGREE)[0]:.2e}")
    for degree in (DEGREE - 1, DEGREE + 1):
        print(f"scale {SCALE}, degree {degree}: {fit(SCALE, degree)[0]:.2e}")
    scale = 1 / float(np.float32(1 / SCALE))  # as the kernel has it
    error, polynomial = fit(scale, DEGREE)
    print(f"1/scale {1 / scale:.8g}, error {error:.2e}; coefficients, highest first:")
    for coefficient in polynomial.coef[::-1]:
        print(f"  {coefficient:.10f}")


if __name__ == "__main__":
    main()
