"""
The paper's Algorithm 1, step by step
=====================================

Noise is added to a row, and a diffusion model takes it away again, guided by the gradient of the classifier. ``Explainer(method="guided")`` does
this; here the walk is followed from step to step.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch

import tdce
from tdce._core import Noise
from tdce.methods import Guided
from tdce.schema import FeasibleSet

data = tdce.load("german")
saved = Path("german.tdce")
if not saved.exists():
    explainer = tdce.Explainer()
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    explainer.save(saved)
explainer = tdce.Explainer.load(saved)
people = data.part("test").drop(columns=data.label)
refused = people[explainer.predict(people) == "bad"].head(16)

# %%
# The table in two currencies. What the lender knows is a raw row; what is learned and walked is an encoded one: numbers as scores, categories as
# one-hot blocks.

fitted = explainer.fitted
feasible = FeasibleSet.of(fitted.encoder, refused, explainer.schema.immutable, ())
x = feasible.x
goals = fitted.resolve_goals("good", None, feasible.own)
print(len(fitted.encoder.schema), "features, encoded in", x.shape[1], "columns")

# %%
# **Line 1: noise.** The row is noised to half of the way, t = T / 2. **Lines 2 to 8: the walk.** At each step the diffusion model estimates the clean
# row (line 3), the classifier's gradient at this estimate says which way is a yes (line 4), and the next row is drawn from the posterior, moved along
# that gradient: numbers by their mean (line 6), categories by their log probabilities, which Gumbel-softmax keeps differentiable (line 7).
# Immutable features are put back (line 8).

method = Guided().fit(fitted.task(explainer.schema.immutable))
walk = list(method.walk(x, goals, Noise(x, 0), start=0.5))
times = [t for t, _, _ in walk]
print(len(walk), "steps, from t =", times[0], "to", times[-1])

# %%
# The probability of a yes for the noisy row, for the estimate of the clean row, and where it was before:

with torch.no_grad():
    good = fitted.classes.index("good")
    noisy = torch.stack([fitted.guide(x_t).softmax(1)[:, good] for _, x_t, _ in walk])
    clean = torch.stack([fitted.guide(x_0).softmax(1)[:, good] for _, _, x_0 in walk])
    before = fitted.guide(x).softmax(1)[:, good]

fig, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.plot(times, clean.numpy(), color="#2f6690", alpha=0.35, lw=1)
axes.plot(times, clean.mean(1).numpy(), color="#2f6690", lw=2.5, label="estimate of the clean row, x_0 (mean)")
axes.plot(times, noisy.mean(1).numpy(), color="#c46b4e", lw=1.5, ls="--", label="noisy row, x_t (mean)")
axes.axhline(before.mean().item(), color="#8a8a8a", lw=1, label="as they are (mean)")
axes.invert_xaxis()
axes.set(xlabel="t, from noise to row", ylabel="probability of good", ylim=(0, 1))
axes.legend(fontsize=8)
axes.spines[["top", "right"]].set_visible(False)

# %%
# One person, two numbers: the walk of the estimate through the plane of amount and term, in standard scores.

names = [column.name for column in fitted.encoder.schema]
numeric = [name for name in names if type(fitted.encoder.schema[name]).__name__ == "Numeric"]
i, j = numeric.index("duration_months"), numeric.index("credit_amount")
path = torch.stack([x_0[0, [i, j]] for _, _, x_0 in walk]).numpy()
fig, axes = plt.subplots(figsize=(5, 4), layout="constrained")
axes.plot(*path.T, color="#81a4b8", lw=1, zorder=1)
axes.scatter(*path.T, c=times, cmap="viridis_r", s=18, zorder=2)
axes.plot(*x[0, [i, j]].numpy(), "s", color="#8a8a8a", label="the person")
axes.plot(*path[-1], "o", color="#c46b4e", label="the end of the walk")
axes.set(xlabel="duration_months, encoded", ylabel="credit_amount, encoded")
axes.legend(fontsize=8)

# %%
# Categories: the relaxed one-hot block of the checking account of the same person, at each step.

from tdce.schema import Categorical

offset = len(numeric)
for name in names:
    column = fitted.encoder.schema[name]
    if isinstance(column, Categorical):
        width = len(column.categories)
        if name == "checking_account":
            break
        offset += width
block = torch.stack([x_0[0, offset : offset + width] for _, _, x_0 in walk]).numpy()
fig, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
axes.stackplot(times, block.clip(0, 1).T, labels=column.categories, colors=["#c46b4e", "#e0c3a0", "#81a4b8", "#2f6690"])
axes.invert_xaxis()
axes.set(xlabel="t, from noise to row", ylabel="share", ylim=(0, 1))
axes.legend(fontsize=8, loc="upper left")

# %%
# The end of the walk is snapped to the grid of the table, its constraints are kept, and the model decides on exactly what is returned. That part is the
# same for every method:

guided = tdce.Explainer("guided")
guided.fitted_ = explainer.fitted_
print("guided:", guided.explain(refused).counts())
print("search:", explainer.explain(refused).counts())

# %%
# The default, ``search``, takes the same diffusion model to draw and to rate candidates, and no gradient: so it works with any model. :doc:`/paper` maps
# each equation to its function, and says where the paper can be read in several ways.
