"""All-reduce of several arrays at one meeting, in machine code."""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.calls.words import call, room, word
from minijax.teams.meeting_code import (
    BESIDE,
    BRING,
    COMBINE,
    COPY,
    ELEMENTS,
    ELSEWHERE,
    HALL,
    INTO,
    PHASE,
    PIECE,
    ROW,
    SIZE,
    SLOT,
    SLOTS,
    SOURCE,
    WIDTH,
    arrive,
    copier,
    fold,
    for_oneself,
    leave,
)
from minijax.threads.atomics import quotient


def fold_copies(entry, table, total, end, label):
    """Combine small sources: one copy holds them all, each from a line on."""
    group = word[entry]
    packed = room(64)
    at = packed
    row = table
    while row < end:
        size = word[row + ELEMENTS] * word[row + WIDTH]
        call(word[word[group + HALL] + COPY], at, word[row], size)
        at += (size + 63) & -64
        row += ROW
    side = arrive(entry, packed, total, 0, label)
    if side < 0:
        return side & 1
    start = 0
    row = table
    while row < end:
        size = word[row + ELEMENTS]
        fold(group, side, word[row + INTO], start, 0, size, word[row + WIDTH],
             word[row + COMBINE])  # fmt: skip
        start += (size * word[row + WIDTH] + 63) & -64
        row += ROW
    return 0


def fold_row(group, side, row, at, lo, end, copy):
    """Combine some elements of one array of several, and hand them out."""
    slot = group + SLOTS
    last = slot + word[group + SIZE] * SLOT
    width = word[row + WIDTH]
    result = word[row + INTO]
    start = lo * width
    source = word[word[slot + SOURCE + side] + at] + start
    call(word[word[group + HALL] + COPY], result + start, source, (end - lo) * width)
    slot += SLOT
    while slot < last:
        source = word[word[slot + SOURCE + side] + at]
        call(word[row + COMBINE], result, source, lo, end)
        slot += SLOT
    slot = group + SLOTS
    while slot < last:
        to = word[word[slot + SOURCE + side] + at + INTO]
        if to != result:
            call(copy, to + start, result + start, (end - lo) * width)
        slot += SLOT
    return 0


def exchange_folds(entry, table, count, label):
    """All get the combinations of several arrays at one meeting; a row for each.

    Which replica begins with which part changes from array to array, so that many
    small ones are shared out as well.
    """
    group = word[entry]
    if group < 0:
        return call(word[entry + ELSEWHERE], entry, table, count, label)
    end = table + count * ROW
    total = 0
    row = table
    while row < end:
        total += (word[row + ELEMENTS] * word[row + WIDTH] + 63) & -64
        row += ROW
    if for_oneself(group, total):
        return fold_copies(entry, table, total, end, label)
    if word[word[group + HALL] + PHASE] == BRING:  # the table has to stay
        kept = group + SLOTS + word[entry + 8] * SLOT + BESIDE
        call(word[word[group + HALL] + COPY], kept, table, count * ROW)
        table = kept
    side = arrive(entry, table, total, 0, label)
    if side < 0:
        return side & 1
    number = word[entry + 8]
    copy = copier(group, total)
    row = table
    while row < end:
        size = word[row + ELEMENTS]
        grain = word[row + PIECE]
        part = quotient(quotient(size, grain), word[group + SIZE]) * grain
        lo = number * part
        last = lo + part
        if last > size:
            last = size
        while lo < last:
            hi = lo + grain
            if hi > last:
                hi = last
            fold_row(group, side, row, row - table, lo, hi, copy)
            lo = hi
        number += 1
        if number == word[group + SIZE]:
            number = 0
        row += ROW
    return leave(entry, total)
