"""Fuzz test of user-edited files: schemas, questions and message files.

    python benchmarks/fuzz_inputs.py [--tries 50000] [--seed 0]

Each mutant is read and displayed. An exception other than InputError, or a warning, ends the script with exit code 1.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import text_mutants


def main(tries: int, seed: int) -> int:
    print("| what was edited | tries | used | refused | other exceptions |\n|---|---|---|---|---|")
    everything = []
    for kind, (texts, use, is_json) in text_mutants.kinds(text_mutants.explainer()).items():
        counts, failures = text_mutants.fuzz(texts, use, tries if is_json else tries // 20, seed, is_json)
        total = sum(counts.values())
        print(f"| {kind} | {total:,} | {counts['used']:,} | {counts['refused']:,} | {len(failures)} |", flush=True)
        everything += failures
    for failure in everything[:20]:
        print(failure, file=sys.stderr)
    return bool(everything)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    sys.exit(main(**vars(parser.parse_args())))
