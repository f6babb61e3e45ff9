"""
Segments and burden
===================

One answer helps one person. A lender that wants to change its advice asks which few actions would help most of those whom the model refuses, and of whom
they ask more.
"""

from pathlib import Path

import tdce

data = tdce.load("german")
saved = Path("german.tdce")
if not saved.exists():
    explainer = tdce.Explainer()
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    explainer.save(saved)
explainer = tdce.Explainer.load(saved)
people = data.frame.drop(columns=data.label)
refused = people[explainer.predict(people) == "bad"].head(80)

segments = explainer.segments(refused, actions=3, max_cost=1.5)
segments.to_frame()

# %%
# ``max_cost`` is the most that one person may be asked for. Each line is one action, the same for everybody whom it helps; ``together`` counts up how many are helped by this one or an earlier one. What each asks for:

segments.steps()

# %%
# Who is left has answers of their own:

left = segments.left()
print(len(left), "of", len(refused), "people are helped by none of these actions")
for sentence in explainer.explain(left.head(2)).sentences():
    print("-", sentence)

# %%
# The burden: what is asked of which group, here by a column that no answer may change.

segments.burden("personal_status").to_frame()

# %%
# :doc:`/segments` says how actions are chosen, and how near that is to the best choice.
