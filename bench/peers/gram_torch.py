#!/usr/bin/env python3
"""Times an empirical NTK in PyTorch by contraction of explicit Jacobians, as PyTorch's tutorial on NTKs does it:
vmap(jacrev) to [n, outputs, parameters], then one einsum a parameter. Gives [n, n, outputs, outputs], or [n, n] with --trace."""

import math

import ntk_common


def main():
    parser = ntk_common.arguments(__doc__)
    parser.add_argument("--trace", action="store_true", help="only the mean over outputs: [n, n]")
    parser.add_argument("--memory", type=float, help="GB for Jacobians, made in blocks of rows where they need more (default: half of what is free)")
    options = parser.parse_args()
    ntk_common.limit_threads(options.threads, options.device)
    import torch
    from torch import nn
    from torch.func import functional_call, jacrev, vmap

    import torch_net

    torch_net.set_up(options.threads, options.device)
    case = ntk_common.CASES[options.case]
    n, outputs = options.n or case.n, case.widths[-1]
    modules = []
    for weight, bias in ntk_common.weights(case.features, case.widths):
        linear = nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = torch.from_numpy(weight), torch.from_numpy(bias)
        modules += [linear, nn.ReLU()]
    net = nn.Sequential(*modules[:-1]).to(options.device)
    parameters = {name: value.detach() for name, value in net.named_parameters()}
    x1 = torch.from_numpy(ntk_common.inputs(n, case.features)).to(options.device)
    x2 = torch.from_numpy(ntk_common.inputs(n, case.features, seed=2)).to(options.device) if case.pair else x1

    def jacobian(rows):
        blocks = vmap(jacrev(lambda p, row: functional_call(net, p, (row,))), (None, 0))(parameters, rows)
        return [block.flatten(2) for block in blocks.values()]

    pattern, scale = ("Naf,Maf->NM", 1 / outputs) if options.trace else ("Naf,Mbf->NMab", 1)

    def contract(first, second):
        theta = torch.einsum(pattern, first[0], second[0])
        for one, other in zip(first[1:], second[1:]):
            theta += torch.einsum(pattern, one, other)
        return theta.mul_(scale)

    jacobian_bytes = 4 * n * outputs * sum(value.numel() for value in parameters.values())
    budget = 1e9 * (options.memory or torch_net.free_gigabytes(options.device) / 2)
    if jacobian_bytes * (2 if case.pair else 1) <= budget:
        block = n
    else:  # two blocks of rows at a time
        block = math.ceil(n / math.ceil(2 * jacobian_bytes / budget))
    while block > 1 and 8 * block**2 * (1 if options.trace else outputs**2) > budget:  # two results of a block
        block = math.ceil(block / 2)

    @torch.no_grad()
    def gram():
        theta = torch.empty((n, n) if options.trace else (n, n, outputs, outputs), device=options.device)
        for i in range(0, n, block):
            first = jacobian(x1[i:i + block])
            for j in range(0, n, block):
                second = first if x1 is x2 and i == j else jacobian(x2[j:j + block])
                theta[i:i + block, j:j + block] = contract(first, second)
        torch_net.synchronize(options.device)
        return theta

    theta = gram()
    measured = ntk_common.timed(gram, options.repeats, warm_up=0)
    ntk_common.common.print_result({
        "peer": "torch.func Jacobian contraction",
        "what": case.describe(n) + (", trace over outputs" if options.trace else ""),
        "versions": torch_net.versions(),
        "n": n,
        "rows_in_a_block": block,  # less than n: some Jacobians were made more than once
        "device": options.device,
        "threads": options.threads,
        **measured,
        "sample": theta.reshape(-1)[:2].tolist(),
    })


if __name__ == "__main__":
    main()
