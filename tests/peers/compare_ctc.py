#!/usr/bin/env python3
"""CTC of mixt next to PyTorch's, on random problems, long and degenerate ones among them.

    compare_ctc.py CTC_PROGRAM [cpu|cuda] [PROBLEMS|time]

CTC_PROGRAM is build/tests/ctc; 1000 problems by default. Expected is torch.nn.functional.ctc_loss in double precision with
zero_infinity: samples that cannot be give 0 and no gradient, and mixt's mean leaves them out. Losses must be within 2e-6 of it,
relative to the loss; gradients within 1e-5, or nearer than PyTorch's own in single precision: of thousands of frames with large
logits, every single-precision sum loses more than that. `time`:
microseconds of the loss and its gradient from logits, next to log_softmax and ctc_loss (PyTorch's own kernels, and cuDNN's). Status 77 where torch is missing.
"""
import subprocess, sys, time

try:
    import numpy as np
    import torch
except ImportError:
    print("compare_ctc: torch is missing: nothing is compared")
    sys.exit(77)


def problem(rng, i):
    batch, classes = int(rng.integers(1, 9)), int(rng.integers(2, 40))
    frames, labels = int(rng.integers(1, 80)), int(rng.integers(0, 16))
    if i % 20 == 0:  # long
        batch, frames, labels = int(rng.integers(1, 3)), int(rng.integers(500, 2000)), int(rng.integers(50, 250))
    blank = int(rng.integers(0, classes))
    x = np.float32(rng.normal(0, 10.0 ** rng.uniform(-1, 1), (batch, frames, classes)))
    y = rng.integers(0, classes - 1, (batch, labels)).astype(np.int32)
    y += y >= blank
    if i % 7 == 0 and labels:
        y[:] = y[:, :1]  # the same label over and over
    own_frames, own_labels = rng.integers(1, frames + 1, batch), rng.integers(0, labels + 1, batch)
    if i % 3 == 0:
        own_frames[:], own_labels[:] = frames, labels
    if i % 11 == 0:
        own_labels[:] = 0
    return x, y, own_frames.astype(np.int32), own_labels.astype(np.int32), blank


def expected(x, y, frames, labels, blank, dtype=torch.float64):
    logits = torch.tensor(x, dtype=dtype, requires_grad=True)
    args = torch.log_softmax(logits, 2).transpose(0, 1), torch.tensor(y, dtype=torch.long), torch.tensor(frames, dtype=torch.long), torch.tensor(labels, dtype=torch.long)
    count = int(torch.isfinite(torch.nn.functional.ctc_loss(*args, blank=blank, reduction="none")).sum())
    loss = torch.nn.functional.ctc_loss(*args, blank=blank, reduction="none", zero_infinity=True).sum() / max(count, 1)
    loss.backward()
    return float(loss.detach()), count, logits.grad.numpy()


def packed(x, y, frames, labels, blank):
    return np.int64([*x.shape, y.shape[1], blank]).tobytes() + x.tobytes() + y.tobytes() + labels.tobytes() + frames.tobytes()


def theirs_us(device, x, y, frames, labels, library, times=200):
    """cuDNN's is taken where the labels are INT32 on the host, and all lengths are plain numbers."""
    logits = torch.tensor(x, device=device, requires_grad=True)
    if library == 'cudnn':
        flat = torch.tensor(np.concatenate([row[:n] for row, n in zip(y, labels)]), dtype=torch.int32)
        rest = flat, frames.tolist(), labels.tolist()
    else:
        rest = [torch.tensor(a, dtype=torch.long, device=device) for a in (y, frames, labels)]

    def step():
        logits.grad = None
        torch.nn.functional.ctc_loss(torch.log_softmax(logits, 2).transpose(0, 1), *rest).backward()

    wait = torch.cuda.synchronize if device == 'cuda' else lambda: None
    for _ in range(times // 10):
        step()
    wait()
    start = time.perf_counter()
    for _ in range(times):
        step()
    wait()
    return (time.perf_counter() - start) / times * 1e6


def timed(device):
    rng = np.random.default_rng(1)
    for batch, frames, classes, labels in ((16, 150, 29, 20), (32, 500, 32, 100), (32, 1000, 64, 200), (16, 400, 1000, 60)):
        x, y = np.float32(rng.normal(0, 1, (batch, frames, classes))), rng.integers(1, classes, (batch, labels)).astype(np.int32)
        sizes = np.full(batch, frames, np.int32), np.full(batch, labels, np.int32)
        ours = float(subprocess.run([sys.argv[1], device, '200'], input=packed(x, y, *sizes, 0), stdout=subprocess.PIPE, check=True).stdout)
        theirs = {library: theirs_us(device, x, y, *sizes, library) for library in (('own', 'cudnn') if device == 'cuda' else ('own',))}
        print(f"{batch} x {frames} frames, {classes} classes, {labels} labels, {device}: {ours:.1f} us, "
              + ', '.join(f"torch's {name} {us:.1f} us" for name, us in theirs.items()) + f", ratio {min(theirs.values()) / ours:.2f}")


def main():
    if (sys.argv[3:] + [""])[0] == "time":
        return timed(sys.argv[2])
    device, problems = (sys.argv[2:] + ["cpu"])[0], int((sys.argv[3:] + ["1000"])[0])
    rng = np.random.default_rng(20261116)
    asked = [problem(rng, i) for i in range(problems)]
    text = b"".join(packed(*one) for one in asked)
    answers = np.frombuffer(subprocess.run([sys.argv[1], device], input=text, stdout=subprocess.PIPE, check=True).stdout, np.float32)
    at, worst, worst_grad, worst_theirs, impossible, samples, long = 0, 0.0, 0.0, 0.0, 0, 0, 0
    for x, *rest in asked:
        loss, count, grad = expected(x, *rest)
        got, metrics, slopes = float(answers[at]), answers[at + 1:at + 4], answers[at + 4:at + 4 + x.size].reshape(x.shape)
        at += 4 + x.size
        assert int(metrics[2]) == count, (x.shape, metrics, count)
        off, off_grad = abs(got - loss) / max(abs(loss), 1), float(np.abs(slopes - grad).max())
        assert off < 2e-6, (x.shape, got, loss)
        theirs = float(np.abs(expected(x, *rest, dtype=torch.float32)[2] - grad).max())
        assert off_grad <= max(1e-5, theirs), (x.shape, off_grad, theirs)
        worst, worst_grad, worst_theirs = max(worst, off), max(worst_grad, off_grad), max(worst_theirs, theirs)
        impossible, samples, long = impossible + len(x) - count, samples + len(x), long + (x.shape[1] >= 500)
    assert at == len(answers)
    print(f"{problems} problems, {samples} samples ({impossible} of them cannot be), {long} problems of 500 frames and more, {device}: "
          f"losses within {worst:.1e} of torch {torch.__version__}'s in double precision, gradients within {worst_grad:.1e} "
          f"(its own in single precision: {worst_theirs:.1e})")


main()
