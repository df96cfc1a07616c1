"""What a training step costs in Python, in its best form that we know. Prints one JSON line.

    python_step.py train --model resnet18 --precision bf16 --memory-format channels_last --threads 2
    python_step.py optimizer --kind fused --threads 2

train: torchvision's network on pictures of 3 x 224 x 224 that lie ready in memory, normalised and in the memory format; the
fused SGD with momentum, gradients set to none, autocast for bf16. Torch.compile was slower for this network on a CPU.
optimizer: the steps of AdamW and of SGD with momentum alone, on the 25.6 million parameters of ResNet-50 (161 tensors).
The median step after the warm-up counts. malloc is expected to be tuned by the caller's environment (bench/lib/rounds.py).
"""
import argparse
import json
import statistics
import time

BATCHES = 4  # that lie ready


def peak_rss_bytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def timed(step, steps, warmup):
    """Seconds of the median step; `step` takes the step's number."""
    seconds = []
    for index in range(warmup + steps):
        begin = time.perf_counter()
        step(index)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[warmup:])


def train(args):
    import torch
    import torch.nn.functional as F
    from torchvision.models import resnet
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    layout = getattr(torch, {"contiguous": "contiguous_format"}.get(args.memory_format, args.memory_format))
    model = getattr(resnet, args.model)(num_classes=1000).train().to(memory_format=layout)
    shape = (args.batch, 3, args.size, args.size)
    images = [torch.randn(shape).to(memory_format=layout) for _ in range(BATCHES)]
    labels = [torch.randint(0, 1000, (args.batch,)) for _ in range(BATCHES)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    bf16 = args.precision == "bf16"

    def step(index):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            logits = model(images[index % BATCHES])
        F.cross_entropy(logits.float(), labels[index % BATCHES]).backward()
        optimizer.step()

    seconds = timed(step, args.steps, args.warmup)
    return {"step_s": seconds, "samples_per_second": args.batch / seconds, "peak_rss_bytes": peak_rss_bytes()}


def optimizer_only(args):
    import torch
    from torchvision.models import resnet50
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    parameters = list(resnet50().parameters())
    for p in parameters:
        p.grad = torch.randn_like(p)
    how = {"fused": dict(fused=True), "foreach": dict(foreach=True)}[args.kind]
    result = {"parameters": sum(p.numel() for p in parameters)}
    for name, optimizer in (("adamw_25m_s", torch.optim.AdamW(parameters, lr=1e-6, weight_decay=0.01, **how)),
                            ("sgd_25m_s", torch.optim.SGD(parameters, lr=1e-6, momentum=0.9, **how))):
        result[name] = timed(lambda _, o=optimizer: o.step(), args.steps, args.warmup)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind_of_run", required=True)
    of_train = kinds.add_parser("train")
    of_train.add_argument("--model", default="resnet18")
    of_train.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    of_train.add_argument("--memory-format", choices=["contiguous", "channels_last"], default="channels_last")
    of_train.add_argument("--batch", type=int, default=16)
    of_train.add_argument("--size", type=int, default=224, help="height and width")
    of_train.set_defaults(function=train, steps=6, warmup=2)
    of_optimizer = kinds.add_parser("optimizer")
    of_optimizer.add_argument("--kind", choices=["fused", "foreach"], default="fused")
    of_optimizer.set_defaults(function=optimizer_only, steps=30, warmup=5)
    for sub in (of_train, of_optimizer):
        sub.add_argument("--threads", type=int, default=1)
        sub.add_argument("--steps", type=int, default=sub.get_default("steps"), help="that count")
        sub.add_argument("--warmup", type=int, default=sub.get_default("warmup"), help="steps before them")
    args = parser.parse_args()
    print(json.dumps(args.function(args)))


if __name__ == "__main__":
    main()
