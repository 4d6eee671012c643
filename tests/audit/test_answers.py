"""Answers in the forms of many frameworks, and the errors among them."""

from __future__ import annotations

from typing import Any

import pytest

from quintain.audit.kernel.answers import answered, speaks_of_error


class Result:
    """Answer as a package makes it: an object with `model_dump`."""

    content = ()

    def model_dump(self) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "no seat", "annotations": None}], "isError": True, "meta": None}


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "isError": False}, "a\nb"),
        ({"content": [{"type": "text", "text": "a"}]}, "a"),
        ({"content": [{"type": "text", "text": "{}"}], "structuredContent": {"left": 3}}, {"left": 3}),
        ({"content": [{"type": "text", "text": "no"}], "isError": True}, {"error": "no"}),
        ({"type": "tool_result", "tool_use_id": "1", "content": "no", "is_error": True}, {"error": "no"}),
        ({"role": "tool", "tool_call_id": "1", "content": "[]"}, "[]"),
        ({"type": "tool", "content": "no", "status": "error", "name": "f"}, {"error": "no"}),
        ({"content": [], "isError": True}, {"content": [], "isError": True}),
        ([{"type": "text", "text": "a"}], "a"),
        (Result(), {"error": "no seat"}),
        ((3, None), 3),
        ((None, None), None),
        (("done", ""), "done"),
        ((None, "no"), {"error": "no"}),
        ((None, KeyError("x")), {"error": "KeyError: 'x'"}),
        ((True, "done"), "done"),
        ((False, "no"), {"error": "no"}),
        (("a", "b"), ("a", "b")),
        (("obs", 0.0, False, {}), ("obs", 0.0, False, {})),
    ],
)
def test_an_envelope_is_removed_from_the_answer(value: Any, form: Any) -> None:
    assert answered(value) == form


@pytest.mark.parametrize(
    "value",
    [
        [],
        [None, "no"],
        {"content": "the text of a file"},
        {"content": "the text of a file", "status": "open"},
        {"content": [{"type": "text", "text": "a"}], "title": "a page"},
        [{"type": "text", "text": "a", "id": 1, "author": "ann"}],
        [{"type": "text"}],
    ],
)
def test_data_is_left_as_it_is(value: Any) -> None:
    assert answered(value) is value


@pytest.mark.parametrize(
    "value",
    [
        {"error": "no"},
        {"ok": False},
        {"is_error": True},
        {"isError": True},
        {"success": False, "message": "no"},
        {"status": "error", "message": "no"},
        {"status": 404, "body": ""},
        {"errors": [{"message": "no"}], "data": None},
        {"detail": "Order 7 not found"},
        {"result": "Error: no such file"},
        '{"error": "no ticket"}',
        ' {"ok": false}',
        " Error: no",
        "[ERROR] no",
        "Traceback (most recent call last)",
        "KeyError: 'x'",
        "shop.errors.StockError('none left')",
        "Order 7 not found.",
        "report.txt: no such file",
        "The room does not exist",
        "Invalid date: tomorrow",
        "Unknown tool 'fly'",
        "Unknown ticket: T-9",
        "Cannot book: the room is taken",
        "Sorry, that is not possible.",
        "amount must be a positive integer",
        "'amount' is required",
    ],
)
def test_answers_with_an_error_are_recognised(value: Any) -> None:
    assert speaks_of_error(value)


@pytest.mark.parametrize(
    "value",
    [
        {"error": ""},
        {"error": None, "result": 3},
        {"ok": True},
        {"success": True},
        {"status": "failed", "id": 7, "owner": "ann"},
        {"status": 200},
        {"errors": 3, "warnings": 1},
        {"errors": ["line 3"], "warnings": []},
        {"content": "Error handling is explained in chapter 2."},
        '{"error": null}',
        "no error",
        "Unknown to many, the bridge is older.",
        "Nothing was found in the logs. The ticket says that the page was not found by two users. It was closed.",
        "All requests must be made by Friday.",
        "",
        None,
        [],
        0,
        False,
    ],
)
def test_answers_without_an_error_are_not_errors(value: Any) -> None:
    assert not speaks_of_error(value)
