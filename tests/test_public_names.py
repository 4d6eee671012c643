"""Names of version 0.1 can still be imported from the package, with a warning that says the new name."""

from __future__ import annotations

import importlib

import pytest

import quintain as qn

OLD = {"Effect": qn.StepView, "Outcome": qn.EpisodeView, "Transition": qn.TurnView}


@pytest.mark.parametrize(("old", "new"), OLD.items())
def test_an_old_name_is_importable_with_a_warning(old: str, new: type) -> None:
    with pytest.warns(DeprecationWarning, match=f"quintain.{old} is now quintain.{new.__name__}"):
        assert getattr(importlib.import_module("quintain"), old) is new


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'quintain' has no attribute 'Effects'"):
        importlib.import_module("quintain").Effects  # noqa: B018
