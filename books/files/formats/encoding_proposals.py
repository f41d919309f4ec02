"""Proposes encodings of a text that is not UTF-8, by the words that it would have."""

import re
from typing import BinaryIO

from charset_normalizer import from_bytes

from books.files.formats.encodings import ENCODINGS, LEGACY_ENCODINGS, has_other_signs

MAX_BYTES = 2**20
# Words beyond ASCII: the others look alike in all encodings.
WORDS = re.compile(rb'[^\s,;"]*[\x80-\xff][^\s,;"]*')
MAX_WORDS, MAX_PROPOSALS = 1_000, 3
# Measures of disorder that differ by less are equal.
SAME_DISORDER = 0.02


def propose_encodings(stream: BinaryIO) -> list[str]:
    """Returns keys of ENCODINGS, the likeliest first; none for a text that is UTF-8 but for a damage."""
    if not has_other_signs(stream):
        return []
    stream.seek(0)
    words = b" ".join(WORDS.findall(stream.read(MAX_BYTES))[:MAX_WORDS])
    names = {ENCODINGS[name].codec: name for name in LEGACY_ENCODINGS}
    codecs = [*names]
    matches = from_bytes(words, cp_isolation=codecs) if words else ()
    ranks = sorted(
        (match.chaos, -match.coherence, codecs.index(codec))
        for match in matches
        # Those that read the same texts in it count once.
        for codec in match.could_be_from_charset
    )
    likely = [codecs[place] for disorder, _words, place in ranks if disorder - ranks[0][0] <= SAME_DISORDER]
    return [names[codec] for codec in likely[:MAX_PROPOSALS]]
