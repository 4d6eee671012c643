"""Maps that are copied in O(1): layers of changes, newest first, over a base mapping that all copies share.

Adjacent layers of similar size are merged, as in a log-structured merge tree: a lookup reads O(log n) dictionaries, and
a change is merged O(log n) times in its life, whatever was copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
Layer = TypeVar("Layer")
Layers = tuple[dict[Key, Value | None], ...]

_EMPTY: Mapping[Any, Any] = {}
_ABSENT: Any = object()


def _union(older: Any, newer: Any) -> Any:
    return older | newer


def stack(new: Layer, layers: tuple[Layer, ...], *, size: Any = len, merge: Any = _union) -> tuple[Layer, ...]:
    """Returns the layers with a new one in front; a layer absorbs the next unless that is over twice as large."""
    while layers and size(layers[0]) <= 2 * size(new):
        new, layers = merge(layers[0], new), layers[1:]
    return (new, *layers)


class LayeredMap(Generic[Key, Value]):
    """Immutable mapping that shares its layers with the maps that were made from it.

    Attributes:
        layers: Changes, newest first; None marks a deleted key. A layer does not change once it is here.
        base: What the layers change.
    """

    __slots__ = ("base", "layers")

    def __init__(self, base: Mapping[Key, Value | None] = _EMPTY, layers: Layers[Key, Value] = ()) -> None:
        self.base = base
        self.layers = layers

    def get(self, key: Key) -> Value | None:
        """Returns the value, or None if the map does not have the key. Costs O(log n)."""
        for layer in self.layers:
            if (value := layer.get(key, _ABSENT)) is not _ABSENT:
                return value
        return self.base.get(key)

    def write(self, changes: dict[Key, Value | None]) -> LayeredMap[Key, Value]:
        """Returns the map with some keys set, or deleted where the value is None. It takes over the dictionary."""
        if not changes:
            return self
        layers = stack(changes, self.layers)
        if len(layers) == 1:  # directly on the base, its own values, and deletions of other keys, are redundant
            bottom, base = layers[0], self.base
            for key in [key for key, value in bottom.items() if value is (base.get(key) if base else None)]:
                del bottom[key]
            layers = layers if bottom else ()
        return LayeredMap(self.base, layers)

    def changes(self) -> dict[Key, Value | None]:
        """Returns every key whose value may differ from the base's, with the value, or None if it is deleted."""
        merged: dict[Key, Value | None] = {}
        for layer in reversed(self.layers):
            merged |= layer
        return merged

    def candidates(self, other: LayeredMap[Key, Value]) -> set[Key]:
        """Returns the keys at which two maps may differ; layers that both have are not read."""
        one, two = ({id(layer): layer for layer in (*each.layers, each.base)} for each in (self, other))
        return set[Key]().union(*((one | two)[name] for name in one.keys() ^ two.keys()))
