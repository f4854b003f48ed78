"""Which cases of a test with many are quick, which slow, and which run before a release alone."""

from collections import defaultdict

import pytest


def mark_others_slow(items):
    """Mark the cases of tests marked `representative` slow, except for those that stand for all.

    `representative` alone keeps, of a product of parameters, each value of each parameter in one
    quick case at least. `representative(n)` keeps n cases, evenly spread; with the slow ones each
    value comes once. The rest of a product is marked `long` as well.
    """
    cases_of_test = defaultdict(list)
    for item in items:
        if item.get_closest_marker("representative") and not item.get_closest_marker("slow"):
            cases_of_test[item.nodeid.partition("[")[0]].append(item)
    for cases in cases_of_test.values():
        counts = cases[0].get_closest_marker("representative").args
        with_each_value = cases_with_each_value(cases)
        quick = evenly_spread(cases, *counts) if counts else with_each_value
        for case in cases:
            if case not in quick:
                case.add_marker(pytest.mark.slow)
                if case not in with_each_value:
                    case.add_marker(pytest.mark.long)


def evenly_spread(cases, count):
    """At most `count` of the cases, the first among them."""
    count = min(count, len(cases))
    return [cases[i * len(cases) // count] for i in range(count)]


def cases_with_each_value(cases):
    """Cases in which each value of each parameter comes at least once."""
    # Products hold the same objects again, which need not be hashable.
    values_of_case = {
        case: {(name, id(value)) for name, value in case.callspec.params.items()} for case in cases
    }
    missing = set().union(*values_of_case.values())
    chosen = []
    while missing:
        case = max(cases, key=lambda case: len(values_of_case[case] & missing))
        chosen.append(case)
        missing -= values_of_case[case]
    return chosen
