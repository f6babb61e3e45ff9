"""
A regression target
===================

A model that predicts a number has no label to flip. Say what the number should be: at least so much, or so much more than now.
"""

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import tdce

adult = tdce.load("adult").frame.sample(1500, random_state=0).drop(columns="income")
encode = make_column_transformer(
    (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        make_column_selector(dtype_exclude="number"),
    ),
    remainder="passthrough",
)
model = make_pipeline(encode, HistGradientBoostingRegressor(max_iter=40, random_state=0))
model.fit(adult.drop(columns="hours_per_week"), adult["hours_per_week"])

# %%
# The model predicts the hours that somebody works in a week. Who works less than 35 by its prediction, and what would make it 40?
# The weight of a person in the sample is nobody's to change.

rows = adult.drop(columns="hours_per_week")
explainer = tdce.Explainer(model=model, steps=200).fit(rows, favourable=tdce.Range(low=40), immutable=["final_weight"])
few = rows[model.predict(rows) < 35].head(4)
answer = explainer.explain(few)
answer.to_frame()[["row", "status", "score_before", "score_after", "plausibility"]].round(2)

# %%
# ``score_before`` and ``score_after`` are predicted hours. A change instead of a level: five hours more than now, whatever that is.

more = explainer.explain(few, target=tdce.Change(5))
more.to_frame()[["row", "status", "score_before", "score_after"]].round(2)

# %%
more.changes()
