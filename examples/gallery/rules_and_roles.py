"""
Rules and roles
===============

Who can change what? Roles say it for columns, laws are found in the table, rules are yours. No answer breaks any of them.
"""

from pathlib import Path

import pandas as pd

import tdce

data = tdce.load("german")
saved = Path("german.tdce")
if not saved.exists():
    explainer = tdce.Explainer()
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    explainer.save(saved)
explainer = tdce.Explainer.load(saved)
people = data.part("test").drop(columns=data.label)
refused = people[explainer.predict(people) == "bad"].head(4)

pd.Series(explainer.schema.roles).rename("role").to_frame().head(8)

# %%
# Without rules of the question:

for sentence in explainer.explain(refused).sentences():
    print("-", sentence)

# %%
# With three rules and a cost: the amount must fit the term, one change only or two, and savings may not fall. Changing the purpose costs three times
# as much as anything else.

rules = ["credit_amount <= 400 * duration_months", "at most 2 changes", "savings >= was(savings)"]
answer = explainer.explain(refused, rules=rules, costs={"purpose": 3})
for sentence in answer.sentences():
    print("-", sentence)

# %%
# Rules that contradict each other are named before any work:

try:
    explainer.explain(refused, rules=["age >= 20", "credit_amount > 9000", "credit_amount < 1000"])
except tdce.InputError as error:
    print(error)

# %%
# Laws of another table, found by ``Schema.infer``:

print(*tdce.load("adult").schema.sentences()[:4], sep="\n")
