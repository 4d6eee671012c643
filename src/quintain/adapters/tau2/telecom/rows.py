"""Rows of the telecom database, and the customer's phone. Dates are texts, amounts are dollars, volumes are GB."""

from __future__ import annotations

from typing import Literal

import msgspec

from quintain.adapters.tau2.record import Pairs

Technology = Literal["none", "2G", "3G", "4G", "5G"]
Strength = Literal["none", "poor", "fair", "good", "excellent"]
Mode = Literal["4g_5g_preferred", "4g_only", "3g_only", "2g_only"]
SimStatus = Literal["active", "missing", "locked_pin", "locked_puk"]


class Plan(msgspec.Struct):
    """Price of a line, and the data that it includes each month."""

    plan_id: str
    name: str
    data_limit_gb: float
    price_per_month: float
    data_refueling_price_per_gb: float


class Device(msgspec.Struct):
    """A device as the company knows it; the customer's own view of a phone is `Phone`."""

    device_id: str
    device_type: str
    model: str
    imei: str | None = None
    is_esim_capable: bool = False
    activated: bool = False
    activation_date: str | None = None
    last_esim_transfer_date: str | None = None


class Line(msgspec.Struct):
    """A phone number with its plan and its device."""

    line_id: str
    phone_number: str
    status: str
    plan_id: str
    device_id: str | None = None
    data_used_gb: float = 0.0
    data_refueling_gb: float = 0.0
    roaming_enabled: bool = False
    contract_end_date: str | None = None
    last_plan_change_date: str | None = None
    last_sim_replacement_date: str | None = None
    suspension_start_date: str | None = None


class LineItem(msgspec.Struct):
    """One charge or credit of a bill."""

    description: str
    amount: float
    date: str
    item_type: str


class Bill(msgspec.Struct):
    """Debt of a customer for a period."""

    bill_id: str
    customer_id: str
    period_start: str
    period_end: str
    issue_date: str
    total_due: float
    due_date: str
    line_items: list[LineItem]
    status: str = "Draft"


class PaymentMethod(msgspec.Struct):
    """A card or an account that pays."""

    method_type: str
    account_number_last_4: str
    expiration_date: str


class Address(msgspec.Struct):
    """Address of a customer."""

    street: str
    city: str
    state: str
    zip_code: str


class Customer(msgspec.Struct):
    """A customer, with lines and bills by their ids."""

    customer_id: str
    full_name: str
    date_of_birth: str
    email: str
    phone_number: str
    address: Address
    account_status: str
    payment_methods: list[PaymentMethod]
    line_ids: list[str]
    bill_ids: list[str]
    created_at: str
    last_extension_date: str | None = None
    goodwill_credit_used_this_year: float = 0.0


class ApnSettings(msgspec.Struct):
    """Access point of the carrier's data network."""

    apn_name: str = "internet"
    reset_at_reboot: bool = False
    mms_apn: str | None = "mms"
    mmsc_url: str | None = "http://mms.carrier.com/mms/wapenc"
    mms_proxy: str | None = None
    mms_port: int | None = None


class Vpn(msgspec.Struct):
    """A connection through a VPN's server."""

    server_address: str
    protocol: str
    server_performance: str


class Permissions(msgspec.Struct):
    """Rights of an app."""

    sms: bool = False
    storage: bool = False
    phone: bool = False
    network: bool = False


class App(msgspec.Struct):
    """An app on the phone."""

    app_name: str
    permissions: Permissions


class Phone(msgspec.Struct):
    """The customer's phone: its settings, and the network that it found last."""

    sim_card_status: SimStatus
    sim_card_missing: bool
    airplane_mode: bool
    network_signal_strength: Strength
    network_technology_connected: Technology
    network_connection_status: str
    battery_level: int
    data_enabled: bool
    roaming_enabled: bool
    network_mode_preference: Mode
    active_apn_settings: ApnSettings
    wifi_enabled: bool
    wifi_connected: bool
    wifi_signal_strength: Strength
    wifi_calling_enabled: bool
    wifi_calling_mms_over_wifi: bool
    data_saver_mode: bool
    vpn_enabled_setting: bool
    vpn_connected: bool
    app_statuses: Pairs[App]
    wifi_ssid: str | None = None
    vpn_details: Vpn | None = None


class PaymentRequest(msgspec.Struct):
    """A bill that the customer is asked to pay."""

    bill_id: str
    amount_due: float
    paid: bool = False


class Surroundings(msgspec.Struct):
    """Facts that the phone cannot change: where it is, and what the carrier grants it."""

    name: str | None = None
    phone_number: str | None = None
    is_abroad: bool = False
    roaming_allowed: bool = False
    signal_strength: Pairs[Strength] = (("2G", "poor"), ("3G", "fair"), ("4G", "good"), ("5G", "excellent"))
    mobile_data_usage_exceeded: bool = False
    line_active: bool = True
    payment_request: PaymentRequest | None = None
