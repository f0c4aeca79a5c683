"""Figure 1 in JAX: one jitted lax.scan over the epochs per architecture, its members batched or one after another."""

import os
import statistics
import time
from functools import partial

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # on a GPU that is shared with keel_bench
import jax
import jax.numpy as jnp
import numpy as np

import common


def versions():
    found = {"jax": jax.__version__}
    if jax.default_backend() == "gpu":
        found["gpu"] = jax.devices()[0].device_kind
    return found


def set_up(threads, device):
    if device == "cuda":
        jax.config.update("jax_platforms", "cuda")
        try:
            jax.devices()
        except Exception as problem:  # of many kinds, some without words
            raise SystemExit("this JAX sees no GPU") from problem
        jax.config.update("jax_default_matmul_precision", "highest")  # no TF32, as in PyTorch
        return
    jax.config.update("jax_platforms", "cpu")
    common.limit_cpus(threads)
    # XLA runs the batched products of one CPU device on one thread, so the architectures get a device each.
    jax.config.update("jax_num_cpu_devices", 1 if threads == 1 else len(common.ARCHITECTURES))


def layer_norm(z, gain, shift):
    centred = z - z.mean(-1, keepdims=True)
    variance = jnp.square(centred).mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + common.LAYER_NORM_EPS) * gain + shift


def predict(parameters, x):
    hidden = x * parameters["weight1"] + parameters["bias1"]  # a product with fan_in 1
    for layer in (1, 2):
        if layer == 2:
            hidden = hidden @ parameters["weight2"] + parameters["bias2"]
        if f"gain{layer}" in parameters:
            hidden = layer_norm(hidden, parameters[f"gain{layer}"], parameters[f"shift{layer}"])
        hidden = jax.nn.relu(hidden)
    return hidden @ parameters["weight3"] + parameters["bias3"]


def mse(parameters, x, y):
    return jnp.square(predict(parameters, x) - y).mean()


def adam_update(parameters, first, second, gradients, step):
    """`step` counts from 0."""
    step_size = common.LEARNING_RATE / (1 - common.BETA1 ** (step + 1))
    root_correction = jax.lax.rsqrt(1 - common.BETA2 ** (step + 1))
    first = jax.tree.map(lambda m, g: m + (1 - common.BETA1) * (g - m), first, gradients)
    second = jax.tree.map(lambda v, g: v + (1 - common.BETA2) * (g * g - v), second, gradients)
    parameters = jax.tree.map(
        lambda p, m, v: p - step_size * m / (jnp.sqrt(v) * root_correction + common.ADAM_EPS),
        parameters, first, second)
    return parameters, first, second


def adam_step(state, epoch, x, y):
    """One epoch of one net; `epoch` counts from 0."""
    parameters, first, second = state
    return adam_update(parameters, first, second, jax.grad(mse)(parameters, x, y), epoch)


def scan_epochs(step, state, epochs):
    counter = jnp.arange(epochs, dtype=jnp.float32)
    return jax.lax.scan(lambda state, epoch: (step(state, epoch), None), state, counter)[0]


@partial(jax.jit, static_argnames="epochs", donate_argnames="state")
def train_batched(state, x, y, epochs):
    """Every operation works on all members at once."""
    step = jax.vmap(adam_step, in_axes=(0, None, None, 0))
    return scan_epochs(lambda state, epoch: step(state, epoch, x, y), state, epochs)


@partial(jax.jit, static_argnames="epochs", donate_argnames="state")
def train_in_turn(state, x, y, epochs):
    """One member is trained to the end before the next starts, so that its state stays in the cache."""
    def train_member(member):
        member_state, member_y = member
        return scan_epochs(lambda state, epoch: adam_step(state, epoch, x, member_y), member_state, epochs)
    return jax.lax.map(train_member, (state, y))


def initial_parameters(seed, norms):
    parameters = {}
    for layer, (weight, bias) in enumerate(common.initial_dense_layers(seed), start=1):
        parameters |= {f"weight{layer}": weight, f"bias{layer}": bias}
    for layer, normalised in enumerate(norms, start=1):
        if normalised:
            parameters[f"gain{layer}"] = np.ones(common.WIDTH, np.float32)
            parameters[f"shift{layer}"] = np.zeros(common.WIDTH, np.float32)
    return parameters


def initial_state(members, norms):
    nets = [initial_parameters(member.seed, norms) for member in members]
    parameters = {name: np.stack([net[name] for net in nets]) for name in nets[0]}
    first, second = ({name: np.zeros_like(value) for name, value in parameters.items()} for _ in range(2))
    return parameters, first, second  # each an array of its own: all are donated


def run(train, members, epochs, device):
    devices = jax.devices(device)
    y = np.stack([common.targets(member) for member in members])
    arguments = [
        jax.device_put((initial_state(members, norms), common.inputs(), y), devices[index % len(devices)])
        for index, norms in enumerate(common.ARCHITECTURES.values())
    ]
    jax.block_until_ready(arguments)

    start = time.perf_counter()
    trainings = [train.lower(*argument, epochs).compile() for argument in arguments]
    compile_seconds = time.perf_counter() - start
    # The first run of each also loads it; a copy, as it takes the memory of its state.
    jax.block_until_ready([training(*jax.tree.map(jnp.copy, argument)) for training, argument in zip(trainings, arguments)])

    times = []
    for _ in range(3 if device == "cuda" else 1):
        copies = jax.block_until_ready([jax.tree.map(jnp.copy, argument) for argument in arguments])
        start = time.perf_counter()
        states = jax.block_until_ready([training(*copy) for training, copy in zip(trainings, copies)])
        times.append(time.perf_counter() - start)
    seconds = statistics.median(times)

    mean_loss = jax.jit(lambda parameters, x, y: jax.vmap(mse, in_axes=(0, None, 0))(parameters, x, y).mean())
    final_mse = {
        architecture: float(mean_loss(state[0], x, y))
        for architecture, state, (_, x, y) in zip(common.ARCHITECTURES, states, arguments)
    }
    return {"seconds": seconds, "compile_seconds": compile_seconds, "final_mse": final_mse}
