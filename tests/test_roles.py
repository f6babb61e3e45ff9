"""Roles of columns: proposed for the columns of well-known tables, kept by the schema, and asked for on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fits import SHORT
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import tdce
from tdce import Categorical, InputError, Numeric, Schema
from tdce.cli import app
from tdce.diffusion import SamplingPlan
from tdce.schema.columns import infer_column
from tdce.schema.encoder import Encoder
from tdce.schema.feasible import FeasibleSet
from tdce.schema.profiling import profile_columns
from tdce.schema.roles import ROLES, SETTABLE, is_nothing, is_protected, is_result, never_categories, propose_role

# By role, with ? for a doubtful one; columns of numbers, but for those that are listed with their categories in WORDS.
TABLES = {
    "telco churn": {
        "immutable": "gender Dependents",
        "immutable?": "Partner",
        "passes with time": "SeniorCitizen tenure",
        "identifier?": "customerID",
        "actionable": "PhoneService MultipleLines InternetService OnlineSecurity OnlineBackup DeviceProtection "
        "TechSupport StreamingTV StreamingMovies Contract PaperlessBilling PaymentMethod MonthlyCharges TotalCharges",
    },
    "bank marketing": {
        "passes with time": "age pdays",
        "immutable": "marital",
        "history": "previous poutcome",
        "history?": "default",
        "actionable": "job education balance housing loan contact day month duration campaign",
    },
    "give me some credit": {
        "passes with time": "age",
        "history": "NumberOfTime30-59DaysPastDueNotWorse NumberOfTimes90DaysLate NumberOfTime60-89DaysPastDueNotWorse",
        "immutable": "NumberOfDependents",
        "actionable": "RevolvingUtilizationOfUnsecuredLines DebtRatio MonthlyIncome NumberOfOpenCreditLinesAndLoans "
        "NumberRealEstateLoansOrLines",
    },
    "compas": {
        "immutable": "sex race dob",
        "passes with time": "age age_cat",
        "history": "juv_fel_count juv_misd_count juv_other_count priors_count c_charge_degree days_b_screening_arrest "
        "is_recid two_year_recid",
        "actionable": "decile_score score_text",
    },
    "heloc": {
        "passes with time": "MSinceOldestTradeOpen MSinceMostRecentTradeOpen AverageMInFile MSinceMostRecentDelq "
        "MSinceMostRecentInqexcl7days",
        "history": "NumTrades60Ever2DerogPubRec NumTrades90Ever2DerogPubRec PercentTradesNeverDelq "
        "MaxDelq2PublicRecLast12M MaxDelqEver NumInqLast6M NumInqLast6Mexcl7days",
        "history?": "NumTradesOpeninLast12M",
        "actionable": "ExternalRiskEstimate NumSatisfactoryTrades NumTotalTrades PercentInstallTrades "
        "NetFractionRevolvingBurden NetFractionInstallBurden NumRevolvingTradesWBalance NumInstallTradesWBalance "
        "NumBank2NatlTradesWHighUtilization PercentTradesWBalance",
    },
    "lending club": {
        "history": "delinq_2yrs earliest_cr_line inq_last_6mths pub_rec collections_12_mths_ex_med "
        "pub_rec_bankruptcies pct_tl_nvr_dlq num_accts_ever_120_pd num_tl_30dpd",
        "history?": "acc_now_delinq last_pymnt_amnt recoveries chargeoff_within_12_mths",
        "passes with time": "mths_since_last_delinq mths_since_last_record mo_sin_old_il_acct mo_sin_rcnt_tl",
        "passes with time?": "emp_length",
        "identifier?": "zip_code member_id",
        "actionable": "loan_amnt term int_rate installment grade home_ownership annual_inc purpose dti fico_range_low "
        "open_acc revol_bal revol_util total_acc mort_acc addr_state title",
    },
    "german credit": {
        "passes with time": "age present_residence_since present_employment_since age_in_years",
        "passes with time?": "employment_years residence_years",
        "history": "credit_history",
        "immutable": "foreign_worker personal_status_sex",
        "actionable": "duration duration_in_month credit_amount savings purpose installment_rate other_debtors "
        "property housing existing_credits job telephone checking_status",
    },
    "adult": {
        "passes with time": "age",
        "immutable": "sex race native-country marital-status",
        "immutable?": "relationship",
        "actionable": "workclass fnlwgt education education-num occupation capital-gain capital-loss hours-per-week",
    },
    "student performance": {
        "immutable": "sex famsize",
        "immutable?": "guardian",
        "passes with time": "age",
        "history": "failures",
        "history?": "absences",
        "actionable": "school address traveltime studytime schoolsup famsup paid activities higher internet "
        "freetime goout health G1 G2",
    },
    "taiwan default": {
        "immutable": "SEX MARRIAGE",
        "passes with time": "AGE",
        "actionable": "LIMIT_BAL EDUCATION PAY_0 PAY_2 BILL_AMT1 PAY_AMT1",
    },
    "home credit": {
        "immutable": "CODE_GENDER CNT_CHILDREN NAME_FAMILY_STATUS_MARRIED DAYS_BIRTH",
        "passes with time?": "DAYS_EMPLOYED",
        "actionable": "AMT_INCOME_TOTAL AMT_CREDIT OWN_CAR_AGE FLAG_OWN_REALTY NAME_HOUSING_TYPE",
    },
    "attrition": {
        "passes with time": "Age YearsAtCompany YearsInCurrentRole YearsSinceLastPromotion YearsWithCurrManager "
        "TotalWorkingYears",
        "immutable": "Gender MaritalStatus",
        "actionable": "BusinessTravel DailyRate DistanceFromHome JobLevel MonthlyIncome OverTime TrainingTimes "
        "WorkLifeBalance",
    },
    "German names": {
        "passes with time": "Alter Kunde_seit Betriebszugehörigkeit Betriebszugehoerigkeit Mitgliedsjahre",
        "passes with time?": "Beschäftigungsdauer Wohndauer Berufserfahrung",
        "immutable": "Geschlecht Familienstand Staatsangehörigkeit Geburtsjahr Religion AnzahlKinder Kinderzahl "
        "Migrationshintergrund",
        "history": "Mahnungen Zahlungsverzug Zahlungsrückstände frühere_Kredite Kreditanfragen Vorstrafen "
        "Privatinsolvenz",
        "history?": "letzte_Zahlung Ausfall",
        "identifier?": "Kundennummer PLZ",
        "actionable": "Einkommen Kreditsumme Laufzeit Laufzeit_Monate Verwendungszweck Beruf Wohnsituation "
        "Sparguthaben Kreditrate Haushaltsausgaben",
    },
    "health": {
        "immutable": "height HeightCm body_height blood_group bloodType Körpergröße Blutgruppe",
        "actionable": "weight_kg bmi cholesterol ceiling_height box_height height_of_building Packungshöhe",
    },
    "things have ages, too": {
        "actionable": "AgeOfCar vehicle_age house_age alter_fahrzeug company_age message average storage page language",
        "passes with time": "account_age age_of_oldest_account credit_age AgeInMonths ageGroup",
    },
}  # fmt: skip
NAMES = [
    (table, name, role) for table, roles in TABLES.items() for role, names in roles.items() for name in names.split()
]


@pytest.mark.parametrize(("table", "name", "role"), NAMES, ids=[f"{table}-{name}" for table, name, _ in NAMES])
def test_the_roles_of_well_known_columns(table: str, name: str, role: str) -> None:
    assert propose_role(Numeric(name, 0, 100, 1.0)) == (role.rstrip("?"), not role.endswith("?"))


@pytest.mark.parametrize(
    ("categories", "role"),
    [
        (("Female", "Male"), "immutable"),
        (("F", "M"), "immutable"),
        (("d", "m", "w"), "immutable"),
        (("male single", "female divorced/separated", "male married"), "immutable"),
        (("Husband", "Wife", "Own-child", "Unmarried"), "immutable"),
        (("ledig", "verheiratet", "geschieden"), "immutable"),
        (("L", "M", "S"), "actionable"),
        (("black", "white", "red"), "actionable"),  # of cars
        (("single", "double"), "actionable"),  # rooms
        (("own", "rent"), "actionable"),
    ],
)
def test_categories_tell_what_a_name_hides(categories: tuple[str, ...], role: str) -> None:
    assert propose_role(Categorical("x", categories)) == (role, True)


def test_a_year_that_is_since_is_history_and_a_length_of_time_passes() -> None:
    assert propose_role(Numeric("customer_since", 1998, 2024, 1.0)) == ("history", True)
    assert propose_role(Numeric("customer_since", 0, 24, 1.0)) == ("passes with time", True)


def test_employment_in_words_is_no_length_of_time() -> None:
    assert propose_role(Categorical("employment", ("full-time", "part-time"))) == ("actionable", True)
    years = infer_column(pd.Series(["1 to 4 years", "4 to 7 years", "under 1 year"], name="employment"))
    assert propose_role(years) == ("passes with time", False)


def test_names_of_results() -> None:
    results = (
        "total_charges TotalCharges sum avg_balance debt_ratio pct_paid Gesamtbetrag Schuldenquote Anteil netto_lohn"
    )
    assert [name for name in results.split() if not is_result(name)] == []
    assert [name for name in ("income", "months", "price", "purpose", "summer", "meaning") if is_result(name)] == []


def test_protected_attributes_by_name() -> None:
    assert all(map(is_protected, ("sex", "nativeCountry", "Behinderung", "age", "Ausländer", "Auslaender", "religion")))
    assert not any(map(is_protected, ("account_age", "AgeOfCar", "income", "stage", "late_payments", "tenure")))


# --- categories that say that nothing is there


@pytest.mark.parametrize(
    ("column", "category", "nothing"),
    [
        ("checking_account", "no account", True),
        ("checking_account", "none", True),
        ("checking", "no checking account", True),
        ("savings", "no known savings", True),
        ("savings", "None", True),
        ("Girokonto", "kein Konto", True),
        ("Girokonto", "keine", True),
        ("Ersparnisse", "keine Ersparnisse", True),
        ("OnlineBackup", "No internet service", True),
        ("MultipleLines", "No phone service", True),
        ("employment", "unemployed", True),
        ("workclass", "Without-pay", True),
        ("other_debtors", "none", False),
        ("other_instalment_plans", "none", False),
        ("other_instalment_plans", "no plan", False),
        ("existing_debts", "keine", False),
        ("late_payments", "none", False),
        ("telephone", "no", False),
        ("credit_history", "no credits or all repaid", False),
        ("savings", "no account at all, or below 100", False),  # whole texts only
        ("job", "nobody", False),
    ],
)
def test_nothing_there_is_no_improvement(column: str, category: str, nothing: bool) -> None:
    assert is_nothing(column, category) == nothing
    inferred = infer_column(pd.Series(["a", "b", category], name=column))
    assert isinstance(inferred, Categorical)
    assert (inferred.allowed is not None and category not in inferred.allowed) == nothing


@pytest.mark.parametrize(
    ("categories", "never"),
    [
        (["never smoked", "formerly smoked", "smokes"], ["never smoked"]),
        (["never", "ex-smoker", "current"], ["never"]),
        (["nie", "ehemalige Raucherin", "raucht"], ["nie"]),
        (["never", "sometimes", "often"], []),  # a habit that can be given up
        (["former customer", "customer"], []),
    ],
)
def test_nobody_is_told_to_have_never_done_what_they_did(categories: list[str], never: list[str]) -> None:
    assert never_categories(categories) == never
    inferred = infer_column(pd.Series(categories * 3, name="habit"))
    assert isinstance(inferred, Categorical)
    assert set(inferred.allowed or inferred.categories) == set(categories) - set(never)


def test_the_hint_on_a_fact_of_the_body_does_not_call_it_protected() -> None:
    frame = pd.DataFrame({"height_cm": np.arange(150.0, 210), "weight_kg": np.arange(50.0, 110)})
    schema = Schema.infer(frame)
    assert schema["height_cm"].immutable
    hints = profile_columns(frame, schema, proposed=["height_cm"])
    assert "'height_cm' is a fact of the body: not changed; " in " ".join(hints)
    assert not is_protected("height_cm")


def test_who_has_nothing_keeps_it_and_nobody_else_is_told_to() -> None:
    frame = pd.DataFrame({"account": ["none", "small", "large"] * 20, "x": np.arange(60) % 7})
    encoder = Encoder.fit(frame, Schema.infer(frame))
    feasible = FeasibleSet.of(encoder, frame)
    none = np.zeros(len(frame)) + encoder.schema["account"].categories.index("none")  # type: ignore[attr-defined]
    changed = np.column_stack([none, feasible.own[:, 1]])
    assert feasible.contains(changed).tolist() == (frame["account"] == "none").tolist()
    allowed = encoder.schema.change("account", allowed=None)
    assert FeasibleSet.of(Encoder.fit(frame, allowed), frame).contains(changed).all()


# --- roles in a schema


def people(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "age": rng.integers(18, 80, rows),
        "sex": rng.choice(["female", "male"], rows),
        "late_payments": rng.integers(0, 9, rows),
        "employment_years": rng.integers(0, 30, rows),
        "education_num": rng.integers(1, 16, rows),
        "income": rng.normal(3000, 500, rows).round(2),
        "decision": rng.choice(["good", "bad"], rows),
    })  # fmt: skip


def test_the_roles_of_a_table() -> None:
    schema = Schema.infer(people(), "decision")
    assert schema.roles == {
        "age": "passes with time", "sex": "immutable", "late_payments": "history", "employment_years": "actionable",
        "education_num": "actionable", "income": "actionable",
    }  # fmt: skip
    assert schema.immutable == ("age", "sex", "late_payments")
    assert [line[3] for line in schema.describe()] == [
        "no (passes with time)", "no", "no (history)", "yes", "yes", "yes",
    ]  # fmt: skip
    plain = Schema.infer(people(), "decision", roles=False)
    assert set(plain.roles.values()) == {"actionable"}
    assert plain.immutable == ()
    assert plain.with_proposed_roles() == schema


def test_each_role_is_said_in_one_line_and_doubts_are_hints() -> None:
    frame = people()
    schema = Schema.infer(frame, "decision")
    assert profile_columns(frame, schema, proposed=schema.immutable) == [
        "'age' passes with time: not changed; to allow it: actionable=['age'] or --actionable age",
        "'sex' is a protected attribute: not changed; to allow it: actionable=['sex'] or --actionable sex",
        "'late_payments' is history: not changed; to allow it: actionable=['late_payments'] "
        "or --actionable late_payments",
        "'employment_years' may pass with time; to keep answers from changing it: immutable=['employment_years'] "
        "or --immutable employment_years",
        "'education_num' can hardly fall; to let it rise only: schema.change('education_num', direction='increase')",
    ]
    assert profile_columns(frame, schema, asked=schema.names) == []
    assert profile_columns(frame, schema.open("sex"))[0].startswith("'sex' is a protected attribute; to keep answers")


def test_an_ordered_education_may_rise_by_a_rule() -> None:
    levels = pd.Categorical(["low", "high"] * 30, ["low", "high"], ordered=True)
    frame = pd.DataFrame({"my education": levels, "income": range(60)})
    schema = Schema.infer(frame, learn=["income"])
    (hint,) = profile_columns(frame, schema)
    rule = hint.partition("schema.with_rules(")[2][1:-2]
    assert profile_columns(frame, schema.with_rules(rule)) == []  # the rule that is suggested can be parsed


def test_actionable_opens_and_frozen_columns_are_immutable() -> None:
    schema = Schema.infer(people(), "decision")
    assert schema.change("age", role="actionable")["age"] == Schema.infer(people(), "decision", roles=False)["age"]
    assert schema.open("age", "sex").immutable == ("late_payments",)
    assert schema.freeze("income").roles["income"] == "immutable"
    assert schema.change("income", immutable=True).change("income", immutable=False) == schema
    assert schema.freeze("age").roles["age"] == "passes with time"
    for role in ("identifier", "immutable", "history", "passes with time"):
        assert schema.change("income", role=role).immutable == ("age", "sex", "late_payments", "income")


@pytest.mark.parametrize("role", ["history", "passes with time"])
def test_what_happened_only_rises_once_it_is_opened(role: str) -> None:
    frame = people()
    schema = Schema.infer(frame, "decision", roles=False).change("late_payments", role=role)
    opened = schema.change("late_payments", immutable=False)
    assert opened.roles["late_payments"] == role
    assert opened.describe()[2][3] == f"only up ({role})"
    feasible = FeasibleSet.of(Encoder.fit(frame, opened), frame)
    fewer, more = feasible.own.copy(), feasible.own.copy()
    fewer[:, 2], more[:, 2] = np.maximum(fewer[:, 2] - 1, 0), np.minimum(more[:, 2] + 1, 8)
    assert feasible.contains(more).all()
    assert feasible.contains(fewer).tolist() == (frame["late_payments"] == 0).tolist()
    with pytest.raises(
        InputError, match=f"'late_payments': the role '{role}' allows no decrease; set the role 'actionable'"
    ):
        opened.change("late_payments", direction="decrease")
    assert opened.change("late_payments", role="actionable")["late_payments"].may_change == "yes"
    assert Schema.from_json(opened.to_json()) == opened


@pytest.mark.parametrize("role", ["history", "passes with time", "identifier", "immutable", "actionable"])
@pytest.mark.parametrize("kind", ["numeric", "categorical"])
def test_roles_survive_json_and_a_change_of_kind(role: str, kind: str) -> None:
    schema = Schema((Numeric("x", 0, 5, 1.0),)).change("x", kind=kind).change("x", role=role)
    assert schema.roles == {"x": role}
    assert Schema.from_json(schema.to_json()) == schema
    assert ("role" in schema["x"].entry()) == (role not in ("actionable", "immutable"))  # `immutable` says it
    other = schema.change("x", kind="categorical" if kind == "numeric" else "numeric")
    assert (other.roles, other.immutable) == (schema.roles, schema.immutable)
    assert schema["x"].unrestricted().role == "actionable"


def test_a_role_in_json_alone_is_enough() -> None:
    entry = {"kind": "numeric", "name": "x", "low": 0, "high": 5}
    for role, immutable in (("history", True), ("identifier", True), ("actionable", False)):
        text = json.dumps({"tdce_schema": 1, "features": [entry | {"role": role}]})
        assert Schema.from_json(text)["x"].immutable == immutable
    text = json.dumps({"tdce_schema": 1, "features": [entry | {"immutable": True}]})
    assert Schema.from_json(text).roles == {"x": "immutable"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"role": "histori"},
            r"'x': there is no role 'histori'; did you mean 'history'\? known: actionable, immutable",
        ),
        ({"role": 3}, "'x': there is no role 3; known: actionable, immutable, passes with time, history, identifier"),
        ({"role": ["history"]}, "'x': there is no role"),
        (
            {"role": "follows"},
            "'x': the role 'follows' comes from a law of the table and is not set; known: actionable",
        ),
        (
            {"role": "identifier", "immutable": False},
            "'x': role 'identifier' contradicts immutable false; leave out one",
        ),
        ({"role": "actionable", "immutable": True}, "'x': role 'actionable' contradicts immutable true; leave out one"),
    ],
)
def test_a_wrong_role_is_named(settings: dict[str, Any], message: str) -> None:
    schema = Schema((Numeric("x", 0, 5),))
    with pytest.raises(InputError, match=message):
        schema.change("x", **settings)
    text = json.dumps(
        {"tdce_schema": 1, "features": [{"kind": "numeric", "name": "x", "low": 0, "high": 5} | settings]}
    )
    with pytest.raises(InputError, match=message):
        Schema.from_json(text)


@given(st.lists(st.sampled_from([
    {"role": "actionable"}, {"role": "immutable"}, {"role": "history"}, {"role": "passes with time"},
    {"role": "identifier"}, {"immutable": True}, {"immutable": False}, {"direction": "increase"},
    {"direction": "decrease"}, {"kind": "categorical"}, {"kind": "numeric"},
]), max_size=8))  # fmt: skip
def test_after_any_changes_role_and_immutable_agree(changes: list[dict[str, Any]]) -> None:
    schema = Schema((Numeric("x", 0, 5, 1.0),))
    for settings in changes:
        try:
            schema = schema.change("x", **settings)
        except InputError:
            continue
        column = schema["x"]
        assert column.role in SETTABLE
        assert column.immutable or column.role in ("actionable", "passes with time", "history")
        assert not column.immutable or column.role != "actionable"
        if not column.immutable and column.role != "actionable" and isinstance(column, Numeric):
            assert column.direction == "increase"
        for key, value in settings.items():
            assert getattr(column, key) == value or (key, column.role) == ("immutable", "immutable")
        assert Schema.from_json(schema.to_json()) == schema


@given(st.text(max_size=40))
def test_any_name_has_a_role(name: str) -> None:
    role, _ = propose_role(Numeric(name, 0, 1))
    assert role in ROLES
    is_nothing(name, name)


# --- fit


def fitted(frame: pd.DataFrame, **settings: Any) -> tdce.Explainer:
    plans = replace(SHORT, sampling=SamplingPlan(32, 1024, 2))
    explainer = tdce.Explainer(hidden=8, steps=2, plans=plans, progress="silent")
    return explainer.fit(frame, label="decision", favourable="good", **settings)


def test_fit_proposes_roles_and_what_the_user_says_wins() -> None:
    frame = people()
    assert fitted(frame).schema.immutable == ("age", "sex", "late_payments")
    told = fitted(frame, immutable=["income"], actionable=["age"])
    assert told.schema.roles == {**Schema.infer(frame, "decision").roles, "age": "actionable", "income": "immutable"}
    assert [hint.split()[0] for hint in told.hints] == [
        "'sex'",
        "'late_payments'",
        "'employment_years'",
        "'education_num'",
    ]
    given = Schema.infer(frame, "decision", roles=False)
    assert fitted(frame, schema=given).schema.roles == given.roles


def test_columns_that_are_named_wrongly() -> None:
    with pytest.raises(InputError, match=r"actionable: there is no feature 'agee'; did you mean 'age'\?"):
        fitted(people(), actionable=["agee"])
    with pytest.raises(InputError, match="'age' is named as immutable and as actionable; leave out one of them"):
        fitted(people(), actionable=["age"], immutable=["age"])
    with pytest.raises(InputError, match="actionable must be a list of names"):
        fitted(people(), actionable="age")


# --- data sets


def test_the_data_sets_inside_have_roles() -> None:
    assert {name: role for name, role in tdce.load("german").schema.roles.items() if role != "actionable"} == {
        "credit_history": "history", "employment": "passes with time", "personal_status": "immutable",
        "residence_years": "passes with time", "age": "passes with time", "existing_credits": "history",
        "people_supported": "immutable", "foreign_worker": "immutable",
    }  # fmt: skip
    assert {name: role for name, role in tdce.load("adult").schema.roles.items() if role != "actionable"} == {
        "age": "passes with time", "final_weight": "immutable", "marital_status": "immutable",
        "relationship": "immutable", "race": "immutable", "sex": "immutable", "capital_gain": "history",
        "capital_loss": "history", "native_country": "immutable", "education_num": "follows",
    }  # fmt: skip
    account = tdce.load("german").schema["checking_account"]
    assert isinstance(account, Categorical)
    assert account.allowed == ("0 to 200 DM", "200 DM or more", "below 0 DM")


def test_the_benchmark_measures_the_setting_of_the_paper() -> None:
    settings = pytest.importorskip("tdce_reproduction.benchmark.settings")
    for column in settings.plain_schema("german"):
        assert (column.immutable, column.role, getattr(column, "allowed", None)) == (False, "actionable", None)


# --- the command line


@pytest.fixture
def table(tmp_path: Path) -> Path:
    people().to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def test_schema_shows_roles_and_hints(table: Path) -> None:
    shown = CliRunner().invoke(app, ["schema", str(table), "--label", "decision"])
    assert shown.exit_code == 0
    for text in ("no (passes with time)", "no (history)", "'age' passes with time: not changed", "--actionable age",
                 "'employment_years' may pass with time"):  # fmt: skip
        assert text in shown.stdout


def test_fit_takes_actionable_columns(table: Path) -> None:
    arguments = ["fit", str(table), "--label", "decision", "--out", str(table.parent / "m.tdce"), "--actionable"]
    with pytest.raises(InputError, match=r"actionable: there is no feature 'agee'; did you mean 'age'\?"):
        CliRunner().invoke(app, [*arguments, "income,agee"], catch_exceptions=False)
    with pytest.raises(InputError, match="'sex' is named as immutable and as actionable"):
        CliRunner().invoke(app, [*arguments, "age,sex", "--immutable", "sex"], catch_exceptions=False)


def test_without_a_terminal_nobody_is_asked(table: Path) -> None:
    out = table.parent / "schema.json"
    refused = CliRunner().invoke(app, ["schema", str(table), "--ask", "--out", str(out)], input="a\n" * 20)
    assert isinstance(refused.exception, InputError)
    assert "--ask asks on a terminal" in str(refused.exception)
    assert "--out FILE" in str(refused.exception)
    assert not out.exists()


def on_a_terminal(arguments: list[str], answers: list[str]) -> tuple[int, str, str]:
    """Exit code, what the terminal shows, and standard output of a command that is answered prompt by prompt."""
    master, slave = pty.openpty()
    code = "from tdce.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=slave, stderr=slave, stdout=subprocess.PIPE, env=os.environ
    )
    os.close(slave)
    shown, waiting, deadline = b"", list(answers), time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 0.1)
        if ready:
            try:
                shown += os.read(master, 4096)
            except OSError:  # the other end is closed
                break
        elif process.poll() is not None:
            break
        if waiting and shown.endswith(b"]: "):
            os.write(master, waiting.pop(0).encode())
            time.sleep(0.02)
            shown += b"|"
    output, _ = process.communicate(timeout=60)
    os.close(master)
    return process.returncode, shown.decode(), output.decode()


def test_asked_on_a_terminal_column_by_column(table: Path) -> None:
    answers = [
        "\n",  # age: passes with time
        "a\n", "\n",  # sex: actionable; cost
        "x\n", "history\n",  # late payments: a mistake, then by its word
        "t\n",  # employment_years
        "\n", "up\n", "2\n",  # education_num: actionable, only up, cost
        "A\n", "sideways\n", "\n", "-1\n", "0.5\n",  # income
    ]  # fmt: skip
    out = table.parent / "schema.json"
    code, shown, _ = on_a_terminal(["schema", str(table), "--label", "decision", "--ask", "--out", str(out)], answers)
    assert code == 0, shown
    schema = Schema.from_json(out.read_text())
    assert schema.roles == {
        "age": "passes with time", "sex": "actionable", "late_payments": "history",
        "employment_years": "passes with time", "education_num": "actionable", "income": "actionable",
    }  # fmt: skip
    assert schema["education_num"].may_change == "increase"
    assert schema.costs == {"education_num": 2, "income": 0.5}
    for text in ("1 of 6  age (numeric)", "role [passes with time]: ", "'x' must be one of a, i, t, h, d",
                 "'employment_years' may pass with time", "'sideways' must be one of any, up, down",
                 "'-1' must be a number from 0 to 1000"):  # fmt: skip
        assert text in shown


def test_asked_without_out_the_schema_goes_to_standard_output(table: Path) -> None:
    code, shown, output = on_a_terminal(["schema", str(table), "--label", "decision", "--ask"], ["\n"] * 20)
    assert code == 0, shown
    assert Schema.from_json(output) == Schema.infer(pd.read_csv(table), "decision")


@pytest.mark.parametrize("last", ["q\n", "\x04"])
def test_whoever_stops_gets_nothing_written(table: Path, last: str) -> None:
    out = table.parent / "schema.json"
    arguments = ["schema", str(table), "--label", "decision", "--ask", "--out", str(out)]
    code, shown, output = on_a_terminal(arguments, ["\n", "\n", last])
    assert (code, output) == (1, "")
    assert "stopped; nothing is written" in shown
    assert not out.exists()
