"""The embedded `Embedder`: a picture among texts by the meaning of its classes (ConSE, Norouzi et al. 2014)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from healbench.models.offline.content import Content
from healbench.models.offline.networks import weights_digest
from healbench.types import Picture


class OfflineEmbedder:
    """384-dimensional, no download; good enough to suggest a category, not to tell neighbours apart."""

    def __init__(self) -> None:
        self._content = Content()

    @property
    def digest(self) -> str:
        return weights_digest()

    def embed_picture(self, picture: Picture) -> NDArray[np.float32]:
        """The picture as a unit vector, shape (384,)."""
        return self._content.mean_class(self._content.evidence(picture.rgb))

    def embed_text(self, text: str) -> NDArray[np.float32]:
        """The text as a unit vector, shape (384,)."""
        return self._content.text_vector(text)


def load(argument: str | None) -> OfflineEmbedder:
    """Factory of the entry point `offline` in `healbench.embedder`; it takes no argument."""
    return OfflineEmbedder()
