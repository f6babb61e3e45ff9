"""
Several outputs
===============

A decision may have parts: approve or not, and at which rate. One question can ask for both at once.
"""

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import tdce

data = tdce.load("german")
table = data.part("train")
rows = table.drop(columns=data.label)
encode = make_column_transformer(
    (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        make_column_selector(dtype_exclude="number"),
    ),
    remainder="passthrough",
)
approve = make_pipeline(encode, HistGradientBoostingClassifier(max_iter=40, random_state=0)).fit(
    rows, table[data.label]
)


def rate(frame):
    """The yearly interest in per cent: a fixed part, and more for long terms and thin savings."""
    thin = frame["savings"].isin(["below 100 DM", "unknown or no savings"]).to_numpy()
    return np.round(4 + 0.06 * frame["duration_months"].to_numpy() + 1.5 * thin, 2)


explainer = tdce.Explainer(model={"approve": approve, "rate": rate}, steps=400)
explainer.fit(table, label=data.label, schema=data.schema)

people = data.part("test").drop(columns=data.label)
refused = people[(approve.predict(people) == "bad") & (rate(people) > 6)].head(4)
answer = explainer.explain(refused, target={"approve": "good", "rate": tdce.Range(high=6)})

# %%
# Both parts hold in every valid line; the scores are those of the first part, the probability of an approval.

lines = answer.to_frame()
lines["rate before"], lines["rate after"] = rate(refused), rate(lines)
lines[["row", "status", "score_before", "score_after", "rate before", "rate after"]].round(2)

# %%
for sentence in answer.sentences():
    print("-", sentence)
