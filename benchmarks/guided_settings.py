"""Validity and L2 of Algorithm 1 under small changes of its settings. Prints a table of docs/paper.md.

    python benchmarks/guided_settings.py [adult lcd ...]

For each data set: fit on the training rows, explain up to 1,000 test rows that the classifier refuses. Validity is
the share that the classifier then accepts; L2 the squared distance over standardised numbers, averaged over all rows
(valid or not). `lcd`, `gmc` and `law` need TDCE_DATA.
"""

import sys
from dataclasses import replace

import numpy as np

import tdce
from tdce.methods import Guided
from tdce.schema import Numeric

BASE = Guided(sigma="variance", cat_scale="lambda")  # benchmarks/readings.py has the others
SETTINGS = {
    "base, 50 steps": BASE,
    "all 500 steps from the start level": replace(BASE, steps=None),
    "no distance term": replace(BASE, proximity=0.0),
    "soft posterior": replace(BASE, soft_posterior=True),
    "g_cat at the noisy vector": replace(BASE, cat_gradient="noisy"),
    "gradient not through the denoiser": replace(BASE, through_denoiser=False),
    "from pure noise (start 1)": replace(BASE, start=1.0),
}


def main(names: list[str]) -> None:
    print("| data | refused rows | setting | validity | L2 |")
    print("|---|---|---|---|---|")
    for name in names:
        data = tdce.load(name, preset="full" if name in ("adult", "german") else "paper")
        explainer = tdce.Explainer(progress="lines").fit(
            data.part("train"), label=data.label, favourable=data.favourable
        )
        test = data.part("test")
        refused = test[(explainer.predict(test) != data.favourable).to_numpy()].head(1000)
        numeric = [i for i, f in enumerate(explainer.schema) if isinstance(f, Numeric)]
        encoder = explainer.fitted_.encoder
        deviation = np.nanstd(encoder.read(data.part("train")), axis=0)[numeric]
        own = encoder.read(refused)[:, numeric]
        explainer.progress = "silent"
        for title, method in SETTINGS.items():
            explainer.method = method
            found = explainer.explain(refused).explanation
            moved = np.nan_to_num((found.raw[:, 0][:, numeric] - own) / deviation)
            valid, l2 = (found.status == "valid").mean(), np.square(moved).sum(axis=1).mean()
            print(f"| {name} | {len(refused)} | {title} | {valid:.3f} | {l2:.2f} |")


if __name__ == "__main__":
    main(sys.argv[1:] or ["adult", "lcd"])
