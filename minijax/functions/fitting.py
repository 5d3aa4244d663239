"""Polynomials and their quotients that come as close to a function as can be.

It works with numbers of any kind that has arithmetic. To find digits for 64-bit
floats, these have to have more than 64 bits, as those of mpmath.

Reference: C. Lawson, Contributions to the theory of linear least maximum approximation
(1961); H. Loeb, On rational fraction approximations at discrete points (1957).
"""

# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax.arrays.numerics import horner


def spread(low, high, count):
    """Return points between two numbers, closer to each other near the ends."""
    shares = [(1 - math.cos(math.pi * (k + 0.5) / count)) / 2 for k in range(count)]
    return [low + (high - low) * share for share in shares]


def solve(matrix, right):
    """Return the solution of a system of linear equations, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for place in range(len(rows)):
        pivot = max(range(place, len(rows)), key=lambda k: abs(rows[k][place]))
        rows[place], rows[pivot] = rows[pivot], rows[place]
        head = rows[place] = [value / rows[place][place] for value in rows[place]]
        for k, row in enumerate(rows):
            if k != place:
                rest = [a - row[place] * b for a, b in zip(row[place:], head[place:])]
                rows[k] = row[:place] + rest
    return [row[-1] for row in rows]


def least_squares(columns, right, weights):
    """Return the factors of columns whose sum differs least from the right side."""
    weighted = [[w * x for w, x in zip(weights, column)] for column in columns]

    def product(i, vector):
        return sum(x * y for x, y in zip(weighted[i], vector))

    every = range(len(columns))
    below = [[product(i, column) for column in columns[: i + 1]] for i in every]
    matrix = [[below[max(i, j)][min(i, j)] for j in every] for i in every]
    return solve(matrix, [product(i, right) for i in every])


def fit(f, ends, top, bottom=0, weight=lambda x: 1, rounds=12):
    """Return polynomials whose quotient has the least largest error.

    Args:
      f: the function, of a number.
      ends: of the interval, two numbers.
      top, bottom: the degrees of the polynomials above and below.
      weight: from a number to the factor of an error there.
      rounds: how often the weights of points are improved.

    Returns:
      The coefficients above, those below, of which the first is 1, and the error.
    """
    low, high = ends
    points = spread(low, high, 5 * (top + bottom + 2))
    values, scales = [f(x) for x in points], [weight(x) for x in points]
    columns = [[x**n for x in points] for n in range(top + 1)]
    for n in range(1, bottom + 1):
        columns.append([-y * x**n for x, y in zip(points, values)])
    shares, below = [1] * len(points), [1]
    for turn in range(rounds):
        scaled = [w / horner(below, x) for w, x in zip(scales, points)]
        weights = [share * w * w for share, w in zip(shares, scaled)]
        found = least_squares(columns, values, weights)
        above, below = found[: top + 1], [1, *found[top + 1 :]]
        quotients = [horner(above, x) / horner(below, x) for x in points]
        errors = [abs(w * (a - b)) for w, a, b in zip(scales, quotients, values)]
        worst = max(errors)
        if turn > 2 or not bottom:  # a quotient has to settle first
            shares = [share * error / worst for share, error in zip(shares, errors)]
    return above, below, worst
