#!/usr/bin/env python3
"""Log-mel features of mixt next to librosa's, on recordings drawn here and, where they are, on spoken digits.

    compare_audio.py FEATURES_PROGRAM [FOLDER_OF_WAV]

FEATURES_PROGRAM is build/tests/features. Rates, windows, hops and numbers of bands are drawn; each logarithm must be within 2e-6 of
librosa's, which is what rounding to FP32 leaves; of a recording brought to another rate, where it is loud, within 0.02 of what soxr
makes of it. Status 77 where librosa is missing.
"""
import pathlib, struct, subprocess, sys, tempfile, warnings

try:
    import librosa
    import numpy as np
except ImportError:
    print("compare_audio: librosa is missing: nothing is compared")
    sys.exit(77)


def write_wav(path, samples, rate):
    data = struct.pack(f"<{len(samples)}f", *samples)
    form = struct.pack("<HHIIHH", 3, 1, rate, rate * 4, 4, 32)
    path.write_bytes(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" +
                     struct.pack("<I", len(data)) + data)


def features(program, path, rate, mels, window, hop):
    out = subprocess.run([program, path, str(rate), str(mels), repr(window), repr(hop)], check=True, capture_output=True).stdout
    return np.frombuffer(out, np.float32).reshape(-1, mels)


def theirs(samples, rate, mels, window, hop):
    width, step = int(window * rate / 1000 + 0.5), int(hop * rate / 1000 + 0.5)
    size = 1 << (width - 1).bit_length()
    power = librosa.feature.melspectrogram(y=samples.astype(np.float64), sr=rate, n_fft=size, hop_length=step, win_length=width,
                                           window="hann", center=True, pad_mode="constant", power=2, n_mels=mels, fmin=0,
                                           fmax=rate / 2, htk=True, norm=None, dtype=np.float64)
    return power.T


def compare(program, path, samples, rate, mels, window, hop):
    mine, power = features(program, path, 0, mels, window, hop), theirs(samples, rate, mels, window, hop)
    assert mine.shape == power.shape, (path, mine.shape, power.shape)
    return float(np.abs(mine - np.log(np.maximum(power, 1e-6))).max())


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "../shared/data/fsdd")
    warnings.simplefilter("ignore")  # of recordings shorter than a frame
    rng, worst, count = np.random.default_rng(20261116), 0.0, 0
    with tempfile.TemporaryDirectory() as temp:
        path = pathlib.Path(temp) / "a.wav"
        for i in range(100):
            rate = int(rng.choice([8000, 11025, 16000, 22050, 44100]))
            samples = np.float32(rng.normal(0, 10.0 ** rng.uniform(-3, 0), int(rng.integers(1, rate))))
            write_wav(path, samples, rate)
            worst = max(worst, compare(program, str(path), samples, rate, int(rng.integers(4, 41)), float(rng.uniform(20, 64)), float(rng.uniform(5, 20))))
            count += 1
        time = np.arange(16000) / 16000
        tone = np.float32(0.3 * np.sin(2 * np.pi * (300 + 900 * time) * time))
        write_wav(path, tone, 16000)
        mine = features(program, str(path), 8000, 32, 25, 10)
        again = np.log(np.maximum(theirs(librosa.resample(tone, orig_sr=16000, target_sr=8000), 8000, 32, 25, 10), 1e-6))
        loud = again > again.max() - 6
        print(f"16000 to 8000 samples a second: {np.abs(mine - again)[loud].max():.4f} from soxr's where it is loud")
        assert np.abs(mine - again)[loud].max() < 0.02
    files = sorted(folder.glob("*.wav"))[::50] if folder.is_dir() else []
    for path in files:
        samples, rate = librosa.load(path, sr=None, dtype=np.float64)
        worst, count = max(worst, compare(program, str(path), samples, rate, 40, 25, 10)), count + 1
    if not files:
        print(f"compare_audio: {folder} has no recordings: left out")
    print(f"{count} recordings: at most {worst:.2e} from librosa's {librosa.__version__}")
    assert worst < 2e-6, worst


main()
