"""
Robust answers
==============

Models are trained again, and advice should survive that. Each line has a forecast, ``safety``; ``robust`` asks retrained models themselves.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import tdce

data = tdce.load("german")
saved = Path("german.tdce")
if not saved.exists():
    explainer = tdce.Explainer()
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    explainer.save(saved)
explainer = tdce.Explainer.load(saved)
people = data.part("test").drop(columns=data.label)
refused = people[explainer.predict(people) == "bad"].head(12)

models = explainer.retrain(data.part("train"), models=10)
answers = {
    "any yes\n(safety=0)": explainer.explain(refused, safety=0),
    "default\n(safety=0.9)": explainer.explain(refused),
    "robust\n(10 models)": explainer.explain(refused, robust=models),
}

# %%
# Judged by five other models, trained for this measurement:

measured = {name: explainer.evaluate(each, data.part("train"), retrain=5) for name, each in answers.items()}
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
left.bar(list(measured), [each["retrained"] for each in measured.values()], color="#2f6690")
left.set(title="accepted by models trained again", ylim=(0, 1))
right.bar(list(measured), [each["sparsity"] for each in measured.values()], color="#81a4b8")
right.set(title="features that change")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)

# %%
# A note says what so many acceptances prove:

for note in answers["robust\n(10 models)"].to_frame()["note"].head(3):
    print("-", note)
