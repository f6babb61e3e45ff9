"""Thousands of damaged and forged artefacts: each is refused with an InputError or answers; none loads unnoticed."""

import mutants
import pytest


@pytest.fixture(scope="module")
def small():
    return mutants.explainer(keep_rows=True)


@pytest.mark.parametrize(("tries", "seed"), [(320, 1), pytest.param(10_000, 0, marks=pytest.mark.slow)])
def test_no_mutant_loads_in_silence_or_ends_in_another_exception(small, tmp_path, tries, seed):
    path = tmp_path / "small.tdce"
    small.save(path)
    tallies = mutants.fuzz(path.read_bytes(), mutants.refused(small), path, tries, seed)
    assert sum(tally.tries for tally in tallies.values()) == tries
    assert [failure for tally in tallies.values() for failure in tally.failures] == []  # a hang is one too
    assert {name: tallies[name].loaded for name in mutants.UNSEALED} == dict.fromkeys(mutants.UNSEALED, 0)
    assert sum(tallies[name].answered for name in mutants.RESEALED) > tries / 50  # some of them did explain rows
