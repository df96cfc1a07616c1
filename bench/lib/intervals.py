"""Medians with an interval that assumes no distribution."""
import math
import statistics


def median_interval(values, confidence=0.95):
    """(median, low, high): the interval from order statistics (sign test). With fewer than 6 values no interval reaches
    95 %; then it is the whole range, which covers the median with 1 - 2^(1-n)."""
    ordered = sorted(values)
    n = len(ordered)
    tail, rank = 0.0, 0  # the widest pair of ranks that still covers with `confidence`
    for k in range(n // 2):
        tail += math.comb(n, k) / 2**n
        if 1 - 2 * tail < confidence:
            break
        rank = k
    return statistics.median(ordered), ordered[rank], ordered[n - 1 - rank]


def coverage_of_range(n):
    """Probability that the range of n values covers the median."""
    return 1 - 2.0**(1 - n)
