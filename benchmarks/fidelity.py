"""How similar unconditional samples are to the table. Prints the fidelity table of docs/paper.md.

    python benchmarks/fidelity.py [adult lcd ...]

For each data set: fit on the training rows, sample as many rows as are held out (validation and test), put them on
the data's grid, and compare them with the held-out rows; the same for as many real training rows. Numbers:
Kolmogorov-Smirnov distance; categories: Jensen-Shannon divergence in bits; both are means over columns. Then the
largest difference between two correlation coefficients. `lcd`, `gmc` and `law` need TDCE_DATA.
"""

import sys

import pandas as pd
import torch

import tdce
from tdce._core import Noise
from tdce_reproduction.fidelity import fidelity


def main(names: list[str]) -> None:
    print("| data | rows | what is compared with the held-out rows | KS | JS | correlation gap |")
    print("|---|---|---|---|---|---|")
    for name in names:
        data = tdce.load(name, preset="full" if name in ("adult", "german") else "paper")
        explainer = tdce.Explainer(progress="lines").fit(
            data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema
        )
        encoder, diffusion = explainer.fitted_.encoder, explainer.fitted_.diffusion
        held_out = encoder.encode(pd.concat([data.part("validation"), data.part("test")])).float()
        rows = len(held_out)

        def sampled(steps: int | None, soft: bool = False) -> torch.Tensor:
            noise = Noise(torch.arange(float(rows))[:, None], 0)  # noqa: B023
            return encoder.embed(encoder.unembed(diffusion.sample(noise, steps, soft))).float()  # noqa: B023

        sources = {
            "real training rows": encoder.encode(data.part("train").sample(rows, random_state=0)).float(),
            "samples, 50 steps": sampled(50),
            "samples, all 1,000 steps": sampled(None),
            "samples, 50 steps, the paper's soft posterior": sampled(50, soft=True),
        }
        for source, x in sources.items():
            found = fidelity(encoder.space, x, held_out)
            print(f"| {name} | {rows:,} | {source} | {found.ks:.3f} | {found.js:.4f} | {found.correlation_gap:.2f} |")


if __name__ == "__main__":
    main(sys.argv[1:] or ["adult", "lcd"])
