#!/usr/bin/env python3
"""Times a training step of Figure 7's transformer in JAX: one jitted lax.scan over many steps."""

import time
from functools import partial

import fig1_jax
import jax
import jax.numpy as jnp

import common
import transformer_common as sizes


def dense(parameters, name, x):
    return x @ parameters[f"{name}.weight"].T + parameters[f"{name}.bias"]


def predict(parameters, x):
    n, length = x.shape
    head_width = sizes.WIDTH // sizes.HEADS
    h = dense(parameters, "embedding", x[..., None]) + parameters["places"]
    h = fig1_jax.layer_norm(h, parameters["norm.weight"], parameters["norm.bias"])
    for block in range(sizes.BLOCKS):
        name = f"blocks.{block}"
        queries, keys, values = jnp.split(dense(parameters, f"{name}.qkv", h), 3, axis=-1)
        heads = [part.reshape(n, length, sizes.HEADS, head_width) for part in (queries, keys, values)]
        mixed = jax.nn.dot_product_attention(*heads, is_causal=True).reshape(n, length, sizes.WIDTH)
        h = h + dense(parameters, f"{name}.mixed", mixed)
        h = h + dense(parameters, f"{name}.back", jax.nn.relu(dense(parameters, f"{name}.hidden", h)))
    return dense(parameters, "last", h)[..., 0]


def mse(parameters, x):
    return jnp.square(predict(parameters, x) - x).mean()


def adam_step(state, step, x):
    """One step; `step` counts from 0. Returns the loss before it too."""
    parameters, first, second = state
    loss, gradients = jax.value_and_grad(mse)(parameters, x)
    return fig1_jax.adam_update(parameters, first, second, gradients, step), loss


@partial(jax.jit, static_argnames="steps", donate_argnames="state")
def train(state, x, steps):
    counter = jnp.arange(steps, dtype=jnp.float32)
    return jax.lax.scan(lambda state, step: adam_step(state, step, x), state, counter)


def main():
    parser = common.argument_parser(__doc__)
    parser.add_argument("--steps", type=int, default=101, help="a timed run")
    arguments = parser.parse_args()
    fig1_jax.set_up(arguments.threads, arguments.device)
    parameters = sizes.initial_parameters()
    start = (parameters, *({name: 0 * value for name, value in parameters.items()} for _ in range(2)))
    placed = jax.device_put((start, sizes.sequences()), jax.devices(arguments.device)[0])
    begin = time.perf_counter()
    training = train.lower(*placed, arguments.steps).compile()
    compile_seconds = time.perf_counter() - begin

    state, x = placed
    copies = []

    def copy_state():  # each run is given one, as it takes the memory of its state
        copies.append(jax.block_until_ready(jax.tree.map(jnp.copy, state)))

    def run():
        _, losses = training(copies.pop(), x)
        return jax.block_until_ready(losses)

    copy_state()
    losses = run()
    assert losses[-1] < losses[0] / 10, (losses[0], losses[-1])
    timing = {name: value / arguments.steps for name, value in common.measure(run, seconds=2, prepare=copy_state).items()}
    common.print_result({
        "peer": "jax",
        "versions": fig1_jax.versions(),
        "device": arguments.device,
        "threads": arguments.threads,
        **timing,
        "compile_seconds": compile_seconds,
        "first_loss": float(losses[0]),
        "loss": float(losses[-1]),
    })


if __name__ == "__main__":
    main()
