"""The shop's tools, down to what they change before they refuse; expectations were read off the reference."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quintain.adapters.tau2.world import World, same
from tests.adapters.conftest import Ask, asker

HELP = "\n    For further information visit https://errors.pydantic.dev/2.14/v/"
VALID = "Input should be a valid string [type=string_type"
ADDRESS = {"address1": "2 Oak", "address2": "", "city": "Bern", "state": "BE", "country": "CH", "zip": "3001"}


@pytest.fixture
def shop(retail: World) -> Ask:
    return asker(retail)


def test_observations_keep_order_and_escapes(shop: Ask) -> None:
    assert shop("get_item_details", item_id="z1") == (
        '{"item_id": "z1", "options": {"size": "S", "color": "\\u00e9"}, "available": true, "price": 5.0}'
    )
    assert list(json.loads(shop("get_product_details", product_id="P1"))["variants"]) == ["z1", "a2", "a3", "a4"]
    assert list(json.loads(shop("get_user_details", user_id="ann"))["payment_methods"]) == [
        "paypal_1",
        "card_1",
        "gift_1",
    ]
    order = json.loads(shop("get_order_details", order_id="#W1"))
    assert (order["cancel_reason"], order["items"][0]["options"]) == (None, {"size": "S", "color": "b"})
    assert shop("list_all_product_types") == '{"Bowl": "P2", "Cup": "P1"}'
    assert shop("transfer_to_human_agents", summary="") == "Transfer successful"


def test_finding_people(shop: Ask) -> None:
    assert shop("find_user_id_by_email", email="ann@EXAMPLE.com") == "ann"
    assert shop("find_user_id_by_email", email="bob") == "Error: User not found"
    assert shop("find_user_id_by_name_zip", first_name="ann", last_name="LEE", zip="3000") == "ann"
    assert shop("find_user_id_by_name_zip", first_name="ann", last_name="LEE", zip="1") == "Error: User not found"
    assert shop("find_user_id_by_name_zip", first_name="x", last_name=None, zip="1") == "Error: User not found"
    assert shop("get_user_details", user_id="x") == "Error: User not found"
    assert shop("get_item_details", item_id="x") == "Error: Item not found"
    assert shop("get_product_details", product_id="z1") == "Error: Product not found"


def test_cancelling_refunds_a_gift_card_at_once(retail: World, shop: Ask) -> None:
    cancelled = json.loads(shop("cancel_pending_order", order_id="#W1", reason="no longer needed"))
    assert (cancelled["status"], cancelled["cancel_reason"]) == ("cancelled", "no longer needed")
    assert [p["transaction_type"] for p in cancelled["payment_history"]] == ["payment", "refund"]
    assert json.loads(shop("get_user_details", user_id="ann"))["payment_methods"]["gift_1"]["balance"] == 37.5
    again = shop("cancel_pending_order", order_id="#W1", reason="no longer needed")
    assert again == "Error: Non-pending order cannot be cancelled"
    assert shop("cancel_pending_order", order_id="#W3", reason="whim") == "Error: Invalid reason"
    assert shop("cancel_pending_order", order_id="#W9", reason="whim") == "Error: Order not found"


def test_changes_before_a_refusal_stay(retail: World, shop: Ask) -> None:
    untouched = retail.copy()
    assert shop("cancel_pending_order", order_id="#W4", reason="no longer needed") == "Error: Payment method not found"
    assert retail.changed(untouched, "orders") == set()
    assert retail.document("users", "ann")["payment_methods"]["gift_1"]["balance"] == 21.0


def test_modified_items_all_get_the_last_ones_price(shop: Ask) -> None:
    swap = {"order_id": "#W1", "item_ids": ["z1", "a2"], "new_item_ids": ["a2", "z1"], "payment_method_id": "gift_1"}
    order = json.loads(shop("modify_pending_order_items", **swap))
    # The second swap meets the item that the first one just made, as in the reference.
    assert [(item["item_id"], item["price"]) for item in order["items"]] == [("z1", 5.0), ("z1", 5.0), ("a2", 7.5)]
    assert order["status"] == "pending (item modified)"
    assert order["payment_history"][-1] == {
        "transaction_type": "refund",
        "amount": 0.0,
        "payment_method_id": "gift_1",
    }
    assert shop("modify_pending_order_items", **swap) == "Error: Non-pending order cannot be modified"
    address = json.loads(shop("modify_pending_order_address", order_id="#W1", **ADDRESS))["address"]
    assert (address, list(address)[-1]) == (ADDRESS, "zip")


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"item_ids": ["a2"], "new_item_ids": ["z1"]}, "a2 not found"),
        ({"item_ids": [None], "new_item_ids": ["z1"]}, "None not found"),
        ({"new_item_ids": []}, "The number of items to be exchanged should match"),
        ({"new_item_ids": ["z1"]}, "The new item id should be different from the old item id"),
        ({"new_item_ids": ["a3"]}, "New item a3 not found or available"),
        ({"new_item_ids": ["x"]}, "Variant not found"),
        ({"payment_method_id": "x"}, "Payment method not found"),
        ({"new_item_ids": ["a4"]}, "Insufficient gift card balance to pay for the new item"),
    ],
)
def test_items_that_cannot_be_modified(retail: World, shop: Ask, changes: dict[str, Any], refusal: str) -> None:
    swap = {"order_id": "#W3", "item_ids": ["z1"], "new_item_ids": ["a2"], "payment_method_id": "gift_1"}
    before = retail.copy()
    assert shop("modify_pending_order_items", **(swap | changes)) == f"Error: {refusal}"
    assert same(before, retail)


def test_exchanging_and_returning(shop: Ask) -> None:
    swap = {"order_id": "#W2", "item_ids": ["z1"], "new_item_ids": ["a4"], "payment_method_id": "gift_1"}
    refusal = "Error: Insufficient gift card balance to pay for the price difference"
    assert shop("exchange_delivered_order_items", **swap) == refusal
    assert shop("exchange_delivered_order_items", **(swap | {"item_ids": ["a2"]})) == "Error: Number of a2 not found."
    refusal = "Error: The number of items to be exchanged should match."
    assert shop("exchange_delivered_order_items", **(swap | {"item_ids": []})) == refusal
    refusal = "Error: Payment method should be the original payment method"
    assert (
        shop("return_delivered_order_items", order_id="#W2", item_ids=["z1"], payment_method_id="paypal_1") == refusal
    )
    refusal = "Error: Some item not found"
    assert shop("return_delivered_order_items", order_id="#W2", item_ids=["x"], payment_method_id="gift_1") == refusal
    order = json.loads(shop("exchange_delivered_order_items", **(swap | {"new_item_ids": ["a2"]})))
    assert (order["status"], order["exchange_price_difference"]) == ("exchange requested", 2.5)
    refusal = "Error: Non-delivered order cannot be returned"
    assert shop("return_delivered_order_items", order_id="#W2", item_ids=[], payment_method_id="card_1") == refusal
    assert shop("exchange_delivered_order_items", **swap) == "Error: Non-delivered order cannot be exchanged"


def test_an_exchange_of_nothing_costs_a_whole_zero(shop: Ask) -> None:
    nothing: dict[str, Any] = {"item_ids": [], "new_item_ids": [], "payment_method_id": "card_1"}
    assert '"exchange_price_difference": 0,' in shop("exchange_delivered_order_items", order_id="#W2", **nothing)


def test_a_return_names_the_items_in_order(shop: Ask) -> None:
    order = json.loads(
        shop("return_delivered_order_items", order_id="#W2", item_ids=["z1"], payment_method_id="card_1")
    )
    assert (order["status"], order["return_items"], order["return_payment_method_id"]) == (
        "return requested",
        ["z1"],
        "card_1",
    )


def test_paying_by_another_method(retail: World, shop: Ask) -> None:
    pay = "modify_pending_order_payment"
    refusal = "Error: The new payment method should be different from the current one"
    assert shop(pay, order_id="#W3", payment_method_id="card_1") == refusal
    refusal = "Error: There should be exactly one payment for a pending order"
    assert shop(pay, order_id="#W4", payment_method_id="card_1") == refusal
    assert shop(pay, order_id="#W2", payment_method_id="gift_1") == "Error: Non-pending order cannot be modified"
    order = json.loads(shop(pay, order_id="#W3", payment_method_id="gift_1"))
    assert [p["payment_method_id"] for p in order["payment_history"]] == ["card_1", "gift_1", "card_1"]
    assert retail.document("users", "ann")["payment_methods"]["gift_1"]["balance"] == 15.0
    json.loads(shop(pay, order_id="#W1", payment_method_id="paypal_1"))
    assert retail.document("users", "ann")["payment_methods"]["gift_1"]["balance"] == 32.5
    assert shop(pay, order_id="#W3", payment_method_id="gift_1").startswith("Error: There should be exactly one")


def test_a_user_moves(retail: World, shop: Ask) -> None:
    assert json.loads(shop("modify_user_address", user_id="ann", **ADDRESS))["address"] == ADDRESS
    before = retail.copy()
    assert shop("modify_user_address", user_id="ann", **(ADDRESS | {"zip": 3001, "city": None})) == (
        "Error: 2 validation errors for UserAddress"
        f"\ncity\n  {VALID}, input_value=None, input_type=NoneType]{HELP}string_type"
        f"\nzip\n  {VALID}, input_value=3001, input_type=int]{HELP}string_type"
    )
    assert same(before, retail)
