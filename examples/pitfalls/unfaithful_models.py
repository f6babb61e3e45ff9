"""
Unfaithful models
=================

A counterfactual is about the model that was asked. If that is a surrogate, an overfitted fit, or last year's version, the advice fails the person who
follows it.
"""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import tdce

draw = np.random.default_rng(3)
table = pd.DataFrame({name: draw.normal(0, 1, 1200).round(2) for name in ("a", "b", "c")})
label = np.where(
    table["a"] * table["b"] + 0.5 * draw.normal(0, 1, 1200) > 0, "yes", "no"
)  # the truth: a product, with noise
table["decision"] = label
columns = ["a", "b", "c"]

# %%
# **A surrogate.** The deciding model is a tree; somebody explains a logistic regression in its place, because it is simpler.

deciding = DecisionTreeClassifier(max_depth=5, random_state=0).fit(table[columns], label)
simple = LogisticRegression().fit(table[columns], deciding.predict(table[columns]))
wrong = tdce.Explainer(model=simple, steps=300).fit(table, label="decision", favourable="yes")
right = tdce.Explainer(model=deciding, steps=300).fit(table, label="decision", favourable="yes")
refused = table[(deciding.predict(table[columns]) == "no") & (simple.predict(table[columns]) == "no")].head(60)
for name, each in {"the surrogate": wrong, "the deciding model": right}.items():
    lines = each.explain(refused).to_frame()
    print(
        f"asked {name}: {(deciding.predict(lines[columns]) == 'yes').mean():.0%} are accepted by the one that decides"
    )

# %%
# tdce asks the model that decides, on exactly the values returned. Give it that model, not a stand-in.
#
# **An overfitted model** has yeses that are specks of noise: a deep tree learns them, and near answers end in one. The column ``safety`` is the forecast
# of a simple, additive model and does not see such specks. Models that are trained again do, so ask them: ``robust``.

deep = DecisionTreeClassifier(random_state=0).fit(table[columns], label)
over = tdce.Explainer(model=deep, steps=300).fit(table, label="decision", favourable="yes")
refused = table[deep.predict(table[columns]) == "no"].head(40)
answers = {"default": over.explain(refused), "robust": over.explain(refused, robust=over.retrain(table, models=15))}
others = []
for seed in range(10):
    chosen = np.random.default_rng(seed).integers(0, len(table), len(table))  # with replacement
    others.append(DecisionTreeClassifier(random_state=seed).fit(table[columns].iloc[chosen], label[chosen]))
for name, each in answers.items():
    lines = each.to_frame()
    held = np.mean([(other.predict(lines[columns]) == "yes").mean() for other in others])
    print(f"{name}: forecast {lines['safety'].mean():.2f}, accepted by trees trained again {held:.2f}")

# %%
# **Last year's version.** A model that has changed since ``fit`` is refused, not explained:

right.save("out_tree.tdce")
newer = DecisionTreeClassifier(max_depth=4, random_state=1).fit(table[columns], label)
try:
    tdce.Explainer.load("out_tree.tdce", model=newer)
except tdce.InputError as error:
    print(str(error)[:160], "…")
