"""Files that the tests and the page name: configurations, arrays, a small model of Hugging Face's form, conversations."""

import json
import os
import pathlib
import random

import numpy as np


def conversations(path, count=60):
    draw, words = random.Random(1), ["red", "blue", "green", "mill", "river"]
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(count):
            word = draw.choice(words)
            messages = [{"role": "user", "content": f"say {word}"}, {"role": "assistant", "content": f"{word}!"}]
            print(json.dumps({"messages": messages}), file=out)


def language_model(folder):
    """A folder with config.json, weights, a tokenizer of bytes and a template, as a run of llama exports it."""
    import mixt

    tokens = pathlib.Path("tokens")
    tokens.mkdir()
    code = [b for b in range(256) if 33 <= b < 127 or 161 <= b < 173 or b > 173]
    rest = [b for b in range(256) if b not in code]
    vocab = {**{chr(b): b for b in code}, **{chr(256 + i): b for i, b in enumerate(rest)}}
    form = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": 256 + i, "content": t, **form} for i, t in enumerate(("<end>", "<turn>"))]
    bytes_alone = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    model = {"type": "BPE", "vocab": vocab, "merges": []}
    made = {
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": bytes_alone,
        "post_processor": None,
        "model": model,
    }
    (tokens / "tokenizer.json").write_text(json.dumps(made))
    template = "{% for m in messages %}<turn>{{ m.role }} {{ m.content }}<end>{% endfor %}"
    template += "{% if add_generation_prompt %}<turn>assistant {% endif %}"
    (tokens / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>", "chat_template": template}))
    pathlib.Path("text.txt").write_text("\n".join(map(str, range(400))))
    settings = {"model": "llama", "precision": "fp32", "net": {"layers": 1, "width": 64, "heads": 2}}
    settings["data"] = {"kind": "text", "path": "text.txt", "seq": 128, "vocab": "tokens"}
    settings["train"] = {"steps": 2, "batch": 2, "lr": 0.01}
    config = mixt.Config(None, settings)
    mixt.train(config, out="base")
    mixt.export("base", folder=folder)


def files():
    """All of them, in the working folder."""
    root = os.environ["MIXT_ROOT"]
    os.symlink(os.path.join(root, "configs"), "configs")
    draw = np.random.default_rng(1)
    np.save("mine.npy", draw.random((3, 28, 28, 1)).astype(np.float32))
    np.save("x.npy", draw.normal(size=(64, 20)).astype(np.float32))
    np.save("y.npy", draw.integers(0, 10, 64).astype(np.int32))
    for precision in ("fp32", "bf16"):
        with open(f"{precision}.yaml", "w", encoding="utf-8") as out:
            out.write(
                f"model: mlp\nprecision: {precision}\nnet: {{hidden: [16]}}\ndata: {{kind: digits, samples: 96, shape: 28x28x1}}\n"
            )
            out.write("train: {batch: 32, steps: 6, lr: 0.01, warmup: 0}\n")
    with open("houses.csv", "w", encoding="utf-8") as out:
        print("rooms,size,price", file=out)
        for _ in range(200):
            rooms, size = draw.integers(1, 6), draw.integers(30, 200)
            print(f"{rooms},{size},{rooms * 10 + size * 3}", file=out)
    with open("new.csv", "w", encoding="utf-8") as out:
        print("rooms,size\n3,80\n2,50", file=out)
    with open("book.txt", "w", encoding="utf-8") as out:
        for i in range(300):
            print(f"The mill {i} stood where two rivers met, and {i * 7 % 31} words were said.", file=out)
    conversations("chat.jsonl")
    language_model("Qwen3-0.6B")
