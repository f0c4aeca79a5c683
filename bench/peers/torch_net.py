"""The net of Figure 1 as a PyTorch module."""

import torch
from torch import nn

import common


def versions():
    return {"torch": torch.__version__}


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


def adam(net, fused):
    return torch.optim.Adam(net.parameters(), lr=common.LEARNING_RATE, fused=fused)


def train(net, optimizer, x, y, epochs):
    """Full-batch training; returns the loss before the last step."""
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    return loss
