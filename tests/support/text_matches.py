"""Texts that a partial, case-insensitive filter finds, with what finds them."""

import pytest

TEXT_MATCHES = [
    pytest.param("Jane Austen", "Jane Austen", id="the whole"),
    pytest.param("Jane Austen", "Jane", id="the beginning"),
    pytest.param("Jane Austen", "sten", id="the end"),
    pytest.param("Jane Austen", "e A", id="the middle"),
    pytest.param("Jane Austen", "JANE aUSTEN", id="another case"),
    pytest.param("Émile Zola", "é", id="é finds É"),
    pytest.param("émile zola", "ÉMILE", id="É finds é"),
    pytest.param("\u00c9mile", "e\u0301mile", id="decomposed finds composed"),
    pytest.param("E\u0301mile", "\u00e9mile", id="composed finds decomposed"),
    pytest.param("Günter Graß", "GRASS", id="SS finds ß"),
    pytest.param("Günter GRASS", "graß", id="ß finds SS"),
    pytest.param("Günter Graß", "GRAẞ", id="ẞ finds ß"),
    pytest.param("Όμηρος", "ΌΜΗΡΟΣ", id="Σ finds ς"),
    pytest.param("ΌΜΗΡΟΣ", "όμηρος", id="ς finds Σ"),
    pytest.param("Όμηρος", "ηροσ", id="σ finds ς"),
    pytest.param("İstanbul", "İSTANBUL", id="İ finds İ"),
    pytest.param("İstanbul", "i\u0307stanbul", id="i with a dot above finds İ"),
    pytest.param("Лев Толстой", "ТОЛСТОЙ", id="Cyrillic"),
    pytest.param("ﬁction", "FICTION", id="ligature"),
    pytest.param("𐐀 Deseret", "𐐨", id="beyond the BMP"),
    pytest.param("村上春樹", "春", id="Han"),
    pytest.param("100% Wolf", "0% w", id="percent"),
    pytest.param("snake_case", "E_C", id="underscore"),
    pytest.param("back\\slash", "K\\S", id="backslash"),
    pytest.param('it\'s "so"', "'s \"s", id="quotes"),
    pytest.param("tab\tand\nline", "\tand\n", id="control characters"),
    pytest.param("ends in \\", "\\", id="backslash at the end"),
    pytest.param("Jane Austen", " ", id="a blank"),
]
