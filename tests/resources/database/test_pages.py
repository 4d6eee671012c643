"""The digest of pages: whatever was asked in between, it is the sum of what all pages weigh."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quintain import codec
from quintain.resources.database.pages import SIZE, ZERO, Base, Page, PageImage, Pages, weigh

SEEDED = 4
"""Pages of the base."""
MOST = 90
"""Pages of the longest file; more than may wait to be weighed."""

Write = tuple[dict[int, int], int, bool]
"""What is written where, how many pages the file has afterwards, and whether somebody asks for the digest."""


def content(what: int) -> bytes:
    return bytes([what]) * SIZE


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    path: Path = tmp_path_factory.mktemp("base") / "seeded"
    path.write_bytes(b"".join(content(what) for what in range(1, SEEDED + 1)))
    return Base(path, "0" * 32)


def after(image: PageImage, writes: list[Write]) -> PageImage:
    for contents, count, asks in writes:
        cut: Pages = {number: Page(ZERO) for number in range(count, image.count)}
        written: Pages = {number: Page(content(what)) for number, what in contents.items() if number < count}
        image = image.write(cut | written, count, image.schema)
        if asks:
            image.digest()
    return image


def from_nothing(image: PageImage) -> str:
    base = image.base
    total = sum(weigh(number, image.page(number)) for number in range(image.count))
    total -= sum(weigh(number, base.page(number)) for number in range(base.count))
    return codec.digest(codec.dumps((base.digest, image.count, (total % 2**128).to_bytes(16, "little"))))


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.integers(0, MOST - 1), st.integers(0, 5), max_size=MOST),
            st.integers(1, MOST),
            st.booleans(),
        ),
        max_size=8,
    )
)
@example([(dict.fromkeys(range(MOST), 5), MOST, False), ({0: 2}, 2, False), ({}, SEEDED, False)])
@example([({1: 5}, SEEDED, True), ({1: 2}, SEEDED, False)])
@example([({}, 2, True), ({2: 5}, SEEDED, False), ({}, 2, False)])
def test_the_digest_is_the_sum_of_all_pages(base: Base, writes: list[Write]) -> None:
    image = after(PageImage(base), writes)
    assert image.digest() == from_nothing(image) == image.digest()


def test_a_page_counts_at_its_place(base: Base) -> None:
    swapped = after(PageImage(base), [({1: 3, 2: 2}, SEEDED, False)])
    assert [swapped.page(number)[0] for number in range(SEEDED)] == [1, 3, 2, 4]
    moved = after(PageImage(base), [({1: 5}, SEEDED, False)]), after(PageImage(base), [({2: 5}, SEEDED, False)])
    longer = after(PageImage(base), [({4: 0}, SEEDED + 1, False)])
    assert len({one.digest() for one in (PageImage(base), swapped, *moved, longer)}) == 5


def test_every_bit_of_a_page_counts() -> None:
    page = bytes(range(256)) * 4
    flipped = [bytearray(page) for _ in range(8 * SIZE)]
    for bit, one in enumerate(flipped):
        one[bit // 8] ^= 1 << bit % 8
    assert len({weigh(7, page), *(weigh(7, bytes(one)) for one in flipped)}) == 8 * SIZE + 1


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, 0x83885E853BB6640CA870F92984398D22),
        (12345, 0x9ADA420DB7BD2665AC580C4830FF6B1C),
        (2**31 + 5, 0xA3BC9F1208DF2EF2467CDCA7AE94D1BF),
    ],
)
def test_weights_are_the_same_everywhere(number: int, expected: int) -> None:
    """XXH3-128 with the number as its seed: other machines and releases must find the digests that are in traces."""
    assert weigh(number, bytes(range(256)) * 4) == expected
