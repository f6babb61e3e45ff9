"""
Proxies
=======

The model never saw the protected attribute, and treats it nevertheless: a district stands in for it. The advice "move house" is true of the model,
and is a finding about it, not a recommendation.
"""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import tdce

draw = np.random.default_rng(0)
group = draw.choice(["A", "B"], 1500)
district = np.where(
    draw.random(1500) < 0.9, np.where(group == "A", "north", "south"), draw.choice(["north", "south"], 1500)
)
income = draw.normal(30, 6, 1500).round(1)
past = np.where(income + np.where(group == "A", 4, -4) + draw.normal(0, 2, 1500) > 30, "yes", "no")  # biased decisions
table = pd.DataFrame({"income": income, "district": district, "decision": past})

encode = make_column_transformer((OneHotEncoder(drop="first"), ["district"]), remainder="passthrough")
model = make_pipeline(encode, LogisticRegression())
model.fit(table[["income", "district"]], table["decision"])
explainer = tdce.Explainer(model=model, steps=300).fit(
    table, label="decision", favourable="yes", actionable=["district"]
)
refused = table[(model.predict(table) == "no") & (table["district"] == "south")].head(40)
answer = explainer.explain(refused, n=2)
answer.changes().groupby(["option", "feature"]).size().to_frame("people")

# %%
# Whoever does not earn more is told to move north: moving changes nothing about whether they pay, only whom the model takes them for. The remedy is
# not another counterfactual. Freeze what must not be asked of anybody, and compare what is asked of whom:

frozen = explainer.explain(refused, immutable=["district"])
south = frozen.to_frame()["income"]
north = table[(model.predict(table) == "no") & (table["district"] == "north")].head(40)
there = explainer.explain(north, immutable=["district"]).to_frame()["income"]
print(f"income asked for, in thousands: {south.mean():.1f} in the south, {there.mean():.1f} in the north")

# %%
# The incomes of the two districts were drawn alike. The report compares groups in the same way, by any column of the input, also one that the model
# does not see (:doc:`/report`).
