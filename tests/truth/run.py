"""Every case of cases.txt through every tool that judges. Fails where two contradict each other about the same format, where one is wrong,
and where more than 15% are undecided. Usage: run.py MIXT [--keep FOLDER] [--seed N] [--tools A,B] [--budget TIME] [--jobs N]
[CASE...]"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import ask
import case
import data

SHARE_UNDECIDED = 0.15


def one(c, mixt, root, tools):
    """The answers of a case, or why it was skipped."""
    folder, begun = os.path.join(root, c.name), time.time()
    os.makedirs(folder)
    try:
        c.make(mixt, folder)
    except data.Missing as missing:
        return c, None, f"skipped, no {missing}"
    except (subprocess.CalledProcessError, KeyError, ValueError) as e:
        return c, None, f"broken, {e!r}"
    asked = [t for t in tools if t in ask.ON_RUNS or c.answer != "explodes"]
    answers = {}
    for tool in asked:
        answers[tool] = ask.ask(tool, mixt, folder, c)
        with open(f"{folder}/{tool}.json", "w") as f:
            f.write(answers[tool].out)
    return c, answers, f"{time.time() - begun:.0f} s"


def contradict(c, answers):
    says = {"yes": [], "no": []}
    for tool, answer in answers.items():
        if tool not in ask.ON_RUNS and answer.says in says:
            says[answer.says].append(tool + (" (predicted)" if answer.text.endswith("; predicted") else ""))
    return f"{c.name}: yes says {', '.join(says['yes'])}; no says {', '.join(says['no'])}" if all(says.values()) else ""


def row(c, answers, note, tools):
    if answers is None:
        return f"{c.name:22} {note}"
    marks = {"wrong": "!", "undecided": "?", "right": "", None: ""}
    cells = [marks[ask.right(t, c, answers[t])] + answers[t].says if t in answers else "" for t in tools]
    place = "" if c.place is None else f", place {c.place}"
    return f"{c.name:22} {c.answer:9}" + "".join(f"{cell:>12}" for cell in cells) + f"   {note}{place}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mixt")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--keep", help="folder for everything that is made; default: removed")
    parser.add_argument("--seed", type=int, default=20261119, help="of the places of planted faults")
    parser.add_argument("--tools", default=",".join(ask.TOOLS))
    parser.add_argument("--budget", default=ask.BUDGET, help="of a search")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_intermixed_args()
    ask.BUDGET = options.budget
    mixt, tools = os.path.realpath(options.mixt), options.tools.split(",")
    root = options.keep or tempfile.mkdtemp()
    cases = case.read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.txt"), options.seed, options.cases)
    print(f"places of faults drawn with --seed {options.seed}", flush=True)
    print(f"{'case':22} {'answer':9}" + "".join(f"{t:>12}" for t in tools), flush=True)
    done = []
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for result in pool.map(lambda c: one(c, mixt, root, tools), cases):
                done.append(result)
                print(row(*result, tools), flush=True)
    finally:
        if not options.keep:
            shutil.rmtree(root)
    counts, contradictions = {"right": 0, "wrong": 0, "undecided": 0, "left open": 0, None: 0}, []
    for c, answers, _ in done:
        for tool, answer in (answers or {}).items():
            verdict = ask.right(tool, c, answer)
            if verdict == "undecided" and tool == "advise":
                verdict = "left open"  # advice alone decides nothing: it says what would
            counts[verdict] += 1
            if verdict in ("wrong", "undecided"):
                print(f"{verdict}: {c.name}: mixt {' '.join(answer.command)}: {answer.says}: {answer.text.strip()}")
        contradictions += [text for text in [contradict(c, answers or {})] if text]
    for text in contradictions:
        print(f"contradiction: {text}")
    spoken = counts["right"] + counts["wrong"] + counts["undecided"]
    print(f"{sum(a is not None for _, a, _ in done)} cases, {spoken} verdicts: {counts['right']} right, {counts['wrong']} wrong, "
          f"{counts['undecided']} undecided, {counts['left open']} left open by advise; {len(contradictions)} contradictions; {counts[None]} times a tool said nothing of the format")
    if any(note.startswith("broken") for _, _, note in done):
        return 1
    if not spoken:
        print("SKIPPED: no case could be made")
        return 77
    return int(bool(contradictions) or counts["wrong"] > 0 or counts["undecided"] > SHARE_UNDECIDED * spoken)


if __name__ == "__main__":
    sys.exit(main())
