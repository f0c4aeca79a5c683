"""Theta of dense(128) PHI dense(128) PHI dense(1) at infinite width, to ten digits and slowly: Gauss and Legendre's rule on either side of
every kink. What the infinite-width peers are held to."""

import math

import numpy as np

WEIGHT_VARIANCE, BIAS_VARIANCE, EPS = 2.0, 0.01, 1e-5
FARTHEST, POINTS = 9, 80  # standard deviations; points of a rule


def distribution(x):
    return np.array([math.erfc(-value / math.sqrt(2)) / 2 for value in np.ravel(x)]).reshape(np.shape(x))


def density(x):
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def logistic(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {  # and their derivatives
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    "gelu": (lambda x: x * distribution(x), lambda x: distribution(x) + x * density(x)),
    "silu": (lambda x: x * logistic(x), lambda x: logistic(x) * (1 + x * logistic(-x))),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), lambda x: np.exp(np.minimum(x, 0))),
}


def rule(kink):
    """Points and weights of the integral over a standard normal number, of what may have a kink there."""
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    points, of_points = [], []
    for low, high in ((-FARTHEST, kink), (kink, FARTHEST)):
        points.append((high - low) / 2 * nodes + (low + high) / 2)
        of_points.append((high - low) / 2 * weights * density(points[-1]))
    return np.concatenate(points), np.concatenate(of_points)


def moment(f, q1, q2, k):
    """E[f(u) f(u')], (u, u') normal of variances q1, q2 and covariance k."""
    along = k / math.sqrt(q1)
    across = math.sqrt(max(q2 - along**2, 0))
    if across < 1e-7 * math.sqrt(q2):
        points, weights = rule(0)
        return float(np.sum(weights * f(math.sqrt(q1) * points) * f(along * points)))
    total = 0
    for z, weight in zip(*rule(0)):
        points, weights = rule(np.clip(-along * z / across, -FARTHEST, FARTHEST))
        total += weight * f(math.sqrt(q1) * z) * np.sum(weights * f(along * z + across * points))
    return float(total)


def theta(x, y, activation, layer_norm):
    phi, slope = ACTIVATIONS[activation]

    def dense(k):
        return WEIGHT_VARIANCE * k + BIAS_VARIANCE

    k, xx, yy = (dense(np.dot(a, b) / len(a)) for a, b in ((x, y), (x, x), (y, y)))
    t = k
    for _ in range(2):
        if layer_norm:
            size = math.sqrt((xx + EPS) * (yy + EPS))
            k, t, xx, yy = k / size, t / size, xx / (xx + EPS), yy / (yy + EPS)
        value = dense(moment(phi, xx, yy, k))
        t = WEIGHT_VARIANCE * t * moment(slope, xx, yy, k) + value
        k, xx, yy = value, dense(moment(phi, xx, xx, xx)), dense(moment(phi, yy, yy, yy))
    return t


def error_of(kernel, x, activation, layer_norm, n=4):
    """The largest error in the first n x n of a Theta(x, x) [., .], of the root of the two diagonal entries."""
    x = np.asarray(x[:n], float)
    wanted = np.array([[theta(a, b, activation, layer_norm) for b in x] for a in x])
    size = np.sqrt(np.outer(wanted.diagonal(), wanted.diagonal()))
    return float(np.max(np.abs(np.asarray(kernel[:n, :n]) - wanted) / size))
