import base64
import io
import json
import logging
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from healbench.errors import ChatError, HealBenchError, SetupError, UsageError
from healbench.images import load_picture
from healbench.models.chat.openai import OpenAIChat, load
from healbench.plugins import load_adapter
from healbench.types import UnscoredCode
from tests.chats import ChatServer, Fault, choice, no_schema, raw, status

KEY = "sk-test-0123456789"
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def says(prompt: str) -> str:
    return f"you said {prompt}"


def test_it_is_found_by_name_and_pinned_by_its_model() -> None:
    one = load_adapter("chat", "openai:test-model", base_url="http://127.0.0.1:1/v1")
    assert one.name == "openai:test-model"
    assert one.digest != load("other-model", base_url="http://127.0.0.1:1/v1").digest
    assert one.digest == load("test-model", base_url="http://127.0.0.1:2/v1").digest
    with pytest.raises(UsageError, match="needs the name of a model"):
        load(None)


def test_a_reply_is_the_models_own_words_and_a_schema_is_sent_along() -> None:
    with ChatServer(says) as server:
        chat = OpenAIChat("test-model", server.url)
        assert chat.reply("hello {x}") == "you said hello {x}"
        assert chat.reply("again", schema=SCHEMA) == "you said again"
    first, second = server.requests
    assert first["model"] == "test-model"
    assert first["path"] == "/v1/chat/completions"
    assert "response_format" not in first
    assert second["response_format"]["json_schema"] == {"name": "reply", "strict": True, "schema": SCHEMA}
    assert first["headers"]["authorization"] == f"Bearer {KEY}"


def test_a_server_without_schemas_is_asked_in_json_mode_and_only_once_refused() -> None:
    with ChatServer(says, always=no_schema) as server:
        chat = OpenAIChat("test-model", server.url)
        assert chat.reply("a", schema=SCHEMA) == "you said a"
        assert chat.reply("b", schema=SCHEMA) == "you said b"
    forms = [r["response_format"]["type"] for r in server.requests]
    assert forms == ["json_schema", "json_object", "json_object"]


def test_a_request_that_is_wrong_in_both_modes_is_an_error_and_schemas_are_tried_again() -> None:
    with ChatServer(says, faults=[status(400), status(400, "still wrong")]) as server:
        chat = OpenAIChat("test-model", server.url)
        with pytest.raises(ChatError, match="still wrong") as caught:
            chat.reply("a", schema=SCHEMA)
        assert caught.value.code == "server_error"
        chat.reply("b", schema=SCHEMA)
    assert server.requests[-1]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("fault", [status(500), status(503), status(429), status(408)])
def test_what_may_pass_is_tried_again(fault: Fault) -> None:
    with ChatServer(says, faults=[fault, fault]) as server:
        assert OpenAIChat("test-model", server.url).reply("x") == "you said x"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("fault", "code", "message", "requests"),
    [
        (status(500, f"key {KEY} broke it"), "server_error", "HTTP 500", 5),
        (status(429), "rate_limited", "HTTP 429", 5),
        (status(413), "too_large", "HTTP 413", 1),
        (status(400, code="context_length_exceeded"), "too_large", "HTTP 400", 1),
        (status(400, code="content_filter"), "blocked", "HTTP 400", 1),
        (raw("<html><body>hello</body></html>", "text/html"), "unparsable", "no chat completion", 1),
        (raw("<html><body>hello</body></html>"), "unparsable", "no chat completion", 1),
        (raw('{"choices": [{"mess'), "unparsable", "no chat completion", 1),
        (raw("{}"), "unparsable", "no chat completion", 1),
        (raw('{"choices": []}'), "unparsable", "no chat completion", 1),
        (raw('{"choices": [null]}'), "unparsable", "no chat completion", 1),
        (choice("half a", "length"), "truncated", "cut off", 1),
        (choice(None, refusal="I will not"), "refused", "I will not", 1),
        (choice("part", "content_filter"), "blocked", "content filter", 1),
        (choice(" \n"), "unparsable", "empty", 1),
        (choice(None), "unparsable", "empty", 1),
    ],
)
def test_what_is_no_whole_reply_is_an_error_with_its_code(
    fault: Fault, code: UnscoredCode, message: str, requests: int
) -> None:
    with ChatServer(says, always=fault) as server:
        with pytest.raises(ChatError, match=message) as caught:
            OpenAIChat("test-model", server.url).reply("x")
        assert caught.value.code == code
        assert "openai:test-model" in str(caught.value)
        assert KEY not in str(caught.value)
    assert len(server.requests) == requests


def test_a_server_that_never_answers_times_out_and_one_that_is_not_there_is_named() -> None:
    with ChatServer(says) as server:
        server.hold_after = 0
        with pytest.raises(ChatError, match=r"no answer within 0\.2 s") as caught:
            OpenAIChat("test-model", server.url, timeout=0.2, retries=0).reply("x")
        assert caught.value.code == "timeout"
        url = server.url
    with pytest.raises(ChatError, match=r"cannot reach 127\.0\.0\.1:") as caught:
        OpenAIChat("test-model", url.replace("//", "//me:secret@"), retries=0).reply("x")
    assert "secret" not in str(caught.value)
    assert caught.value.code == "server_error"


def test_a_wrong_key_or_model_stops_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer(says, faults=[status(401, f"wrong key {KEY}"), status(404)]) as server:
        chat = OpenAIChat("test-model", server.url)
        with pytest.raises(SetupError, match=r"wrong key \*\*\*; is OPENAI_API_KEY the key") as caught:
            chat.reply("x")
        assert KEY not in str(caught.value)
        with pytest.raises(UsageError, match="is 'test-model' a model of this server"):
            chat.reply("x")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(SetupError, match="OPENAI_API_KEY is not set"):
        OpenAIChat("test-model")
    with ChatServer(says) as server:
        assert OpenAIChat("test-model", server.url).reply("x") == "you said x"
    assert "no-key" in server.requests[0]["headers"]["authorization"]


def test_pictures_go_as_jpeg_of_limited_size(tmp_path: Path) -> None:
    rgb = np.random.default_rng(0).integers(0, 255, (40, 3136, 3), dtype=np.uint8)
    Image.fromarray(rgb).save(tmp_path / "wide.png")
    with ChatServer(says) as server:
        OpenAIChat("test-model", server.url).reply("look", [load_picture(tmp_path / "wide.png")])
    picture, text = server.requests[0]["messages"][0]["content"]
    assert text == {"type": "text", "text": "look"}
    head, data = picture["image_url"]["url"].split(",")
    assert head == "data:image/jpeg;base64"
    sent = Image.open(io.BytesIO(base64.b64decode(data)))
    assert (sent.format, sent.size) == ("JPEG", (1568, 20))


def test_half_a_surrogate_pair_can_be_kept_in_a_file() -> None:
    with ChatServer(says, always=choice("a\ud83db")) as server:
        reply = OpenAIChat("test-model", server.url).reply("x")
    assert reply.encode() == b"a?b"


def test_the_key_is_in_no_log_and_no_representation(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with ChatServer(says, faults=[status(500, KEY)]) as server:
        chat = OpenAIChat("test-model", server.url, retries=1)
        chat.reply("x")
        server.always = status(500, KEY)
        with pytest.raises(HealBenchError) as caught:
            chat.reply("x")
    assert KEY not in repr(chat) + str(chat) + str(caught.value) + json.dumps(chat.digest)
    sent_by_us = [r for r in caplog.records if r.name.startswith("healbench")]
    assert all(KEY not in record.getMessage() for record in sent_by_us)
    assert not any(KEY in record.getMessage() for record in caplog.records)
