"""Replicas that take turns, in the language of `words`."""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.calls.words import call, word
from minijax.teams.meeting_code import BRING, PHASE, TAKE

# Parts of the program, contexts, and how far it is from one replica to the next.
(
    IN_HALL, FIRST, PARTS, PARTS_END, CONTEXTS, CONTEXTS_END, SIZE_OF_CONTEXT,
    SIZE_OF_ROW, SIZE_OF_SPACE, TURNS,
) = range(0, 80, 8)  # fmt: skip


def take_turns(memory, arena, sitting):
    """Run a program for all replicas: each part by one of them after the other."""
    part = word[sitting + PARTS]
    phase = word[sitting + FIRST]
    while part < word[sitting + PARTS_END]:
        word[word[sitting + IN_HALL] + PHASE] = phase
        phase = BRING + TAKE - phase
        row = memory
        space = arena
        context = word[sitting + CONTEXTS]
        while context < word[sitting + CONTEXTS_END]:
            call(word[part], row, space, context)
            row += word[sitting + SIZE_OF_ROW]
            space += word[sitting + SIZE_OF_SPACE]
            context += word[sitting + SIZE_OF_CONTEXT]
        part += 8
    return 0
