"""Padding: candidates of copies of a row are asked about once."""

import torch

from tdce.methods.padding import first_copies, without_copies


def test_first_copies_are_the_first_rows_that_are_identical():
    assert first_copies(torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [1.0, 2.0]])).tolist() == [0, 1, 0, 0]


def test_candidates_of_copies_are_found_among_those_of_their_originals():
    at = torch.tensor([0, 1, 2, 0, 2, 3, 3])  # rows 2 and 3 are copies of row 0
    x = torch.tensor([5.0, 7.0, 5.0, 6.0, 6.0, 5.0, 6.0])[:, None]
    own, place = without_copies(x, at, torch.tensor([0, 1, 0, 0]))
    assert own.tolist() == [0, 1, 3]
    assert torch.equal(x[own][place], x)
    assert place.tolist() == [0, 1, 0, 2, 2, 0, 2]


def test_where_something_else_is_proposed_for_a_copy_everything_is_kept():
    at, original = torch.tensor([0, 1]), torch.tensor([0, 0])
    for x in ([[1.0], [2.0]], [[1.0], [float("nan")]]):
        own, place = without_copies(torch.tensor(x), at, original)
        assert own.tolist() == place.tolist() == [0, 1]
    own, _ = without_copies(torch.ones(3, 1), torch.tensor([0, 1, 1]), original)  # one more than of its original
    assert own.tolist() == [0, 1, 2]


def test_rows_without_copies_and_no_rows_at_all_stay_as_they_are():
    own, place = without_copies(torch.ones(3, 1), torch.tensor([0, 1, 1]), torch.tensor([0, 1]))
    assert own.tolist() == place.tolist() == [0, 1, 2]
    own, place = without_copies(torch.ones(0, 1), torch.zeros(0, dtype=torch.long), torch.tensor([0, 0]))
    assert len(own) == len(place) == 0
