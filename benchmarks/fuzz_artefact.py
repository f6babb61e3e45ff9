"""Fuzz test of artefacts: load damaged and forged ones. Prints the table of docs/reliability.md.

    python benchmarks/fuzz_artefact.py [--tries 10000] [--seed 0]

A small artefact is changed at random: its bytes, or its JSON and tensors with a recomputed checksum. Each mutant is
loaded; a mutant with a recomputed checksum that loads then explains two rows. An exception other than InputError, or a
mutant that loads without a recomputed checksum, ends the script with exit code 1.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import mutants


def main(tries: int, seed: int) -> int:
    explainer = mutants.explainer(keep_rows=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.tdce"
        explainer.save(path)
        tallies = mutants.fuzz(path.read_bytes(), mutants.refused(explainer), path, tries, seed)
    print("| what was changed | tries | refused | loaded | then answered | other exceptions | slowest, s |")
    print("|---|---|---|---|---|---|---|")
    silent = 0
    for title, kinds in (("checksum unchanged", mutants.UNSEALED), ("checksum recomputed", mutants.RESEALED)):
        for name in kinds:
            t = tallies[name]
            answered = t.answered if kinds is mutants.RESEALED else "–"
            print(
                f"| {title}: {name} | {t.tries:,} | {t.refused:,} | {t.loaded:,} | {answered} | {len(t.failures)} "
                f"| {t.slowest:.2f} |"
            )
            silent += t.loaded if kinds is mutants.UNSEALED else 0
    failures = [failure for t in tallies.values() for failure in t.failures]
    for failure in failures[:20]:
        print(failure, file=sys.stderr)
    return int(bool(failures or silent))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.exit(main(given.tries, given.seed))
