"""The customer's phone: what the customer can look up and change on it, and how tasks break it.

Texts of `check_` tools, `run_speed_test`, `can_send_mms` and refusals that no stored case shows are this project's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

from quintain.adapters.tau2.convention import action
from quintain.adapters.tau2.record import builtin, shown
from quintain.adapters.tau2.world import World

from .rows import ApnSettings, App, Mode, Phone, Strength, Surroundings, Technology, Vpn

F = TypeVar("F", bound=Callable[..., str])

_TECHNOLOGIES: dict[str, Technology] = {"4g_5g_preferred": "5G", "4g_only": "4G", "3g_only": "3G", "2g_only": "2G"}
"""The technology that each preference leads to."""
_BARS: dict[Strength, str] = {
    "none": "📵 No Signal",
    "poor": "📶¹ Poor",
    "fair": "📶² Fair",
    "good": "📶³ Good",
    "excellent": "📶⁴ Excellent",
}
_SPEEDS: dict[Technology, float] = {"none": 0.0, "2G": 0.25, "3G": 3.0, "4G": 55.0, "5G": 275.0}
"""Mbps at full strength."""
_SHARES: dict[Strength, float] = {"none": 0.0, "poor": 0.2, "fair": 0.5, "good": 0.8, "excellent": 1.0}
"""Part of the speed that a weaker signal leaves."""
_BURDEN = 0.1
"""Part of the speed that a slow VPN, or a data saver, leaves."""
_GRADES = ((1.0, "very poor"), (5.0, "poor"), (25.0, "fair"), (100.0, "good"))
_BROKEN_APN = "broken"


_look = action(roles=("user",))


def _fix(method: F) -> F:
    """Marks a tool that changes the phone; its answer ends with the status bar."""

    @functools.wraps(method)
    def followed(self: Handset, **arguments: Any) -> str:
        return f"{method(self, **arguments)}\nStatus Bar: {self.status_bar()}"

    return _look(cast("F", followed))


def _is(on: bool) -> str:  # noqa: FBT001
    return "ON" if on else "OFF"


class Handset(World, kw_only=True):
    """The customer's side of the telecom domain."""

    user_toolkit: ClassVar[str] = "TelecomUserTools"

    phone: Phone
    surroundings: Surroundings

    def user_document(self) -> Any:
        return {"device": builtin(self.phone), "surroundings": builtin(self.surroundings)}

    @_look
    def check_status_bar(self) -> str:
        """Look at the status bar: signal, network technology, mobile data, Wi-Fi, VPN and battery."""
        return f"Status Bar: {self.status_bar()}"

    @_look
    def check_network_status(self) -> str:
        """Check how the phone is connected: airplane mode, SIM, signal, network, mobile data, roaming and Wi-Fi."""
        phone = self.phone
        return "\n".join(
            (
                f"Airplane Mode: {_is(phone.airplane_mode)}",
                f"SIM Card Status: {self._sim()}",
                f"Cellular Connection: {phone.network_connection_status}",
                f"Cellular Signal: {phone.network_signal_strength}",
                f"Cellular Network Type: {phone.network_technology_connected}",
                f"Mobile Data Enabled: {'Yes' if phone.data_enabled else 'No'}",
                f"Data Roaming Enabled: {'Yes' if phone.roaming_enabled else 'No'}",
                f"Wi-Fi Radio: {_is(phone.wifi_enabled)}",
                f"Wi-Fi Connected: {'Yes' if phone.wifi_connected else 'No'}",
            )
        )

    @_look
    def check_network_mode_preference(self) -> str:
        """Check which types of cellular network the phone prefers."""
        return f"Network Mode Preference: {self.phone.network_mode_preference}"

    @_look
    def check_sim_status(self) -> str:
        """Check whether the SIM card works, is missing, or is locked by a PIN or PUK code."""
        return {
            "active": "Your SIM card is active and working.",
            "missing": "No SIM card detected in the phone.",
            "locked_pin": "The SIM card is locked with a PIN code.",
            "locked_puk": "The SIM card is locked with a PUK code.",
        }[self._sim()]

    @_look
    def check_data_restriction_status(self) -> str:
        """Check whether something on the phone limits its use of data."""
        return f"Data Saver mode is {_is(self.phone.data_saver_mode)}."

    @_look
    def check_apn_settings(self) -> str:
        """Check the access point by which the phone reaches mobile data, and the address for picture messages."""
        apn = self.phone.active_apn_settings
        return f"Current APN Name: {apn.apn_name}\nMMSC URL (for picture messages): {apn.mmsc_url or 'Not Set'}"

    @_look
    def check_wifi_status(self) -> str:
        """Check whether Wi-Fi is on, the network it is connected to, and its signal."""
        phone = self.phone
        if not (phone.wifi_enabled and phone.wifi_connected):
            return f"Wi-Fi is {_is(phone.wifi_enabled)} and not connected."
        return f"Wi-Fi is ON and connected to '{phone.wifi_ssid}'. Signal strength: {phone.wifi_signal_strength}."

    @_look
    def check_wifi_calling_status(self) -> str:
        """Check whether calls go over Wi-Fi."""
        return f"Wi-Fi Calling is {_is(self.phone.wifi_calling_enabled)}."

    @_look
    def check_vpn_status(self) -> str:
        """Check whether a VPN is connected, and how it performs."""
        if not self.phone.vpn_connected:
            return "VPN is OFF."
        return f"VPN is ON and connected. Details: {shown(self.phone.vpn_details)}"

    @_look
    def check_installed_apps(self) -> str:
        """List the apps on the phone."""
        return f"Installed apps: {', '.join(dict(self.phone.app_statuses))}"

    @_look
    def check_app_status(self, app_name: str) -> str:
        """Check an app's details.

        Args:
            app_name: Such as 'messaging'.
        """
        return shown(app) if (app := self._app(app_name)) else f"App '{app_name}' not found on this phone."

    @_look
    def check_app_permissions(self, app_name: str) -> str:
        """Check what an app may use.

        Args:
            app_name: Such as 'messaging'.
        """
        if (app := self._app(app_name)) is None:
            return f"App '{app_name}' not found on this phone."
        granted = [name for name, given in builtin(app.permissions).items() if given]
        return f"App '{app_name}' has permission for: {', '.join(granted) or 'nothing'}."

    @_look
    def run_speed_test(self) -> str:
        """Measure the download speed of mobile data."""
        speed = self._speed()
        if speed is None:
            return "Speed Test Failed: no connection."
        return f"Speed Test Result: {speed:.2f} Mbps ({_grade(speed).capitalize()})."

    @_look
    def can_send_mms(self) -> str:
        """Check whether the default messaging app can send a picture message."""
        return f"Your messaging app {'can' if self._mms() else 'cannot'} send MMS messages."

    @_look
    def check_payment_request(self) -> str:
        """Check whether the company asks for the payment of a bill."""
        if (request := self.surroundings.payment_request) is None:
            return "No payment request has been made."
        return f"You have a payment request for bill {request.bill_id} of {request.amount_due} USD."

    @_fix
    def set_network_mode_preference(self, mode: str) -> str:
        """Change the type of cellular network that the phone prefers.

        Args:
            mode: '4g_5g_preferred', '4g_only', '3g_only' or '2g_only'.
        """
        if mode not in _TECHNOLOGIES:
            choices = ", ".join(_TECHNOLOGIES)
            return f"Failed to set network mode: '{mode}' is not a valid option. Please use one of: {choices}"
        self.phone.network_mode_preference = cast("Mode", mode)
        self.simulate_network_search()
        return f"Preferred Network Mode set to: {mode}"

    @_fix
    def toggle_airplane_mode(self) -> str:
        """Turn airplane mode on or off; while it is on, nothing is sent or received."""
        self._set_airplane_mode(on=not self.phone.airplane_mode)
        return f"Airplane Mode is now {_is(self.phone.airplane_mode)}."

    @_fix
    def reseat_sim_card(self) -> str:
        """Take the SIM card out and put it in again."""
        self.phone.sim_card_missing = False
        self.simulate_network_search()
        return "SIM card re-seated successfully."

    @_fix
    def toggle_data(self) -> str:
        """Turn mobile data on or off."""
        self.phone.data_enabled = not self.phone.data_enabled
        self.simulate_network_search()
        return f"Mobile Data is now {_is(self.phone.data_enabled)}."

    @_fix
    def toggle_roaming(self) -> str:
        """Turn data roaming on or off; outside the carrier's own network, mobile data need it."""
        self.phone.roaming_enabled = not self.phone.roaming_enabled
        self.simulate_network_search()
        return f"Data Roaming is now {_is(self.phone.roaming_enabled)}."

    @_fix
    def toggle_data_saver_mode(self) -> str:
        """Turn the data saver on or off; while it is on, data are slow."""
        self.phone.data_saver_mode = not self.phone.data_saver_mode
        return f"Data Saver Mode is now {_is(self.phone.data_saver_mode)}."

    @_fix
    def set_apn_settings(self, apn_name: str, mmsc_url: str) -> str:
        """Set the access point by hand.

        Args:
            apn_name: Such as 'internet'.
            mmsc_url: Address for picture messages, such as 'http://mms.carrier.com/mms/wapenc'.
        """
        self.phone.active_apn_settings = ApnSettings(apn_name=apn_name, mmsc_url=mmsc_url)
        self.simulate_network_search()
        return f"APN settings set to: {apn_name}"

    @_fix
    def reset_apn_settings(self) -> str:
        """Set the access point back to the carrier's, with the next reboot."""
        self.phone.active_apn_settings.reset_at_reboot = True
        self.simulate_network_search()
        return "APN settings will reset at reboot."

    @_fix
    def toggle_wifi(self) -> str:
        """Turn Wi-Fi on or off; the phone knows none to connect to."""
        self.phone.wifi_enabled = not self.phone.wifi_enabled
        return f"Wi-Fi is now {_is(self.phone.wifi_enabled)}."

    @_fix
    def toggle_wifi_calling(self) -> str:
        """Turn calls over Wi-Fi on or off."""
        self.phone.wifi_calling_enabled = not self.phone.wifi_calling_enabled
        return f"Wi-Fi Calling is now {_is(self.phone.wifi_calling_enabled)}."

    @_fix
    def connect_vpn(self) -> str:
        """Connect the VPN."""
        if self.phone.vpn_connected:
            return "VPN already connected."
        self._connect_vpn("excellent")
        return "VPN connected successfully."

    @_fix
    def disconnect_vpn(self) -> str:
        """Disconnect the VPN."""
        if not self.phone.vpn_connected:
            return "No active VPN connection to disconnect."
        self.phone.vpn_connected, self.phone.vpn_details = False, None
        return "VPN disconnected successfully."

    @_fix
    def grant_app_permission(self, app_name: str, permission: str) -> str:
        """Allow an app to use something.

        Args:
            app_name: Such as 'messaging'.
            permission: Such as 'storage' or 'sms'.
        """
        if (app := self._app(app_name)) is None:
            return f"Error. App '{app_name}' not found. Cannot grant permission."
        known = list(app.permissions.__struct_fields__)
        if permission not in known:
            return f"Error. Permission '{permission}' not tracked for app '{app_name}', available permissions: {known}"
        setattr(app.permissions, permission, True)
        return f"Success. Permission '{permission}' granted to app '{app_name}'."

    @_fix
    def reboot_device(self) -> str:
        """Restart the phone; it looks for a network again."""
        done: list[str] = []
        if self.phone.active_apn_settings.reset_at_reboot:
            self.phone.active_apn_settings = ApnSettings()
            done.append("Resetting APN settings...")
        self.simulate_network_search()
        return "\n".join([*done, "Restarting network services..."])

    @_look
    def make_payment(self) -> str:
        """Pay the bill that the company has asked to be paid."""
        if (request := self.surroundings.payment_request) is None:
            return "You do not have a payment request."
        request.paid = True
        return f"Payment of {request.amount_due} USD has been made for bill {request.bill_id}."

    def set_user_info(self, name: str, phone_number: str) -> None:
        """Tells who holds the phone."""
        self.surroundings.name, self.surroundings.phone_number = name, phone_number

    def set_user_location(self, *, abroad: bool) -> None:
        """Takes the phone abroad, or home."""
        self.surroundings.is_abroad = abroad

    def turn_airplane_mode_on(self) -> None:
        """Turns everything off."""
        self._set_airplane_mode(on=True)

    def turn_data_off(self) -> None:
        """Turns mobile data off."""
        self.phone.data_enabled = False
        self.simulate_network_search()

    def turn_data_saver_mode_on(self) -> None:
        """Makes data slow."""
        self.phone.data_saver_mode = True

    def turn_roaming_on(self) -> None:
        """Lets the phone use data abroad."""
        self.phone.roaming_enabled = True
        self.simulate_network_search()

    def turn_roaming_off(self) -> None:
        """Keeps the phone from using data abroad."""
        self.phone.roaming_enabled = False
        self.simulate_network_search()

    def unseat_sim_card(self) -> None:
        """Loosens the SIM card."""
        self.phone.sim_card_missing = True
        self.simulate_network_search()

    def lock_sim_card(self, mode: str) -> None:
        """Locks the SIM card; `mode` is "pin" or "puk"."""
        self.phone.sim_card_status = "locked_pin" if mode == "pin" else "locked_puk"
        self.simulate_network_search()

    def break_apn_settings(self) -> None:
        """Makes the access point useless."""
        self.phone.active_apn_settings.apn_name = _BROKEN_APN
        self.simulate_network_search()

    def break_apn_mms_setting(self) -> None:
        """Takes away the address for picture messages."""
        self.phone.active_apn_settings.mmsc_url = None

    def break_vpn(self) -> None:
        """Connects a slow VPN."""
        self._connect_vpn("poor")

    def set_wifi_calling(self, *, enabled: bool, mms_over_wifi: bool) -> None:
        """Sets whether calls, and picture messages, go over Wi-Fi."""
        self.phone.wifi_calling_enabled, self.phone.wifi_calling_mms_over_wifi = enabled, mms_over_wifi

    def remove_app_permission(self, app_name: str, permission: str) -> None:
        """Takes a permission from an app."""
        setattr(dict(self.phone.app_statuses)[app_name].permissions, permission, False)

    def simulate_network_search(self) -> None:
        """Looks for the network that the settings, the SIM card and the carrier allow."""
        phone = self.phone
        barred = phone.airplane_mode or self._sim() != "active" or not self.surroundings.line_active
        if barred or phone.active_apn_settings.apn_name == _BROKEN_APN:
            phone.network_connection_status = "no_service"
            phone.network_technology_connected = phone.network_signal_strength = "none"
            return
        found = _TECHNOLOGIES[phone.network_mode_preference]
        phone.network_connection_status, phone.network_technology_connected = "connected", found
        phone.network_signal_strength = dict(self.surroundings.signal_strength)[found]

    def assert_service_status(self, expected_status: str) -> bool:
        """Returns whether the phone has the expected connection."""
        return self.phone.network_connection_status == expected_status

    def assert_mobile_data_status(self, *, expected_status: bool) -> bool:
        """Returns whether mobile data work as expected."""
        return (self._speed() is not None) == expected_status

    def assert_internet_speed(self, expected_speed: float, expected_desc: str | None = None) -> bool:
        """Returns whether mobile data are as fast as expected."""
        speed = self._speed()
        return speed is not None and speed >= expected_speed and expected_desc in (None, _grade(speed))

    def assert_can_send_mms(self, *, expected_status: bool) -> bool:
        """Returns whether picture messages work as expected."""
        return self._mms() == expected_status

    def _sim(self) -> str:
        return "missing" if self.phone.sim_card_missing else self.phone.sim_card_status

    def _app(self, name: str) -> App | None:
        return dict(self.phone.app_statuses).get(name)

    def _set_airplane_mode(self, *, on: bool) -> None:
        self.phone.airplane_mode = on
        if on:
            self.phone.wifi_connected = False
        self.simulate_network_search()

    def _connect_vpn(self, performance: str) -> None:
        self.phone.vpn_connected = True
        self.phone.vpn_details = Vpn("192.168.1.1", "OpenVPN", performance)

    def _has_data(self) -> bool:
        phone, around = self.phone, self.surroundings
        is_let_in = not around.is_abroad or (phone.roaming_enabled and around.roaming_allowed)
        is_connected = phone.network_connection_status == "connected" and not phone.airplane_mode
        return is_connected and phone.data_enabled and is_let_in and not around.mobile_data_usage_exceeded

    def _speed(self) -> float | None:
        """Returns the speed of mobile data in Mbps; None without any."""
        if not self._has_data():
            return None
        phone = self.phone
        is_slowed = phone.vpn_details is not None and phone.vpn_details.server_performance == "poor"
        burdens = is_slowed + phone.data_saver_mode
        return _SPEEDS[phone.network_technology_connected] * _SHARES[phone.network_signal_strength] * _BURDEN**burdens

    def _mms(self) -> bool:
        phone = self.phone
        app = dict(phone.app_statuses)["messaging"].permissions
        is_over_wifi = phone.wifi_calling_enabled and phone.wifi_calling_mms_over_wifi
        is_set_up = phone.active_apn_settings.mmsc_url is not None and app.storage and app.sms
        return self._has_data() and phone.network_technology_connected != "2G" and is_set_up and not is_over_wifi

    def status_bar(self) -> str:
        """Returns the icons at the top of the screen."""
        phone = self.phone
        icons: list[str] = []
        if phone.airplane_mode:
            icons.append("✈️ Airplane Mode")
        else:
            icons.append(_BARS[phone.network_signal_strength])
            if phone.network_technology_connected != "none":
                icons.append(phone.network_technology_connected)
            has_data = phone.data_enabled and phone.network_technology_connected != "none"
            icons.append("📱 Data Enabled" if has_data else "📵 Data Disabled")
            if has_data and phone.data_saver_mode:
                icons.append("🔽 Data Saver")
        if phone.wifi_enabled:
            icons.append(f"📡 Connected to {phone.wifi_ssid}" if phone.wifi_connected else "📡 Enabled")
        if phone.vpn_connected:
            icons.append("🔒 VPN Connected")
        return " | ".join([*icons, f"🔋 {phone.battery_level}%"])


def _grade(speed: float) -> str:
    return next((grade for limit, grade in _GRADES if speed < limit), "excellent")
