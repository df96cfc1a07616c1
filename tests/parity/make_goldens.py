#!/usr/bin/env python3
"""Makes goldens*.safetensors: what Python PyTorch computes for what SkyTrain does.

    .deps/peers/bin/python tests/parity/make_goldens.py [FILE...]           # writes the files beside this script
    .deps/peers/bin/python tests/parity/make_goldens.py [FILE...] --check   # recomputes and compares with the committed ones

Weights and pictures come from a hash that both sides compute exactly (`unit` in golden/common.py, SplitMix64), so the files
hold results only. Pixels are (byte - 128) / 128: exact in fp32 and fp64. All arrays are float64. What a reader needs to run
the same is in each file's metadata under `cases`, as JSON: settings by file, models and cases by the names in the keys.

goldens.safetensors (golden/steps.py)
  one/<model>/<optimizer>/...     one step in fp32 at a constant learning rate: loss, sampled gradients and weights
  fifty/<model>/<optimizer>/<schedule>/...   50 steps in fp64: loss and learning rate of each step, sampled final state
  slots/<model>/<optimizer>/...   50 steps in fp64 whose batches are computed as slots of 3, 3 and 2 samples and clipped:
                                  the gradient is that of the mean over all samples, batch norm sees a slot, its running
                                  statistics become the mean over the slots, by their samples, of what each made
                                  of the previous ones
  schedule/<case>                 learning rates alone, for more warm-ups and lengths
  init/<model>/<parameter>        default initialisation after torch.manual_seed(init_seed), in fp32, sampled
  spread/<model>/<parameter>      largest magnitude, mean and standard deviation over many default initialisations

goldens_train.safetensors
  train/<model>/<case>/...        (golden/train.py) 200 steps in fp64 under one feature of the trainer: optimizer, parameter
                                  groups, clipping, slots, average of the weights, loss, schedule
      loss       [steps]          mean over the samples of the step
      lr         [steps]          where the case has a schedule: the base rate, before the scale of a group
      norm       [steps]          clip_norm: 2-norm of all gradients before clipping
      clipped    [steps]          clip_value: how many elements were beyond the limit
      trust      [steps, params]  lamb: the ratio of each parameter tensor, in the order of `parameters`
      state/<name>, ema/<name>    sampled state at the end; ema is torch.optim.swa_utils.AveragedModel, updated after each
                                  step: the first update copies, buffers are those of the model
  loss/<case>/<scale>/value, gradient   (golden/losses.py) a loss alone, and its gradient by the logits [rows, outputs]
  schedule/<case>/lr, momentum, metric  (golden/schedules.py) 200 steps each; momentum for one_cycle only; metric: what a
                                  plateau sees: value k after the k-th step behind the warm-up
  scaler/<case>/overflow, skipped, scale, growth_tracker   (golden/scaler.py) GradScaler: whether a gradient was not finite,
                                  whether the step was skipped, and scale and count of good steps after the update; exact

goldens_resnet.safetensors (golden/resnet.py); <model> is a network with a stem, `state` in `cases` lists its state dict
  resnet_init/<model>/<parameter>       default initialisation after torch.manual_seed(init_seed), in fp32, sampled
  resnet_eval/<model>/logits            [images, classes] of hashed weights, statistics and pictures, in fp64
  resnet_train/<model>/logits, loss     the same in training mode, and the mean cross entropy
  resnet_train/<model>/gradient/<parameter>, buffer/<name>   sampled gradients, and buffers after that one forward

"Sampled" is every stride-th element (at most `sample`), preceded by sum / sqrt(count) and the 2-norm of all elements: both
move by about as much as a typical element does, so one tolerance serves all.
The optimizers are torch.optim's single-tensor ones, not the fused kernels, so that the two sides differ in code; LAMB, which
PyTorch lacks, is in golden/optimizers.py.
"""
import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import torch  # noqa: E402

from golden import common, losses, resnet, scaler, schedules, steps, train  # noqa: E402


def train_file():
    golden, cases = {}, {"signal_quarters": common.SIGNAL_QUARTERS}
    for module in (losses, scaler, schedules, train):
        part, its_cases = module.compute()
        golden.update(part)
        cases.update(its_cases)
    return golden, cases


# File, what computes it, and how far a recomputation may be off in each family (of values beyond 1: relative). The normal
# distribution that ResNets draw from differs by 1e-6 with and without AVX.
FILES = {
    "goldens": (steps.compute, {"one": 1e-5, "fifty": 1e-9, "slots": 1e-9, "schedule": 1e-12, "init": 1e-6, "spread": 1e-6}),
    "goldens_train": (train_file, {"loss": 1e-12, "train": 1e-9, "schedule": 1e-12, "scaler": 0.0}),
    "goldens_resnet": (resnet.compute, {"resnet_init": 1e-5, "resnet_eval": 1e-9, "resnet_train": 1e-9}),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"which to make: {' '.join(FILES)}; all of them by default")
    parser.add_argument("--folder", type=pathlib.Path, default=HERE)
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    unknown = [name for name in args.files if name not in FILES]
    if unknown:
        parser.error(f"unknown file {unknown[0]}; there is {' '.join(FILES)}")
    torch.set_num_threads(args.threads)
    good = True
    for name in args.files or FILES:
        compute, limits = FILES[name]
        path = args.folder / f"{name}.safetensors"
        golden, cases = compute()
        if args.check:
            print(path.name)
            good &= common.compare(path, golden, cases, limits)
        else:
            common.save(path, golden, cases)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
