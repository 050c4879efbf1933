"""Picture → the category it most likely belongs to, for people who have not chosen one yet.

A suggestion is a start, not a label: wherever it is used the row says `category_source: "suggested"`.
"""

from __future__ import annotations

import numpy as np

from healbench.taxonomy import Taxonomy
from healbench.types import Category, Embedder, Picture


class Suggester:
    """Ranks a taxonomy's valid pairs by how near their words are to a picture.

    Args:
        embedder: puts pictures and texts into one space.
    """

    def __init__(self, taxonomy: Taxonomy, embedder: Embedder) -> None:
        self._categories = taxonomy.valid
        self._embedder = embedder
        self._words = np.stack([embedder.embed_text(in_words(c)) for c in self._categories])

    def suggest(self, picture: Picture) -> Category:
        """The nearest valid pair by cosine; the first in the taxonomy's order where two are equal."""
        return self._categories[int(np.argmax(self._words @ self._embedder.embed_picture(picture)))]


def in_words(category: Category) -> str:
    """The category as a caption would put it."""
    return f"{category.name}: {category.definition} {', '.join(category.visual_cues)}."
