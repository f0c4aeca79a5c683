"""Figure 1 in PyTorch: eager, one net after another, and all members of an architecture in one compiled step."""

import time

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap

import common
import torch_net

WARM_UP_EPOCHS = 10
versions, set_up, synchronize = torch_net.versions, torch_net.set_up, torch_net.synchronize



def new_net(architecture, member, device):
    net = torch_net.relu_net(common.ARCHITECTURES[architecture])
    return torch_net.initialise(net, member.seed).to(device)


def mean_loss(nets, x, targets):
    with torch.no_grad():
        return float(np.mean([nn.functional.mse_loss(net(x), y).item() for net, y in zip(nets, targets)]))


def load_data(members, device):
    targets = np.stack([common.targets(member) for member in members])
    return torch.from_numpy(common.inputs()).to(device), torch.from_numpy(targets).to(device)


def run_eager(members, epochs, device, fused_adam=False):
    x, targets = load_data(members, device)

    def train_nets(nets, epochs):
        """Returns the seconds it took."""
        start = time.perf_counter()
        for net, y in zip(nets, targets):
            torch_net.train(net, torch_net.adam(net.parameters(), fused=fused_adam), x, y, epochs)
        synchronize(device)
        return time.perf_counter() - start

    train_nets([new_net("ln_every", members[0], device)], WARM_UP_EPOCHS)
    seconds = 0.0
    final_mse = {}
    for architecture in common.ARCHITECTURES:
        nets = [new_net(architecture, member, device) for member in members]
        seconds += train_nets(nets, epochs)
        final_mse[architecture] = mean_loss(nets, x, targets)
    return {"seconds": seconds, "compile_seconds": 0.0, "final_mse": final_mse}


class StackedTraining:
    """All members of one architecture: stacked parameters, Adam state, and one compiled epoch in place."""

    def __init__(self, architecture, members, device):
        nets = [new_net(architecture, member, device) for member in members]
        self.skeleton = torch_net.relu_net(common.ARCHITECTURES[architecture]).to("meta")
        self.x, self.targets = load_data(members, device)
        stacked, _ = stack_module_state(nets)
        self.parameters = {name: tensor.detach() for name, tensor in stacked.items()}
        self.first = {name: torch.zeros_like(tensor) for name, tensor in self.parameters.items()}
        self.second = {name: torch.zeros_like(tensor) for name, tensor in self.parameters.items()}
        self.step = torch.zeros((), device=device)
        self.device = device
        self.epoch = torch.compile(self.eager_epoch, fullgraph=True, dynamic=False)

    def loss(self, parameters, y):
        return nn.functional.mse_loss(functional_call(self.skeleton, parameters, self.x), y)

    def eager_epoch(self):
        gradients = vmap(grad(self.loss))(self.parameters, self.targets)
        self.step += 1
        step_size = common.LEARNING_RATE / (1 - common.BETA1**self.step)
        root_correction = torch.rsqrt(1 - common.BETA2**self.step)
        for name, gradient in gradients.items():
            first, second = self.first[name], self.second[name]
            first.lerp_(gradient, 1 - common.BETA1)
            second.lerp_(gradient.square(), 1 - common.BETA2)
            self.parameters[name] -= step_size * first / (second.sqrt() * root_correction + common.ADAM_EPS)

    def state(self):
        return [self.step, *self.parameters.values(), *self.first.values(), *self.second.values()]

    def prepare(self):
        """Compiles the epoch (on the GPU also captures it as a CUDA graph) and puts the state back."""
        initial = [tensor.clone() for tensor in self.state()]
        with torch.no_grad():
            self.epoch()
            if self.device == "cuda":
                self.capture()
                self.epoch()  # the first replay takes the graph to the device
            for tensor, value in zip(self.state(), initial):
                tensor.copy_(value)
        synchronize(self.device)

    def capture(self):
        compiled = self.epoch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            compiled()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            compiled()
        self.epoch = graph.replay

    @torch.no_grad()
    def train(self, epochs):
        for _ in range(epochs):
            self.epoch()
        synchronize(self.device)

    @torch.no_grad()
    def final_mse(self):
        return vmap(self.loss)(self.parameters, self.targets).mean().item()


def run_compiled(members, epochs, device):
    seconds = compile_seconds = 0.0
    final_mse = {}
    for architecture in common.ARCHITECTURES:
        training = StackedTraining(architecture, members, device)
        start = time.perf_counter()
        training.prepare()
        compiled = time.perf_counter()
        training.train(epochs)
        compile_seconds += compiled - start
        seconds += time.perf_counter() - compiled
        final_mse[architecture] = training.final_mse()
    return {"seconds": seconds, "compile_seconds": compile_seconds, "final_mse": final_mse}
