"""
XGBoost with categories
=======================

XGBoost reads columns of the dtype ``category`` without an encoder. The same dtypes come back in the answer, so that its lines can be scored as they are.
"""

import pandas as pd
import xgboost

import tdce

data = tdce.load("german")
words = data.frame.drop(columns=data.label).select_dtypes(exclude="number").columns
kinds = {name: pd.CategoricalDtype(sorted(data.frame[name].unique())) for name in words}
table = data.part("train").astype(kinds)
rows, good = table.drop(columns=data.label), (table[data.label] == "good").astype(int)

model = xgboost.XGBClassifier(n_estimators=60, max_depth=4, learning_rate=0.1, enable_categorical=True, n_jobs=1)
model.fit(rows, good)

# %%
# The model knows classes 0 and 1. They get the names of the labels, in their order: 0 is "bad", 1 is "good".

explainer = tdce.Explainer(model=model).fit(table, label=data.label, favourable="good", schema=data.schema)
people = data.part("test").astype(kinds).drop(columns=data.label)
refused = people[model.predict(people) == 0].head(5)
answer = explainer.explain(refused, n=2)
answer.changes()

# %%
lines = answer.to_frame()
print(lines.dtypes[["purpose", "duration_months"]].astype(str).to_dict())
print("XGBoost says:", *model.predict(lines[rows.columns]))
