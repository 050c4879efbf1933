"""Any server that speaks OpenAI's chat completions: vLLM, SGLang, Ollama, llama.cpp, hosted ones.

The key comes from OPENAI_API_KEY alone and reaches nothing but the server: no message, row or file.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from PIL import Image

from healbench.errors import ChatError, SetupError, UsageError
from healbench.images import resize_long_side

if TYPE_CHECKING:
    import openai

    from healbench.types import Picture, UnscoredCode

LONGEST_SIDE = 1568
JPEG_QUALITY = 90
RETRIES = 4
"""The SDK's own, with growing pauses: lost connections, timeouts, 408, 409, 429 and 5xx."""

_CODES_OF_400: dict[str, UnscoredCode] = {"context_length_exceeded": "too_large", "content_filter": "blocked"}
_CODES: dict[int, UnscoredCode] = {408: "timeout", 413: "too_large", 429: "rate_limited"}


class OpenAIChat:
    """One model of one server. The model is pinned by its name: give a dated one where the server has them."""

    def __init__(
        self, model: str, base_url: str | None = None, *, timeout: float = 300.0, retries: int = RETRIES
    ) -> None:
        from openai import OpenAI  # noqa: PLC0415 - half a second, only for those who ask a server

        self.name = f"openai:{model}"
        self.model = model
        base_url = base_url or os.environ.get("OPENAI_BASE_URL")
        self._key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not self._key and not base_url:
            raise SetupError("OPENAI_API_KEY is not set; export the key, or name your own server with --base-url")
        key = self._key or "no-key"  # the SDK wants one; servers of one's own mostly do not
        self._client = OpenAI(api_key=key, base_url=base_url, timeout=timeout, max_retries=retries)
        self._takes_schemas = True

    @property
    def digest(self) -> str:
        """Of what a reply depends on: the model's name and how pictures are sent."""
        return hashlib.sha256(f"openai 1 {self.model} {LONGEST_SIDE} {JPEG_QUALITY}".encode()).hexdigest()

    def reply(self, prompt: str, pictures: Sequence[Picture] = (), schema: Mapping[str, Any] | None = None) -> str:
        """See `healbench.types.Chat.reply`."""
        content: list[dict[str, Any]] = []  # pictures first: models rate better what they have seen before the question
        content += [{"type": "image_url", "image_url": {"url": _data_url(picture)}} for picture in pictures]
        content.append({"type": "text", "text": prompt})
        if schema is None:
            return self._ask(content, None)
        if self._takes_schemas:
            named = {"name": "reply", "strict": True, "schema": dict(schema)}
            try:
                return self._ask(content, {"type": "json_schema", "json_schema": named})
            except _SchemaRefusedError:
                pass
        reply = self._ask(content, {"type": "json_object"})
        self._takes_schemas = False  # it takes JSON mode: no later call has to be refused first
        return reply

    def _ask(self, content: list[dict[str, Any]], form: dict[str, Any] | None) -> str:
        import openai  # noqa: PLC0415

        asked: dict[str, Any] = {"messages": [{"role": "user", "content": content}]}
        if form is not None:
            asked["response_format"] = form
        try:
            completion = self._client.chat.completions.create(model=self.model, **asked)
        except openai.APITimeoutError as error:
            raise ChatError("timeout", f"{self.name}: no answer within {self._client.timeout} s") from error
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            where = self._client.base_url.netloc.decode()  # without a name and password that the URL may hold
            raise ChatError("server_error", self._safe(f"cannot reach {where} ({cause})")) from error
        except openai.APIStatusError as error:
            raise self._refused(error, form) from error
        except (openai.OpenAIError, ValueError) as error:  # ValueError: a body that is not JSON
            raise self._no_completion(str(error)) from error
        return self._text(completion)

    def _text(self, completion: Any) -> str:
        choices: Any = getattr(completion, "choices", None) or [None]
        message = getattr(choices[0], "message", None)
        if message is None:
            raise self._no_completion(str(completion))
        finish = getattr(choices[0], "finish_reason", None)
        if finish == "content_filter":
            raise ChatError("blocked", f"{self.name}: the server's content filter stopped the reply")
        if getattr(message, "refusal", None):
            raise ChatError("refused", self._safe(f"the model refused: {message.refusal}"))
        if finish == "length":
            raise ChatError("truncated", f"{self.name}: the reply was cut off at the server's length limit")
        text = message.content
        if not isinstance(text, str) or not text.strip():
            raise ChatError("unparsable", f"{self.name}: the reply is empty")
        return text.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be kept in a file

    def _refused(self, error: openai.APIStatusError, form: dict[str, Any] | None) -> Exception:
        said = self._safe(f"HTTP {error.status_code}: {error.message}")
        if error.status_code in (401, 403):
            return SetupError(f"{said}; is OPENAI_API_KEY the key of this server?")
        if error.status_code == 404:
            return UsageError(f"{said}; is {self.model!r} a model of this server, and does --base-url end in /v1?")
        if error.status_code == 400 and error.code in _CODES_OF_400:
            return ChatError(_CODES_OF_400[error.code], said)
        if error.status_code == 400 and form is not None and form["type"] == "json_schema":
            return _SchemaRefusedError(said)
        return ChatError(_CODES.get(error.status_code, "server_error"), said)

    def _no_completion(self, said: str) -> ChatError:
        hint = "the answer is no chat completion; does --base-url end in /v1?"
        return ChatError("unparsable", self._safe(f"{hint} It began: {said[:80]!r}"))

    def _safe(self, message: str) -> str:
        """A message without the key, which some servers repeat, and short enough for a row."""
        return f"{self.name}: " + (message.replace(self._key, "***") if self._key else message)[:500]


class _SchemaRefusedError(Exception):
    """The server answers 400 to the schema; many know only JSON mode."""


def _data_url(picture: Picture) -> str:
    buffer = io.BytesIO()
    Image.fromarray(resize_long_side(picture.rgb, LONGEST_SIDE)).save(buffer, "JPEG", quality=JPEG_QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


def load(argument: str | None, *, base_url: str | None = None) -> OpenAIChat:
    """Factory of the entry point `openai` in `healbench.chat`; `openai:MODEL`.

    Raises:
        UsageError, SetupError: no model is named; neither a key nor a server of one's own.
    """
    if argument is None:
        raise UsageError("openai needs the name of a model, e.g. openai:gpt-5.1")
    return OpenAIChat(argument, base_url)
