"""
Correlated columns
==================

Two columns move together in the world, and a counterfactual moves one of them. Nearest is then not the same as possible.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import tdce

draw = np.random.default_rng(2)
floor = draw.uniform(30, 160, 1500).round()
rooms = (floor / 26 + draw.normal(0, 0.35, 1500)).round().clip(1, 8).astype(int)
year = draw.integers(1950, 2024, 1500)
table = pd.DataFrame({"floor_area": floor, "rooms": rooms, "year_built": year})


def price(frame):
    """A model of prices that rewards rooms more than area, as a model of a crowded city might."""
    return (1.2 * frame["floor_area"] + 55 * frame["rooms"] + 0.6 * (frame["year_built"] - 1950)).to_numpy()


explainer = tdce.Explainer(model=price, steps=600).fit(table, favourable=tdce.Range(low=400), immutable=["year_built"])
flats = table[price(table) < 300].head(30)
answers = {at: explainer.explain(flats, closeness=at, safety=0).to_frame() for at in (1.0, 0.0)}

# %%
# As close as possible, answers cut more rooms into the same area; as plausible as possible, area and rooms grow together.

fig, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
axes.scatter(table["floor_area"], table["rooms"] + draw.uniform(-0.25, 0.25, 1500), s=4, color="#d0d0d0", label="flats")
for (at, frame), colour in zip(answers.items(), ("#c46b4e", "#2f6690"), strict=True):
    axes.scatter(frame["floor_area"], frame["rooms"], s=22, color=colour, label=f"closeness {at:g}")
axes.set(xlabel="floor area", ylabel="rooms")
axes.legend(fontsize=8)
axes.spines[["top", "right"]].set_visible(False)

# %%
for at, frame in answers.items():
    print(f"closeness {at:g}: plausibility {frame['plausibility'].mean():.2f}")

# %%
# Where one column is made by the other, say so: a law that all rows keep is found by itself, a rule (``rooms <= floor_area / 12``) is yours to write,
# and causes make effects follow (:doc:`/rules`).
