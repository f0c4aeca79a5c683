"""The transformer of Figure 7: sizes, the sequences of a step, and where its weights start, as NumPy arrays."""

import numpy as np

LENGTH, WIDTH, HEADS, HIDDEN, BLOCKS = 29, 64, 4, 256, 2
SEQUENCES = 32


def sequences():
    """[SEQUENCES, LENGTH], each value of which is to be predicted from those up to it."""
    return np.random.default_rng(1).normal(size=(SEQUENCES, LENGTH)).astype(np.float32)


def initial_parameters(seed=0):
    """name -> array; weights are [fan_out, fan_in], N(0, 2 / fan_in) behind a ReLU, else N(0, 1 / fan_in)."""
    generator = np.random.default_rng(seed)
    parameters = {}

    def dense(name, fan_in, fan_out, gain=1):
        parameters[f"{name}.weight"] = generator.normal(0, np.sqrt(gain / fan_in), (fan_out, fan_in))
        parameters[f"{name}.bias"] = generator.normal(0, 0.1, fan_out)

    dense("embedding", 1, WIDTH)
    parameters["places"] = generator.normal(0, 1, (LENGTH, WIDTH))
    parameters["norm.weight"] = np.ones(WIDTH)
    parameters["norm.bias"] = np.zeros(WIDTH)
    for block in range(BLOCKS):
        dense(f"blocks.{block}.qkv", WIDTH, 3 * WIDTH)
        dense(f"blocks.{block}.mixed", WIDTH, WIDTH)
        dense(f"blocks.{block}.hidden", WIDTH, HIDDEN)
        dense(f"blocks.{block}.back", HIDDEN, WIDTH, gain=2)
    dense("last", WIDTH, 1)
    return {name: value.astype(np.float32) for name, value in parameters.items()}
