"""The public tables: what each one is, where it comes from, and its presets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from tdce.datasets.sampling import adult_paper, gmc_paper, law_paper, law_paper_size, lcd_full, lcd_paper
from tdce.datasets.wording.adult import ADULT_FLAG_WORDS, ADULT_OUTCOMES, ADULT_WORDS
from tdce.datasets.wording.german import GERMAN_OUTCOMES, GERMAN_WORDS


@dataclass(frozen=True)
class Preset:
    """One version of a table: its features and rows, and what is known about them."""

    features: tuple[str, ...]
    mask: str  # the one feature that the benchmark masks
    notes: str
    held_out: int = 1_000  # rows for validation, and as many for test
    immutable: tuple[str, ...] = ()
    history: tuple[str, ...] = ()  # features that happened before the decision
    passing: tuple[str, ...] = ()  # features that pass with time
    flags: tuple[str, ...] = ()  # columns of 0 and 1 that count as numbers
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None  # derive columns, choose rows
    rules: tuple[str, ...] = ()  # that any sensible advice keeps
    words: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # wording of its features
    outcomes: Mapping[str, Any] = field(default_factory=dict)  # wording of the label


@dataclass(frozen=True)
class PublishedTable:
    """A public table as it is in its file."""

    name: str
    title: str
    rows: int
    columns: str
    label: str
    favourable: str
    inside: bool  # in the package; else in the folder that TDCE_DATA names
    sha256: str  # of the .gz file
    what: str
    source: str
    licence: str
    presets: Mapping[str, Preset]

    @property
    def file(self) -> str:
        return f"{self.name}.csv.gz"


ADULT_FEATURES = (
    "age", "workclass", "final_weight", "education", "education_num", "marital_status", "occupation",
    "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country",
)  # fmt: skip
ADULT_FLAGS = ("married_flag", "white_flag", "male_flag", "us_native_flag")
ADULT_PAPER_NUMBERS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week", *ADULT_FLAGS)
ADULT_PAPER_FEATURES = (*ADULT_PAPER_NUMBERS, "workclass", "occupation")

ADULT_RULES = ('workclass not in ("Never-worked", "Without-pay")',)  # nobody should be told to earn nothing

ADULT = PublishedTable(
    name="adult",
    title="Adult (Census Income)",
    rows=48_842,
    columns="6 numeric + 8 categorical, label income",
    label="income",
    favourable=">50K",
    inside=True,
    sha256="fd74044aaebd115d4f53ed4a1f2b3278fe8059fc40a7e20094dfa2ffa1799d14",
    what="the 1994 census extract, adult.data followed by adult.test",
    source="UCI Machine Learning Repository, B. Becker and R. Kohavi (1996), doi:10.24432/C5XW20",
    licence="CC BY 4.0",
    presets={
        "full": Preset(
            features=ADULT_FEATURES,
            mask="sex",
            immutable=("final_weight", "marital_status", "relationship", "race", "sex", "native_country"),
            history=("capital_gain", "capital_loss"),  # of the year before
            passing=("age",),
            rules=("education_num >= was(education_num)", *ADULT_RULES),
            words=ADULT_WORDS,
            outcomes=ADULT_OUTCOMES,
            notes="All rows and all published features, unbalanced.",
        ),
        "paper": Preset(
            features=ADULT_PAPER_FEATURES,
            mask="male_flag",
            immutable=ADULT_FLAGS,
            history=("capital_gain", "capital_loss"),
            passing=("age",),
            rules=ADULT_RULES,
            words=ADULT_FLAG_WORDS | {name: ADULT_WORDS[name] for name in ADULT_PAPER_FEATURES if name in ADULT_WORDS},
            outcomes=ADULT_OUTCOMES,
            flags=ADULT_FLAGS,
            prepare=adult_paper,
            notes=(
                "The paper counts 9 numeric and 2 categorical features, but Adult has six numbers: four "
                "categories became 0/1 flags that count as numbers, and final_weight, education and "
                "relationship are left out. This is our reading; the paper does not name its columns. All "
                "rows are used, unbalanced. The paper's 47,842 / 1,000 / 1,000 adds up to 1,000 rows more "
                "than Adult has, so 46,842 are for training. Where native_country is missing, "
                "us_native_flag is missing too."
            ),
        ),
    },
)

GERMAN_FEATURES = (
    "checking_account", "duration_months", "credit_history", "purpose", "credit_amount", "savings",
    "employment", "instalment_rate", "personal_status", "other_debtors", "residence_years", "property", "age",
    "other_instalment_plans", "housing", "existing_credits", "job", "people_supported", "telephone",
    "foreign_worker",
)  # fmt: skip

GERMAN = PublishedTable(
    name="german",
    title="German Credit (Statlog)",
    rows=1_000,
    columns="7 numeric + 13 categorical, label credit_risk",
    label="credit_risk",
    favourable="good",
    inside=True,
    sha256="31fd8ad29b7a2475301c0432eeed06d814fea919c10744e8366e7f1fa9935b14",
    what="1,000 bank credits, the published codes turned into words",
    source="UCI Machine Learning Repository, H. Hofmann (1994), doi:10.24432/C5NC77",
    licence="CC BY 4.0",
    presets={
        "full": Preset(
            features=GERMAN_FEATURES,
            mask="age",
            held_out=100,
            immutable=("personal_status", "people_supported", "foreign_worker"),
            history=("credit_history", "existing_credits"),
            passing=("employment", "residence_years", "age"),
            rules=(
                'credit_history not in ("critical or credits elsewhere", "delays in the past")',
                'employment != "unemployed"',
                "employment >= was(employment)",
                'job != "unemployed or unskilled non-resident"',
            ),
            words=GERMAN_WORDS,
            outcomes=GERMAN_OUTCOMES,
            notes=(
                "All rows and all published features, unbalanced. The codes became words with their "
                "published meaning, part of which is known to be wrong. The paper does not use this table."
            ),
        ),
    },
)

GMC_HISTORY = ("times_30_59_days_late", "times_60_89_days_late", "times_90_days_late")
GMC_RULES = tuple(f"{late} <= was({late})" for late in GMC_HISTORY)  # nobody should be told to be late more often

GMC_FEATURES = (
    "revolving_utilization", "age", "times_30_59_days_late", "debt_ratio", "monthly_income",
    "open_credit_lines", "times_90_days_late", "real_estate_loans", "times_60_89_days_late", "dependents",
)  # fmt: skip

GMC = PublishedTable(
    name="gmc",
    title="Give Me Some Credit",
    rows=60_000,
    columns="9 numeric + 1 categorical, label serious_delinquency",
    label="serious_delinquency",
    favourable="no",
    inside=False,
    sha256="c36266bdb2788897028382b78262d063d9bd909e6e1702b36798540f79020976",
    what="a sample of 60,000 of the 150,000 rows of cs-training.csv",
    source=(
        "Kaggle competition Give Me Some Credit (2011), cs-training.csv, also in the GitHub repository "
        "SureshThyagara1/CYO---Kaggle-Give-Me-Some-Credit"
    ),
    licence="competition rules, no open licence stated",
    presets={
        "full": Preset(
            features=GMC_FEATURES,
            mask="age",
            immutable=("dependents",),
            history=GMC_HISTORY,
            passing=("age",),
            rules=GMC_RULES,
            notes=(
                "All 60,000 rows of the file, a sample of the published 150,000, unbalanced. The number of "
                "dependents is a category; the raw number is left out."
            ),
        ),
        "paper": Preset(
            features=GMC_FEATURES,
            mask="age",
            immutable=("dependents",),
            history=GMC_HISTORY,
            passing=("age",),
            rules=GMC_RULES,
            prepare=gmc_paper,
            notes=(
                "Complete rows only (48,144), and of those all 3,351 delinquent ones with as many others "
                "drawn at random. The paper's 15,000 rows for training cannot be reached with this file of "
                "60,000 rows. That the paper balanced, and which column is its category, is our reading of "
                "its counts."
            ),
        ),
    },
)

LAW_FEATURES = (
    "decile_year1", "decile_year3", "lsat", "undergrad_gpa", "year1_gpa_z", "law_school_gpa_z",
    "family_income", "school_tier", "enrolment", "sex", "race",
)  # fmt: skip

LAW_IMMUTABLE = ("family_income", "sex", "race")
LAW_HISTORY = ("decile_year1", "lsat", "undergrad_gpa", "year1_gpa_z")  # before the last year of studies

LAW = PublishedTable(
    name="law",
    title="Law school (LSAC bar passage)",
    rows=20_798,
    columns="8 numeric + 3 categorical, label bar_exam",
    label="bar_exam",
    favourable="passed",
    inside=False,
    sha256="a2a7f253af48bb3298bda67833f93c238750a88f6859d046786c0d553aae02d7",
    what="the cleaned table of law students, law_school_clean.csv, with readable names",
    source=(
        "Law School Admission Council, National Longitudinal Bar Passage Study (L. Wightman, 1998), cleaned "
        "in the GitHub repository tailequy/fairness_dataset"
    ),
    licence="none stated",
    presets={
        "full": Preset(
            features=LAW_FEATURES,
            mask="race",
            immutable=LAW_IMMUTABLE,
            history=LAW_HISTORY,
            notes="All rows and all features of the cleaned table, unbalanced.",
        ),
        "paper": Preset(
            features=LAW_FEATURES,
            mask="race",
            immutable=LAW_IMMUTABLE,
            history=LAW_HISTORY,
            prepare=law_paper,
            notes=(
                "All 2,293 who failed, with as many who passed drawn at random. The paper uses 5,502 / 1,000 "
                "/ 1,000 rows and does not say how they were chosen; balancing is our reading, and 4,586 "
                "rows are the most that a 1:1 balance leaves."
            ),
        ),
        "paper_size": Preset(
            features=LAW_FEATURES,
            mask="race",
            immutable=LAW_IMMUTABLE,
            history=LAW_HISTORY,
            prepare=law_paper_size,
            notes=(
                "The paper's 5,502 / 1,000 / 1,000 rows: all 2,293 who failed, with 5,209 who passed drawn at random, "
                "a balance of 1:2.27. That the paper kept all who failed is our reading."
            ),
        ),
    },
)

LCD_FEATURES = ("debt_to_income", "loan_amount", "interest_rate", "annual_income", "fico_score", "loan_term")
LCD_PAPER_FEATURES = tuple("last_fico_score" if f == "fico_score" else f for f in LCD_FEATURES)
LCD_PLACEHOLDERS = "A debt_to_income of -1 or 999 (one loan each) is a placeholder and became missing."

LCD = PublishedTable(
    name="lcd",
    title="Lending Club",
    rows=13_495,
    columns="5 numeric + 1 categorical, label loan_status",
    label="loan_status",
    favourable="paid",
    inside=False,
    sha256="ce03fdb441242785f5b563cc93592c59c4f4dc97b0768d461ba10a15f1fe613b",
    what="a union of six samples of the finished loans of 2007 to 2018",
    source=(
        "LendingClub's loan book, redistributed on Kaggle as wordsforthewise/lending-club; the GitHub "
        "repositories of the six samples are in docs/data.md"
    ),
    licence="third parties report CC0, not checked at the source",
    presets={
        "full": Preset(
            features=LCD_FEATURES,
            mask="loan_term",
            immutable=("interest_rate",),  # the lender's
            prepare=lcd_full,
            notes=f"All loans, unbalanced, with the FICO score at application. {LCD_PLACEHOLDERS}",
        ),
        "paper": Preset(
            features=LCD_PAPER_FEATURES,
            mask="loan_term",
            immutable=("interest_rate",),  # the lender's
            prepare=lcd_paper,
            notes=(
                "12,000 of the 12,496 loans that have a last FICO score, drawn at random, unbalanced: the "
                "paper's sizes. That score, pulled after the loan was made, takes the place of the one at "
                "application: the paper reports that FICO dominates its classifier, and with the score at "
                f"application it does not. It leaks the outcome; 0 in it means below 500. {LCD_PLACEHOLDERS}"
            ),
        ),
    },
)

PUBLISHED_TABLES: Mapping[str, PublishedTable] = {table.name: table for table in (ADULT, GERMAN, GMC, LAW, LCD)}
