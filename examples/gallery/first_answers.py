"""
First answers
=============

Learn a table, ask for two refused applicants, and see the trade-off between near and typical. Other examples load what this one saves.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import tdce

data = tdce.load("german")
saved = Path("german.tdce")
if not saved.exists():
    explainer = tdce.Explainer()
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    explainer.save(saved)
explainer = tdce.Explainer.load(saved)
print(f"right about {explainer.report['accuracy']:.0%} of unseen people")

# %%
# Without a model of yours, ``fit`` trains one. Two people whom it refuses, with three options each:

people = data.part("test")
refused = people[explainer.predict(people) == "bad"].drop(columns=data.label)
answer = explainer.explain(refused.head(2), n=3)
for sentence in answer.sentences():
    print("-", sentence)

# %%
# ``closeness`` sets the trade-off: 1 is as near to the person as possible, 0 as typical of accepted people as possible. Positions that are asked
# together never contradict each other.

asked = explainer.trade_off(refused)
points = pd.DataFrame(
    {
        "distance": {at: each.explanation.distance.mean() for at, each in asked.items()},
        "plausibility": {at: each.to_frame()["plausibility"].mean() for at, each in asked.items()},
    }
)
fig, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot(points["distance"], points["plausibility"], "o-", color="#2f6690")
for at, point in points.iterrows():
    axes.annotate(f"{at:g}", point, textcoords="offset points", xytext=(0, 6), ha="center", fontsize=8)
axes.set(
    xlabel="distance from the person", ylabel="plausibility", title=f"{len(refused)} applicants, mean by closeness"
)
axes.margins(y=0.15)
axes.spines[["top", "right"]].set_visible(False)
