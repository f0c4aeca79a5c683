#!/usr/bin/env python3
"""Writes the reference arrays under tests/data/ntk, which tests/ntk/peers.cpp compares with. All in double.

    .venv/bin/python ntk_reference.py --with torch                    # empirical.json, <net>.safetensors
    .venv-nt/bin/python ntk_reference.py --with neural-tangents       # infinite.json; checks empirical.json as well

neural-tangents has neither SiLU nor tanh of infinite width, and no LayerNorm there after an activation or with gain and bias: those have no peer.
"""

import argparse
import json
import re
import struct
from pathlib import Path

import numpy as np

import ntk_common

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "data" / "ntk"
SIGMA_W2, SIGMA_B2 = 2.0, 0.01
FEATURES = 3


def inputs():
    """[7, 3]: a pair that nearly agrees, a pair that does, an opposite, a zero row and a large one."""
    a, b, direction = np.random.default_rng(7).normal(size=(3, FEATURES))
    return np.stack([a, a + 1e-3 * direction, b, b, -a, np.zeros(FEATURES), 200 * direction])


def parse(spec):
    """The words of a SPEC: (name, {option: value}); dense has the option `width`, residual `words`."""
    words = re.findall(r"(\w+)(?:\(((?:[^()]|\([^()]*\))*)\))?", spec)
    layers = []
    for name, options in words:
        if name == "dense":
            layers.append((name, {"width": int(options)}))
        elif name == "residual":
            layers.append((name, {"words": parse(options)}))
        else:
            pairs = (pair.split("=") for pair in options.split(",") if pair)
            layers.append((name, {key.strip(): float(value) for key, value in pairs}))
    return layers


def write_json(path, content):
    # Shortest digits that read back to the same double; one row of an array a line.
    text = json.dumps(content, indent=1)
    text = re.sub(r"\[\s+([-\d][^\[\]{}]*?)\s+\]", lambda row: "[" + re.sub(r"\s+", " ", row[1]) + "]", text)
    path.write_text(text + "\n")


def write_safetensors(path, tensors):
    """https://huggingface.co/docs/safetensors: length of the header, header, bytes."""
    header, at = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in tensors.values()))


def read_safetensors(path):
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:begin]).items():
        first, last = (begin + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[first:last]).reshape(entry["shape"])
    return tensors


# Finite nets ---------------------------------------------------------------------------------------------------------

EMPIRICAL = {
    "relu": "dense(16) relu dense(16) relu dense(1)",
    "ln_before": "dense(16) layernorm relu dense(8) layernorm relu dense(2)",
    "ln_after": "dense(16) relu layernorm dense(16) gelu layernorm dense(2)",
    "gelu_silu": "dense(8) gelu dense(12) layernorm silu dense(1)",
    "no_affine": "dense(8) silu layernorm(affine=0, eps=0.001) dense(8) gelu dense(2)",
    "narrow": "dense(1) silu dense(5) relu dense(3)",
    "leaky_tanh": "dense(8) leakyrelu(slope=0.2) dense(6) layernorm tanh dense(5) leakyrelu dense(2)",
    "residual": "dense(8) residual(layernorm relu dense(8)) layernorm residual(dense(5) gelu dense(8)) dense(2)",
}


def torch_net(words, width=FEATURES):
    from torch import nn

    class Residual(nn.Sequential):
        def forward(self, x):
            return x + super().forward(x)

    modules = []
    for name, options in words:
        if name == "residual":
            modules.append(Residual(*torch_net(options["words"], width)))
        elif name == "dense":
            modules.append(nn.Linear(width, options["width"]))
            width = options["width"]
        elif name == "layernorm":
            affine = bool(options.get("affine", 1))
            modules.append(nn.LayerNorm(width, eps=options.get("eps", 1e-5), elementwise_affine=affine))
        else:
            kinds = {"relu": nn.ReLU, "leakyrelu": nn.LeakyReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}
            modules.append(kinds[name](*options.values()))
    return nn.Sequential(*modules).double()


def draw(net, seed):
    """Weights as keel draws them, and gains and biases of LayerNorm away from 1 and 0."""
    import torch
    from torch import nn

    generator = np.random.default_rng(seed)
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, nn.Linear):
                stds = (SIGMA_W2 / module.in_features) ** 0.5, SIGMA_B2**0.5
                means = 0, 0
            elif isinstance(module, nn.LayerNorm) and module.elementwise_affine:
                stds, means = (0.2, 0.2), (1, 0)
            else:
                continue
            for parameter, mean, std in zip((module.weight, module.bias), means, stds):
                parameter.copy_(torch.from_numpy(generator.normal(mean, std, parameter.shape)))


def empirical():
    import torch
    from torch.func import functional_call, jacrev, vmap

    torch.set_num_threads(1)
    x = torch.from_numpy(inputs())
    cases = []
    for seed, (name, spec) in enumerate(EMPIRICAL.items()):
        net = torch_net(parse(spec))
        draw(net, seed)
        parameters = {key: value.detach() for key, value in net.named_parameters()}
        write_safetensors(FOLDER / f"{name}.safetensors", {key: value.numpy() for key, value in parameters.items()})
        jacobians = vmap(jacrev(lambda p, row: functional_call(net, p, (row,))), (None, 0))(parameters, x)
        blocks = {}  # [n, n, o, o] of each parameter
        for key, jacobian in jacobians.items():
            flat = jacobian.flatten(2)
            blocks[key] = torch.einsum("nop,mqp->nmoq", flat, flat)
        scales = {key: ntk_scale2(net, key) for key in blocks}
        cases.append({
            "name": name,
            "net": spec,
            "outputs": net(x).tolist(),
            "standard": sum(blocks.values()).tolist(),
            "ntk": sum(scales[key] * block for key, block in blocks.items()).tolist(),
            # Trace over the outputs / their number, of the standard parameterisation.
            "blocks": {key: block.diagonal(dim1=2, dim2=3).mean(-1).tolist() for key, block in blocks.items()},
        })
    write_json(FOLDER / "empirical.json", {
        "source": f"torch.func of PyTorch {torch.__version__.split('+')[0]}, float64",
        "script": "bench/peers/ntk_reference.py",
        "sigma_w2": SIGMA_W2,
        "sigma_b2": SIGMA_B2,
        "inputs": x.tolist(),
        "cases": cases,
    })


def ntk_scale2(net, key):
    """Of z = sqrt(sigma_w2 / fan_in) W a + sqrt(sigma_b2) b: d z / d W over that of z = W a + b, squared."""
    from torch import nn

    layer, kind = key.rsplit(".", 1)
    module = net.get_submodule(layer)
    if not isinstance(module, nn.Linear):
        return 1
    return SIGMA_W2 / module.in_features if kind == "weight" else SIGMA_B2


# Infinite nets -------------------------------------------------------------------------------------------------------

INFINITE = [
    "dense(8) relu dense(1)",
    "dense(16) relu dense(8) relu dense(1)",
    "dense(8) gelu dense(1)",
    "dense(16) gelu dense(8) relu dense(1)",
    "dense(16) leakyrelu(slope=0.2) dense(8) leakyrelu dense(1)",
    "dense(16) layernorm(affine=0, eps=0) relu dense(8) relu dense(1)",
    "dense(16) relu dense(8) layernorm(affine=0) relu dense(1)",
    "dense(16) layernorm(affine=0) gelu dense(8) layernorm(affine=0, eps=0.01) gelu dense(2)",
    "dense(16) residual(relu dense(16)) relu dense(1)",
    "dense(8) residual(layernorm(affine=0) relu dense(16) relu dense(8)) layernorm(affine=0) relu dense(1)",
]


def infinite_net(words, parameterisation, first_sigma_w2):
    """neural_tangents has LayerNorm before an activation, without gain and bias; neither silu, tanh nor LN after one."""
    from neural_tangents import stax

    layers = []
    for position, (name, options) in enumerate(words):
        if name == "residual":
            within = infinite_net(options["words"], parameterisation, SIGMA_W2)
            layers += [stax.FanOut(2), stax.parallel(stax.Identity(), within), stax.FanInSum()]
        elif name == "dense":
            sigma_w2 = first_sigma_w2 if position == 0 else SIGMA_W2
            layers.append(stax.Dense(options["width"], W_std=sigma_w2**0.5, b_std=SIGMA_B2**0.5,
                                     parameterization=parameterisation))
        elif name == "layernorm":
            layers.append(stax.LayerNorm(eps=options.get("eps", 1e-5)))
        else:
            kinds = {"relu": stax.Relu, "gelu": stax.Gelu, "leakyrelu": lambda: stax.LeakyRelu(options.get("slope", 0.01))}
            layers.append(kinds[name]())
    return stax.serial(*layers)


def infinite():
    import jax
    import neural_tangents

    # Without the opposite: its entry is what rounding leaves of 1e11 - 1e11.
    far = np.delete(inputs(), 4, axis=0) * 1e6
    cases = []
    for spec in INFINITE:
        for parameterisation in ("ntk", "standard"):
            for first_sigma_w2 in (SIGMA_W2, 1.0):
                kernel = infinite_net(parse(spec), parameterisation, first_sigma_w2)[2]
                case = {"net": spec, "parameterisation": parameterisation, "first_sigma_w2": first_sigma_w2}
                # The closed form of gelu cancels for large inputs: nothing to compare with.
                for suffix, x in (("", inputs()), *([] if "gelu" in spec else [("_far", far)])):
                    result = kernel(x, None, ("nngp", "ntk"))
                    case |= {f"nngp{suffix}": result.nngp.tolist(), f"ntk{suffix}": result.ntk.tolist()}
                cases.append(case)
    write_json(FOLDER / "infinite.json", {
        "source": f"neural_tangents {neural_tangents.__version__}, JAX {jax.__version__}, float64",
        "script": "bench/peers/ntk_reference.py",
        "sigma_w2": SIGMA_W2,
        "sigma_b2": SIGMA_B2,
        "inputs": inputs().tolist(),
        "inputs_far": far.tolist(),
        "cases": cases,
    })


def check_empirical():
    """PyTorch's arrays against nt.empirical_ntk_fn of the same weights."""
    import jax
    import jax.numpy as jnp

    nt = ntk_common.import_neural_tangents()
    stored = json.loads((FOLDER / "empirical.json").read_text())
    for case in stored["cases"]:
        layers = parse(case["net"])

        def apply(parameters, x, words=layers, ahead=""):
            for position, (name, options) in enumerate(words):
                weight, bias = (parameters.get(f"{ahead}{position}.{kind}") for kind in ("weight", "bias"))
                if name == "residual":
                    x = x + apply(parameters, x, options["words"], f"{ahead}{position}.")
                elif name == "dense":
                    x = x @ weight.T + bias
                elif name == "layernorm":
                    x = x - x.mean(-1, keepdims=True)
                    x = x / jnp.sqrt(jnp.square(x).mean(-1, keepdims=True) + options.get("eps", 1e-5))
                    x = x if weight is None else x * weight + bias
                else:
                    x = {"relu": jax.nn.relu, "silu": jax.nn.silu, "tanh": jnp.tanh,
                         "leakyrelu": lambda z: jax.nn.leaky_relu(z, options.get("slope", 0.01)),
                         "gelu": lambda z: jax.nn.gelu(z, approximate=False)}[name](x)
            return x

        stored_parameters = read_safetensors(FOLDER / f"{case['name']}.safetensors")
        parameters = {key: jnp.asarray(value) for key, value in stored_parameters.items()}
        kernel = nt.empirical_ntk_fn(apply, trace_axes=(), implementation=nt.NtkImplementation.STRUCTURED_DERIVATIVES)
        got, wanted = np.array(kernel(inputs(), None, parameters)), np.array(case["standard"])
        size = np.sqrt(np.abs(np.einsum("nnoo->n", wanted)))
        error = (np.abs(got - wanted) / np.multiply.outer(size, size)[..., None, None]).max()
        print(f"{case['name']}: neural_tangents and PyTorch differ by {error:.1e}")
        assert error < 1e-12


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--with", dest="library", choices=["torch", "neural-tangents"], required=True)
    library = parser.parse_args().library
    FOLDER.mkdir(parents=True, exist_ok=True)
    if library == "torch":
        empirical()
        return
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    infinite()
    check_empirical()


if __name__ == "__main__":
    main()
