"""How sure a rate is: exact binomial bounds, for failure rates and for the accuracy of what judges them.

The bounds of Clopper and Pearson (Biometrika 26, 1934): the low one is the rate at which so many failures or more would
still happen with probability alpha, the high one that at which so many or fewer would. They cover at least as often as
they say, for every n, which a normal approximation does not near 0.
"""

from __future__ import annotations

import math

_HALVINGS = 60
"""Of the interval [0, 1]: what is left is below the precision of a float."""
_NEGLIGIBLE = 1e-17


def bounds(failures: int, n: int, confidence: float = 0.95, *, one_sided: bool = False) -> tuple[float, float]:
    """Low and high bound of a rate of which `failures` in `n` were seen; (0, 1) when n is 0.

    Args:
        failures: 0 to n.
        n: Independent trials, 0 and up.
        confidence: In (0, 1). Of the interval; of each bound alone where `one_sided`.
        one_sided: Give each bound the whole error, for who asks only whether a rate is above, or below, a limit.

    Raises:
        ValueError: A count or the confidence is out of its range.
    """
    if not 0 <= failures <= n:
        raise ValueError(f"failures must be from 0 to n, got {failures} of {n}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence}")
    alpha = (1 - confidence) if one_sided else (1 - confidence) / 2
    return 1 - _high(n - failures, n, alpha), _high(failures, n, alpha)


def _high(k: int, n: int, alpha: float) -> float:
    """The rate at which k or fewer of n happen with probability alpha; 1 when k is n."""
    if k == n:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if at_most(k, n, middle) > alpha:  # falls as the rate rises
            low = middle
        else:
            high = middle
    return high


def at_most(k: int, n: int, rate: float) -> float:
    """Probability that k or fewer of n happen: the binomial tail, summed from its term at k outwards.

    Each term follows from its neighbour, C(n, i-1) p^(i-1) q^(n-i+1) = term(i) * i q / ((n - i + 1) p), so only the
    first needs logarithms of factorials.
    """
    if k >= n or rate <= 0:
        return 1.0
    if k < 0 or rate >= 1:
        return 0.0
    if k > n * rate:  # the other side has the smaller terms
        return 1 - _outwards(n - k - 1, n, 1 - rate)
    return _outwards(k, n, rate)


def _outwards(k: int, n: int, rate: float) -> float:
    """As `at_most`, for k at or below the mean, where terms fall on the way down to 0."""
    choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    term = math.exp(choices + k * math.log(rate) + (n - k) * math.log1p(-rate))
    terms = [term]
    odds = (1 - rate) / rate
    for i in range(k, 0, -1):
        term *= i * odds / (n - i + 1)
        terms.append(term)
        if term < terms[0] * _NEGLIGIBLE:
            break
    return min(1.0, math.fsum(terms))
