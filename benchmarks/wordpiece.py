"""A WordPiece tokenizer of lower case English, with the vocabulary of a BERT checkpoint."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

CLS, SEP, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"

MOST_LETTERS = 100
"""Longer words are unknown."""


class WordPiece:
    """Texts to token ids.

    Parameters
    ----------
    path : path
        Vocabulary: a token in each line, and its id is the number of the line.
    """

    def __init__(self, path: str | Path) -> None:
        text = Path(path).read_text(encoding="utf-8")
        self.tokens = text.removesuffix("\n").split("\n")
        self._ids = {token: i for i, token in enumerate(self.tokens)}

    def __call__(self, text: str, most: int) -> list[int]:
        """Return at most `most` ids of a text, with [CLS] first and [SEP] last."""
        pieces = [piece for word in words_of(text) for piece in self._pieces(word)]
        return [self._ids[one] for one in (CLS, *pieces[: most - 2], SEP)]

    def _pieces(self, word: str) -> list[str]:
        """Return the pieces of a word, each the longest that the vocabulary has at its place."""
        found, begin = [], 0
        while begin < len(word):
            prefix = "##" if begin else ""
            ends = range(len(word), begin, -1)
            end = next((end for end in ends if prefix + word[begin:end] in self._ids), None)
            if end is None or len(word) > MOST_LETTERS:
                return [UNKNOWN]
            found.append(prefix + word[begin:end])
            begin = end
        return found


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case, without accents; each punctuation mark is a word."""
    plain = unicodedata.normalize("NFD", text.lower())
    word = ""
    for letter in plain:
        kind = unicodedata.category(letter)
        if kind == "Mn" or (kind[0] == "C" and not letter.isspace()):
            continue
        if letter.isspace() or is_punctuation(letter):
            if word:
                yield word
            word = ""
            if not letter.isspace():
                yield letter
        else:
            word += letter
    if word:
        yield word


def is_punctuation(letter: str) -> bool:
    """Return whether a character is a punctuation mark; all symbols of ASCII are."""
    symbol = letter.isascii() and letter.isprintable() and not (letter.isalnum() or letter == " ")
    return symbol or unicodedata.category(letter)[0] == "P"
