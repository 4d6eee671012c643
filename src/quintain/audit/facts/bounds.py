"""Exact binomial bounds, for failure rates and for the accuracy of judges.

The bounds of Clopper and Pearson (Biometrika 26, 1934): at the low bound, so many failures or more happen with
probability alpha; at the high bound, so many or fewer do. Their coverage is at least nominal for every n, which a
normal approximation does not give near 0.
"""

from __future__ import annotations

import math

_HALVINGS = 60  # bisections of [0, 1]; the remainder is below the precision of a float
_NEGLIGIBLE = 1e-17


def bounds(failures: int, n: int, confidence: float = 0.95, *, one_sided: bool = False) -> tuple[float, float]:
    """Returns the (low, high) bounds of a rate after `failures` in `n` trials; (0, 1) if n is 0.

    The confidence is of the interval; of each bound alone if `one_sided`. Raises ValueError if an argument is out of
    range.
    """
    if not 0 <= failures <= n:
        raise ValueError(f"failures must be from 0 to n, got {failures} of {n}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence}")
    alpha = (1 - confidence) if one_sided else (1 - confidence) / 2
    return 1 - _high(n - failures, n, alpha), _high(failures, n, alpha)


def _high(k: int, n: int, alpha: float) -> float:
    low, high = float(k == n), 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(k, n, middle) > alpha else (low, middle)  # falls as the rate rises
    return high


def at_most(k: int, n: int, rate: float) -> float:
    """Returns the probability that k or fewer of n happen: the binomial tail, summed from its term at k outwards.

    Each term follows from its neighbour, so only the first needs logarithms of factorials.
    """
    if k >= n or rate <= 0:
        return 1.0
    if k < 0 or rate >= 1:
        return 0.0
    if k > n * rate:  # The other side has the smaller terms, which decrease towards 0.
        return 1 - at_most(n - k - 1, n, 1 - rate)
    choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    terms = [math.exp(choices + k * math.log(rate) + (n - k) * math.log1p(-rate))]
    for i in range(k, 0, -1):
        terms.append(terms[-1] * i * (1 - rate) / rate / (n - i + 1))
        if terms[-1] < terms[0] * _NEGLIGIBLE:
            break
    return min(1.0, math.fsum(terms))
