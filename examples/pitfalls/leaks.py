"""
Leaks
=====

A column that is known only afterwards makes a model look brilliant, and its counterfactuals worthless: "have no reminders" is not something that an
applicant can do before the loan.
"""

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import tdce

draw = np.random.default_rng(1)
income = draw.normal(30, 8, 1500).round(1)
debt = draw.gamma(2, 4, 1500).round(1)
paid = np.where(income - 1.2 * debt + draw.normal(0, 6, 1500) > 15, "paid", "defaulted")
letters_sent = np.where(paid == "paid", 0, draw.integers(1, 5, 1500))  # written after the loan went wrong
table = pd.DataFrame({"income": income, "debt": debt, "letters_sent": letters_sent, "status": paid})

columns = ["income", "debt", "letters_sent"]
model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(table[columns], table["status"])
explainer = tdce.Explainer(model=model, steps=300).fit(table, label="status", favourable="paid")
refused = table[model.predict(table[columns]) == "defaulted"].head(30)
print(explainer.explain(refused).changes()["feature"].value_counts().to_dict())

# %%
# Everybody is told to change what happened later. ``fit`` warned: one column alone predicts the label.

print(*explainer.hints, sep="\n")

# %%
# Without the leak the model is honest, and so is the advice:

honest = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(table[columns[:2]], table["status"])
again = tdce.Explainer(model=honest, steps=300)
again.fit(table.drop(columns="letters_sent"), label="status", favourable="paid")
refused = table[honest.predict(table[columns[:2]]) == "defaulted"].head(30)
print(again.explain(refused).changes()["feature"].value_counts().to_dict())
