"""By default no artefact holds what fewer than five people have: ends, quantiles, categories, laws' values, rows."""

import json
import pickle
from copy import copy

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors.numpy import load

import tdce
from tdce._core import InputError, Progress
from tdce.diffusion import plausibility
from tdce.diffusion.synthetic import _excess, draw_synthetic, row_bytes, share_by_chance
from tdce.schema import Categorical, Encoder, Numeric, Schema, pool_schema
from tdce.schema.columns import unlisted
from tdce.schema.columns.pooling import MIN_PEOPLE, people_with, pool_ends
from tdce.schema.constraints.laws import Chosen, Determines, Equivalent, Follows, Given, State, Within

SALARY, TOWN, ILLNESS = 987_654.0, "Hintertupfing", "kuru"


def people(rows: int = 300) -> pd.DataFrame:
    """One person has a salary, another one a town, a third one an illness that nobody else has."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "salary": rng.normal(3000, 800, rows).round(),
        "town": rng.choice(["Bonn", "Kiel", "Ulm"], rows),
        "illness": rng.choice(["none", "flu", "cold"], rows),
    })  # fmt: skip
    frame.loc[3, "salary"], frame.loc[7, "town"], frame.loc[11, "illness"] = SALARY, TOWN, ILLNESS
    return frame.assign(decision=np.where((frame["salary"] > 3000) & (frame["town"] != "Ulm"), "yes", "no"))


def fitted(frame: pd.DataFrame, **settings: object) -> tdce.Explainer:
    explainer = tdce.Explainer(hidden=16, steps=40, progress="silent", **settings)
    return explainer.fit(frame, label="decision", favourable="yes")


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return fitted(people())


def held(path) -> tuple[str, np.ndarray]:
    """All text of an artefact, and all its numbers."""
    whole = path.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    tensors = load(whole)
    text = json.loads(whole[8 : 8 + size])["__metadata__"]["tdce"]
    return text, np.concatenate([array.ravel().astype(np.float64) for array in tensors.values()])


@pytest.mark.parametrize("exact", [False, True])
def test_an_artefact_holds_nobodys_own_salary_town_or_illness_unless_it_is_to_be_exact(exact, explainer, tmp_path):
    made = fitted(people(), exact=True) if exact else explainer
    made.save(tmp_path / "a.tdce")
    text, numbers = held(tmp_path / "a.tdce")
    found = {TOWN in text, ILLNESS in text, SALARY in numbers, f"{SALARY:.0f}" in text}
    assert found == {exact}
    assert "Bonn" in text
    loaded = tdce.Explainer.load(tmp_path / "a.tdce", progress="silent")
    assert loaded.exact == loaded.get_params()["exact"] == exact


def test_with_rows_kept_it_holds_them_as_they_were_learned(tmp_path):
    made = fitted(people(60), keep_rows=True)
    made.save(tmp_path / "a.tdce")
    raw = tdce.Explainer.load(tmp_path / "a.tdce", progress="silent").fitted.raw
    assert len(raw) == 48
    assert raw[:, 0].max() < SALARY


def test_a_file_says_how_it_was_learned_not_what_is_set_afterwards(explainer, tmp_path):
    changed = copy(explainer).set_params(exact=True)
    changed.save(tmp_path / "a.tdce")
    assert not tdce.Explainer.load(tmp_path / "a.tdce", progress="silent").exact


def test_a_rule_beyond_the_pooled_ends_is_told_the_way_out():
    schema = Schema.infer(people(), "decision").with_rules("salary >= 500000")
    with pytest.raises(InputError, match="set low and high in the schema, or exact=True"):
        pool_schema(schema, people())


def test_exact_is_checked():
    with pytest.raises(InputError, match="exact"):
        tdce.Explainer(exact="yes").fit(people(), label="decision")


def test_a_module_on_encoded_rows_gets_them_as_it_was_trained_with():
    frame = people(80)
    encoder = Encoder.fit(frame, Schema.infer(frame, "decision"))
    module = torch.nn.Linear(encoder.space.width, 2)
    made = fitted(frame, model=module)
    assert torch.equal(made.fitted.encoder.encode(frame), encoder.encode(frame))
    assert made.fitted.exact
    assert any("learned exactly" in hint for hint in made.hints)


# Numbers

NUMBERS = st.one_of(
    arrays(np.float64, st.integers(2, 300), elements=st.floats(-1e6, 1e6)),
    arrays(np.float64, st.integers(2, 300), elements=st.integers(-50, 50).map(float)),
    arrays(np.float64, st.integers(2, 300), elements=st.sampled_from([0.0, 1.0, 2.5, 100.0, -1.0, 999.0])),
)


def learned(values: np.ndarray) -> Encoder:
    frame = pd.DataFrame({"a": values})
    return Encoder.fit(frame, pool_schema(Schema.infer(frame, learn=["a"]), frame), pooled=True)


@given(NUMBERS)
def test_whatever_is_learned_of_numbers_can_be_used(values):
    encoder = learned(values)
    raw = encoder.nearest_known(encoder.read(pd.DataFrame({"a": values})))
    assert np.isfinite(encoder.embed(raw).numpy()).all()
    column = encoder.columns[0]
    assert column.knows(raw[:, 0]).all()
    if isinstance(column.column, Numeric):
        assert column.scale.increases
        assert len(column.scale.raw) <= max(2, len(values) // 20)


@given(st.integers(6, 400), st.integers(0, 2**32 - 1))
def test_no_quantile_or_end_of_different_numbers_is_one_of_them(rows, seed):
    values = np.random.default_rng(seed).lognormal(0, 2, rows)
    column = learned(values).columns[0]
    kept = [column.column.low, column.column.high, *column.scale.raw]
    assert not np.isin(kept, values).any()


@given(st.integers(40, 400), st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_four_people_beyond_the_others_change_nothing(rows, seed, beyond):
    values = np.sort(np.random.default_rng(seed).normal(0, 1, rows))
    richer = values.copy()
    richer[-beyond:] *= 1e6
    first, second = learned(values).columns[0], learned(richer).columns[0]
    assert first.column == second.column
    np.testing.assert_array_equal(first.scale.raw, second.scale.raw)
    np.testing.assert_array_equal(first.scale.score, second.scale.score)


def test_an_end_that_five_people_share_is_kept():
    values = np.r_[np.zeros(5), np.arange(1, 90), np.full(4, 99.0)]  # of 98 people the fifth to ninth richest: 89 to 85
    assert pool_ends(values) == (0.0, 87.0)
    assert pool_ends(np.array([1.0, 2, 3, 4, 5, 6])) == (3.0, 4.0)  # a small table: the five at either end


def test_an_end_that_the_user_sets_stays():
    frame = pd.DataFrame({"a": np.arange(100.0)})
    schema = Schema.infer(frame, learn=["a"])
    assert (pool_schema(schema, frame)["a"].low, pool_schema(schema, frame)["a"].high) == (6.0, 93.0)
    column = pool_schema(schema.change("a", low=-5, high=120), frame)["a"]
    assert (column.low, column.high) == (-5.0, 120.0)


def test_levels_of_few_people_are_left_out():
    frame = pd.DataFrame({"a": [0.0] * 200 + [3103.0] * 150 + [5178.0] * 4})
    schema = Schema.infer(frame)
    assert schema["a"].levels == (0.0, 3103.0, 5178.0)
    assert pool_schema(schema, frame)["a"] == Numeric("a", 0, 3103, 1, (0, 3103))


def test_a_value_beyond_the_ends_stays_in_the_answer(explainer):
    row = people().loc[[3]].drop(columns="decision").assign(town="Ulm")
    answer = explainer.explain(row, immutable=["salary"]).to_frame()
    assert answer["salary"].tolist() == [SALARY]
    assert "far outside the range learned" in answer["note"].iloc[0]


def test_no_quantile_of_energies_is_one_persons(explainer):
    model, frame = explainer.fitted, people(200)
    raw = model.encoder.read(frame)
    y = torch.arange(200) % 2
    settings = (model.encoder, model.diffusion, raw, y, 2, 0, Progress("silent"))
    energy = plausibility.energies(model.encoder, model.diffusion, raw, y).numpy()
    assert np.isin(plausibility.measure_energy_quantiles(*settings).numpy(), energy).any()
    pooled = plausibility.measure_energy_quantiles(*settings, pooled=True).numpy()
    assert not np.isin(pooled, energy).any()
    assert (np.diff(pooled) >= 0).all()


# Categories


def test_a_rare_category_is_given_to_the_users_model_and_comes_back(tmp_path):
    frame, seen = people(), set()

    def model(rows: pd.DataFrame) -> np.ndarray:
        seen.update(rows["town"])
        unknown = set(rows["town"]) - {"Bonn", "Kiel", "Ulm", TOWN}
        if unknown:
            raise ValueError(f"unknown: {unknown}")
        return ((rows["salary"] > 3000) & (rows["town"] != "Ulm")).to_numpy().astype(float)

    explainer = fitted(frame, model=model)
    explainer.save(tmp_path / "a.tdce")
    assert TOWN not in held(tmp_path / "a.tdce")[0]
    loaded = tdce.Explainer.load(tmp_path / "a.tdce", model=model, progress="silent")
    seen.clear()
    row = frame.loc[[7]].drop(columns="decision").assign(salary=1500.0)
    answer = loaded.explain(row).to_frame()
    assert TOWN in seen
    assert answer["status"].tolist() == ["valid"]
    assert answer["town"].tolist() == [TOWN]
    assert "rare" in answer["note"].iloc[0]


def test_a_category_that_nobody_has_is_rare_where_some_are_and_an_error_elsewhere(explainer):
    row = people().loc[[0]].drop(columns="decision")
    note = explainer.explain(row.assign(town="Atlantis")).to_frame()["note"].iloc[0]
    assert "town Atlantis is rare or does not occur in the training data" in note
    plain = fitted(people().assign(town=lambda frame: frame["town"].replace(TOWN, "Bonn")))
    with pytest.raises(InputError, match="'town' has category 'Atlantis'"):
        plain.explain(row.assign(town="Atlantis"))


def test_rare_categories_are_never_proposed_unless_the_user_lists_them(explainer):
    frame = people()
    schema = Schema.infer(frame, "decision").change("town", rare=False)
    assert pool_schema(schema, frame)["town"].categories == ("Bonn", TOWN, "Kiel", "Ulm")
    named = schema.change("town", rare=None).with_rules(f"town != '{TOWN}'")
    assert TOWN in pool_schema(named, frame)["town"].categories
    answer = explainer.explain(frame.drop(columns="decision").head(40), n=3).to_frame()
    assert set(answer["town"]) <= {"Bonn", "Kiel", "Ulm", TOWN}
    assert (answer.loc[answer["town"] == TOWN, "row"] == 7).all()


def test_a_rule_about_another_category_holds_for_a_rare_one(explainer):
    row = people().loc[[7]].drop(columns="decision").assign(salary=1500.0)
    answer = explainer.explain(row, rules=["town != 'Ulm'"]).to_frame()
    assert answer["status"].tolist() == ["valid"]
    assert answer["town"].iloc[0] != "Ulm"


def test_a_column_of_rare_categories_only_still_works(tmp_path):
    rng = np.random.default_rng(1)
    towns = [f"town {i}" for i in range(200) for _ in range(1 + i % 3)]
    frame = pd.DataFrame({"income": rng.normal(0, 1, len(towns)), "town": towns})
    frame["decision"] = np.where(frame["income"] > 0, "yes", "no")
    made = fitted(frame)
    assert made.schema["town"] == Categorical("town", (), rare=True)
    made.save(tmp_path / "a.tdce")
    rows = frame[frame["decision"] == "no"].head(5).drop(columns="decision")
    answer = tdce.Explainer.load(tmp_path / "a.tdce", progress="silent").explain(rows).to_frame()
    assert answer["town"].tolist() == rows["town"].tolist()
    assert fitted(frame, model=lambda f: (f["town"].str[-1] == "1").astype(float)).schema["town"].rare is False


def test_an_answer_in_another_process_knows_the_names_of_rare_categories(explainer):
    row = people().loc[[7]].drop(columns="decision").assign(salary=1500.0)
    answer = explainer.explain(row)
    sent = pickle.dumps(answer)
    unlisted._names.clear()  # as in another process
    assert pickle.loads(sent).evidence() == answer.evidence()
    assert TOWN in str(answer.evidence())


def test_forgotten_names_are_called_rare(monkeypatch):
    monkeypatch.setattr(unlisted, "MAX_NAMES", 2)
    codes = [unlisted.unlisted_code(value) for value in ("a", 1, True)]
    assert len(set(codes)) == 3
    assert [unlisted.unlisted_name(code) for code in codes] == [unlisted.RARE, 1, True]


def test_a_schema_says_in_json_what_is_rare():
    schema = Schema(
        (Categorical("a", ("x",), rare=True), Categorical("b", ("x",), rare=False), Categorical("c", ("x",)))
    )
    assert Schema.from_json(schema.to_json()) == schema
    assert schema.to_json().count("rare") == 2
    with pytest.raises(InputError, match="rare 1 must be true, false or null"):
        Categorical("a", ("x",), rare=1)


# Laws and synthetic rows


def test_laws_name_no_value_of_few_people():
    frame = pd.DataFrame({"town": ["Bonn"] * 50 + ["Kiel"] * 50 + [TOWN], "land": ["W"] * 50 + ["N"] * 50 + ["S"]})
    frame["rent"] = [0.0] * 50 + list(np.arange(50) + 300.5) + [777.0]
    features = Schema.infer(frame).features
    pairs = (("Bonn", "W"), (TOWN, "S"), ("Kiel", "N"))
    laws = (
        Determines("town", "land", pairs, 101),
        Given(State("town", ("Bonn",)), State("rent", (0.0,)), 0.0, TOWN, 50),
        Given(State("rent", (0.0,), but=True), State("town", ("Kiel", TOWN)), TOWN, 300.5, 51),
        Given(State("land", ("S",)), State("rent", (777.0,)), 777.0, None, 1),
    )
    first, second, third = pool_schema(Schema(features, laws), frame).laws
    assert first == Determines("town", "land", (("Bonn", "W"), ("Kiel", "N")), 101)
    assert second == Given(State("town", ("Bonn",)), State("rent", (0.0,)), 0.0, None, 50)
    assert third == Given(State("rent", (0.0,), but=True), State("town", ("Kiel",)), None, third.otherwise, 51)


def test_ranges_curves_and_choices_name_no_value_of_few_people():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"kind": rng.choice(["a", "b"], 200), "size": rng.normal(0, 1, 200)})
    frame["price"] = 3 * frame["size"]
    frame.loc[0, "kind"] = TOWN
    low, high = frame["size"].min(), frame["size"].max()
    curve = tuple((value, 3 * value) for value in sorted(frame["size"].iloc[::40]))
    laws = (
        Within(State("kind", ("a",)), "size", low, high, 100),
        Follows("price", ("size",), (curve,), support=200),
        Follows("price", ("kind",), ((("a", 1.0), ("b", 2.0), (TOWN, 7.0)),), support=200),
        Equivalent((State("kind", ("a", TOWN)), State("size", (0.0,))), ("b", low), 100),
        Chosen("kind", ("size",), ("a", "b", TOWN), ((0.1, 0.2, 0.3),), (0.0, 1.0, 2.0), 200),
    )
    within, follows, listed, equivalent, chosen = pool_schema(Schema(Schema.infer(frame).features, laws), frame).laws
    assert low < within.low < within.high < high
    (points,) = follows.terms
    assert not np.isin([value for value, _ in points], frame["size"]).any()
    at, heights = zip(*curve, strict=True)
    np.testing.assert_allclose([height for _, height in points], np.interp([v for v, _ in points], at, heights))
    assert listed.terms == ((("a", 1.0), ("b", 2.0)),)
    assert equivalent.states[0].values == ("a",)
    assert equivalent.otherwise[1] not in frame["size"].to_numpy()
    assert (chosen.categories, chosen.terms, chosen.constant) == (("a", "b"), ((0.1, 0.2),), (0.0, 1.0))


def test_synthetic_rows_that_are_single_peoples_are_drawn_again(explainer):
    model = explainer.fitted
    asked = model.encoder, model.diffusion, torch.zeros(128, dtype=torch.long), 0, Progress("silent")
    drawn = draw_synthetic(*asked)
    somebody = drawn[::2]  # each is one person's, so that by chance nobody else has it
    again = draw_synthetic(*asked, people=somebody)
    assert not set(row_bytes(again)) & set(row_bytes(somebody))
    assert len(again) == len(drawn)
    assert set(row_bytes(again)) > set(row_bytes(drawn[1::2]))  # the others stay
    shared = np.repeat(drawn[::2], MIN_PEOPLE, axis=0)
    np.testing.assert_array_equal(draw_synthetic(*asked, people=shared), drawn)


def test_as_many_stay_as_new_people_would_have_by_chance():
    pairs = np.repeat(np.arange(20.0), 2)[:, None]  # each of 40 people has the value of one other person
    assert share_by_chance(np.r_[pairs, np.arange(60.0)[:, None] + 100]) == 0.4
    assert share_by_chance(np.repeat(np.arange(3.0), [1, 5, 6])[:, None]) == 5 / 12
    kept, few = np.ones(10, dtype=bool), set(row_bytes(np.arange(8.0)[:, None]))
    found = _excess(np.arange(10.0)[:, None], kept, few, 0.35, torch.Generator().manual_seed(0))
    assert len(found) == 5  # 3 of 10 may stay
    assert set(found.tolist()) < set(range(8))


@pytest.mark.parametrize("rows", [2, 3, 7, 25])
def test_tiny_tables_are_learned_and_asked(rows):
    frame = pd.DataFrame({"a": np.arange(rows) * 1.5, "b": list("xyzxyxyzxyxyzxyxyzxyxyzxy")[:rows], "c": 4})
    explainer = tdce.Explainer(model=lambda f: (f["a"] > 1).astype(float), hidden=8, steps=3, progress="silent")
    answer = explainer.fit(frame, learn=["a"]).explain(frame, target=tdce.Range(low=0.5))
    assert len(answer) == rows
    assert people_with(np.array([explainer.schema["a"].high]), frame["a"].to_numpy())[0] < MIN_PEOPLE
