"""
A credit-limit band
===================

A score must sometimes land within a band: enough for the card, not so much that another desk has to approve. A band of any width is searched from
both sides.
"""

import matplotlib.pyplot as plt
import numpy as np

import tdce

data = tdce.load("german")
rows = data.part("train").drop(columns=data.label)


def limit(frame):
    """A credit limit in DM, rounded to tens, as a lender's policy might compute it."""
    base = 800 + 12 * frame["age"].to_numpy() + 400 * (frame["checking_account"] == "200 DM or more").to_numpy()
    base = base + 350 * frame["savings"].isin(["500 to 1000 DM", "1000 DM or more"]).to_numpy()
    return np.round(base + 300 * (frame["telephone"] == "yes") - 14 * frame["duration_months"].to_numpy(), -1)


explainer = tdce.Explainer(model=limit, steps=400).fit(rows, schema=data.schema, favourable=tdce.Range(1200, 1400))
few = rows[limit(rows) < 1000].head(12)
answer = explainer.explain(few)
lines = answer.to_frame()
print(answer.counts())

# %%
fig, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.axhspan(1200, 1400, color="#cfe3d4", label="the band")
for i, line in enumerate(lines.itertuples()):
    axes.annotate(
        "", (i, line.score_after), (i, line.score_before), arrowprops={"arrowstyle": "->", "color": "#2f6690"}
    )
axes.plot(lines["score_before"].to_numpy(), "o", color="#8a8a8a", label="now")
axes.plot(lines["score_after"].to_numpy(), "o", color="#2f6690", label="as it would have to be")
axes.set(xlabel="applicant", ylabel="limit, DM")
axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, frameon=False)
axes.spines[["top", "right"]].set_visible(False)

# %%
answer.changes().head(8)
