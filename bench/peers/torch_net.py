"""The net of Figure 1 as a PyTorch module."""

import torch
from torch import nn

import common


def versions():
    return {"torch": torch.__version__}


def set_up(threads, device):
    """Float32 as it is, on either device. Raises SystemExit where PyTorch sees no GPU and one is asked for."""
    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("this PyTorch sees no GPU")
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    torch.backends.cuda.matmul.allow_tf32 = False


def waiting_for(device):
    """What common.measure needs as `synchronize`."""
    return torch.cuda.synchronize if device == "cuda" else None


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def free_gigabytes(device):
    return torch.cuda.mem_get_info()[0] / 1e9 if device == "cuda" else common.free_gigabytes()


def print_cases(peer, arguments, cases):
    """The result of a script that times several cases: {name: seconds}."""
    common.print_result({
        "peer": peer,
        "versions": versions(),
        "device": arguments.device,
        "threads": arguments.threads,
        "cases": cases,
    })


def relu_net(norms):
    layers, fan_in = [], 1
    for normalised in norms:
        layers.append(nn.Linear(fan_in, common.WIDTH))
        if normalised:
            layers.append(nn.LayerNorm(common.WIDTH, eps=common.LAYER_NORM_EPS))
        layers.append(nn.ReLU())
        fan_in = common.WIDTH
    return nn.Sequential(*layers, nn.Linear(fan_in, 1))


@torch.no_grad()
def initialise(net, seed):
    """Gives the dense layers the start that every peer uses; LayerNorm already has gain 1 and bias 0."""
    dense_layers = [layer for layer in net if isinstance(layer, nn.Linear)]
    for layer, (weight, bias) in zip(dense_layers, common.initial_dense_layers(seed)):
        layer.weight.copy_(torch.from_numpy(weight.T))
        layer.bias.copy_(torch.from_numpy(bias))
    return net


def adam(parameters, fused):
    """As it comes where not fused: on a GPU PyTorch then picks the form for lists of tensors, but not where fused is False."""
    return torch.optim.Adam(parameters, lr=common.LEARNING_RATE, fused=True if fused else None)


def train(net, optimizer, x, y, epochs):
    """Full-batch training; returns the loss before the last step."""
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    return loss
