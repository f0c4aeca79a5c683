"""The net of Figure 1 as a PyTorch module."""

import statistics
import sys
import time

import torch
from torch import nn

import common


def versions():
    """To be asked once the work is done: of a GPU's software and its name where one was used."""
    found = {"torch": torch.__version__}
    if torch.cuda.is_initialized():
        found |= {"cuda": torch.version.cuda, "gpu": torch.cuda.get_device_name()}
        if "triton" in sys.modules:  # torch.compile's kernels are Triton's, too
            found["triton"] = getattr(sys.modules["triton"], "__version__", "unknown")
    return found


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


def gpu_seconds(work, repeats=20):
    """Seconds of the GPU for a call: the host queues some while the GPU is kept waiting, so that what Python takes does not count.
    bench/gpu_clock.cu measures the same way."""
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(5):
        work()
    host = (time.perf_counter() - start) / 5
    torch.cuda.synchronize()
    calls = max(1, min(100, int(5e-3 / host)))  # times kernels a call: less than a launch queue holds
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(repeats):
        torch.cuda._sleep(int(2e9 * (1.5 * host * calls + 2e-4)))  # in cycles
        begin.record()
        for _ in range(calls):
            work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3 / calls)
    return statistics.median(times)


def record(step, optimizer):
    """step(), which gives a loss, as a CUDA graph: (what replays it, the loss of the latest replay)."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    optimizer.zero_grad()  # those of the graph are its own
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step().detach()
    return graph.replay, loss


def time_recorded(step, optimizer, check=lambda replay, loss: None):
    """The seconds of a replay of step(), once check(replay, loss) has run; or why there are none."""
    try:
        replay, loss = record(step, optimizer)
        check(replay, loss)
        return common.measure(replay, torch.cuda.synchronize)
    except Exception as problem:  # of many kinds; the end of a recording may hide why it failed
        cause = problem.__context__ or problem
        return {"problem": f"{type(cause).__name__}: {cause}".splitlines()[0]}


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def free_gigabytes(device):
    return torch.cuda.mem_get_info()[0] / 1e9 if device == "cuda" else common.free_gigabytes()


class Cases:
    """Seconds of several pieces of work by name: of the host's clock, as keel_bench's rows are, and of a GPU's own beside it, which
    is less where Python is slower than the kernels. Each is to be held against the same clock of keel's."""

    def __init__(self, peer, arguments):
        self.peer, self.arguments, self.device = peer, arguments, arguments.device
        self.by_host, self.by_gpu = {}, {}

    def time(self, name, work):
        self.by_host[name] = common.measure(work, waiting_for(self.arguments.device))["seconds"]
        if self.arguments.device == "cuda":
            self.by_gpu[name] = gpu_seconds(work)

    def print(self):
        common.print_result({
            "peer": self.peer,
            "versions": versions(),
            "device": self.arguments.device,
            "threads": self.arguments.threads,
            "cases": self.by_host,
            "gpu_cases": self.by_gpu,
        })


def cases_of_shapes(description, peers, shapes):
    """For a script that times kernels on inputs of some shapes: (the peer asked for, its Cases, [(text, rows, columns)])."""
    parser = common.argument_parser(description)
    parser.add_argument("--peer", choices=peers, default="eager")
    parser.add_argument("--shapes", default=shapes, help="rows x columns, separated by commas")
    arguments = parser.parse_args()
    set_up(arguments.threads, arguments.device)
    if arguments.device == "cpu":
        common.keep_freed_memory()
    sizes = [(text, *map(int, text.split("x"))) for text in arguments.shapes.split(",")]
    return arguments.peer, Cases(arguments.peer, arguments), sizes


def check_passes(mine, d_out, wanted, tolerance, where=slice(None)):
    """What mine.forward() and mine.backward(d_out) give, `where` alone, against `wanted`, in double."""
    for name, got, reference in zip(("out", "d_x", "d_gain", "d_bias"), [mine.forward(), *mine.backward(d_out)], wanted):
        error = (got - reference)[where].abs().max().item() / reference.abs().max().item()
        assert error < tolerance, f"{name} is off by {error}"


class Recorded:
    """By autograd: `function` of x and the parameters."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments
        self.leaves = [tensor.clone().requires_grad_() for tensor in arguments]
        self.out = self.function(*self.leaves)

    @torch.no_grad()
    def forward(self):
        return self.function(*self.arguments)

    def backward(self, d_out):
        return torch.autograd.grad(self.out, self.leaves, d_out, retain_graph=True)


def compiled(function, *arguments):
    import torch._functorch.config

    torch._functorch.config.donated_buffer = False  # backward runs many times after one forward
    torch._dynamo.reset()
    return Recorded(torch.compile(function, fullgraph=True, dynamic=False), *arguments)


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


def adam(parameters, fused, capturable=False):
    """As it comes where not fused: on a GPU PyTorch then picks the form for lists of tensors, but not where fused is False.
    Capturable: for record()."""
    return torch.optim.Adam(parameters, lr=common.LEARNING_RATE, fused=True if fused else None, capturable=capturable)


def train(net, optimizer, x, y, epochs):
    """Full-batch training; returns the loss before the last step."""
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    return loss
