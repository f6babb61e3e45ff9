"""
Bring a scikit-learn pipeline
=============================

A pipeline that encodes and decides is explained as it is: it gets the columns, order and dtypes of the table, and its decision is the one that counts.
"""

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tdce

data = tdce.load("german")
rows, label = data.part("train").drop(columns=data.label), data.part("train")[data.label]
encode = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    (StandardScaler(), make_column_selector(dtype_include="number")),
)
model = make_pipeline(encode, RandomForestClassifier(40, min_samples_leaf=3, random_state=0)).fit(rows, label)

explainer = tdce.Explainer(model=model)
explainer.fit(data.part("train"), label=data.label, favourable="good", schema=data.schema)

people = data.part("test").drop(columns=data.label)
refused = people[model.predict(people) == "bad"].head(5)
answer = explainer.explain(refused)
answer.to_frame()[["row", "status", "score_before", "score_after", "plausibility", "safety"]]

# %%
# The pipeline agrees with every line:

print(*model.predict(answer.to_frame()[rows.columns]))
print(answer.model_calls, "calls,", answer.model_rows, "rows asked")

# %%
for sentence in answer.sentences():
    print("-", sentence)

# %%
# A slow or metered model gets a budget, ``max_model_rows``. What was found until then is returned, and a line that needed more says so:

short = explainer.explain(refused, max_model_rows=60)
print(short.model_rows, "rows asked:", short.counts())
