"""
Causes
======

More hours bring more pay, and the model sees both. Whoever knows what causes what may say so: effects then follow, and the model judges the
row after its consequences.
"""

import numpy as np
import pandas as pd

import tdce

draw = np.random.default_rng(0)
hours = draw.integers(10, 50, 1200)
skill = draw.choice(["none", "trade", "degree"], 1200)
worth = pd.Series(skill).map({"none": 12, "trade": 17, "degree": 24}).to_numpy()
pay = (hours * worth * 4.3 * draw.lognormal(0, 0.08, 1200)).round(-1).astype(int)
rent = draw.integers(4, 15, 1200) * 100
table = pd.DataFrame({"hours": hours, "skill": skill, "pay": pay, "rent": rent})


def lender(frame):
    """Accepts whoever has 900 left after rent, and works at least 20 hours."""
    return np.where((frame["pay"] - frame["rent"] >= 900) & (frame["hours"] >= 20), "yes", "no")


free = tdce.Explainer(model=lender, steps=300).fit(table, favourable="yes")
refused = table[(lender(table) == "no") & (table["hours"] >= 20)].iloc[[0, 3, 7]]
free.explain(refused).changes()

# %%
# "More pay" is no advice, if pay is what hours and skill bring. With the causes stated, pay is computed anew for each person, who keeps their own
# deviation: who earned a tenth more than usual goes on to.

told = tdce.Explainer(model=lender, steps=300).fit(table, favourable="yes", causes={"pay": ["hours", "skill"]})
answer = told.explain(refused)
answer.changes()

# %%
for sentence in answer.sentences():
    print("-", sentence)

# %%
# What is assumed: the stated causes are all that matter, nothing unseen drives cause and effect, and noise multiplies (or adds). If that is wrong, so
# are the consequences.
