"""A scripted chat, a loopback server that speaks chat completions and misbehaves on demand, a small taxonomy."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from healbench.question_drafts import KINDS
from healbench.questions import Questions
from healbench.taxonomy import EMBEDDED, Taxonomy
from healbench.types import DIMENSIONS, Picture, Question

PAIRS = ("quiet_company/napping_cat", "quiet_company/friendly_dog", "blue_space/mirror_lake")
"""Three pairs of two coarse categories: five calls."""
CALLS = 5

TAXONOMY = Taxonomy.load()
QUESTIONS = Questions()


def three_categories(path: Path, definition: str | None = None) -> Taxonomy:
    """A taxonomy file of the three pairs, written to `path`."""
    content = yaml.safe_load(EMBEDDED.read_text(encoding="utf-8"))
    fines = [pair.split("/")[1] for pair in PAIRS]
    content["name"] = "three"
    for coarse in content["coarse"]:
        coarse["fine"] = [{**f, "not_this": None} for f in coarse["fine"] if f["id"] in fines]
    content["coarse"] = [c for c in content["coarse"] if c["fine"]]
    if definition is not None:
        content["coarse"][0]["fine"][0]["definition"] = definition
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return Taxonomy.load(path)


def about(prompt: str) -> str:
    """The pair, or the coarse category, that a prompt asks about."""
    found = re.search(r"^Name: .*\(`(.*?)`\)", prompt, re.M)
    assert found
    return found.group(1)


def good_reply(prompt: str) -> str:
    """The embedded questions, in the form that the prompt asks for."""
    name = about(prompt)
    pair = next(p for p in PAIRS if p == name or p.split("/")[0] == name)
    nine = QUESTIONS.of(TAXONOMY.category(pair))
    if "/" not in name:
        return json.dumps({d: _entry(nine.of(d)[0]) for d in DIMENSIONS})
    six = {d: {kind: _entry(nine.of(d)[k]) for k, kind in enumerate(KINDS[d], 1)} for d in DIMENSIONS}
    return json.dumps(six)


def _entry(question: Question) -> dict[str, Any]:
    anchors = {str(rating): text for rating, text in question.anchors.items()}
    return {"construct": question.construct, "text": question.text, "anchors": anchors}


class ScriptedChat:
    """Answers by a function of the prompt, and remembers what it was asked."""

    digest = "scripted-1"

    def __init__(self, says: Callable[[str], str] = good_reply, name: str = "scripted") -> None:
        self.name = name
        self.says = says
        self.prompts: list[str] = []

    def reply(self, prompt: str, pictures: Sequence[Picture] = (), schema: Mapping[str, Any] | None = None) -> str:
        self.prompts.append(prompt)
        return self.says(prompt)


NOW = {"Retry-After": "0", "retry-after-ms": "1"}
Answer = tuple[int, Mapping[str, str], str]
Fault = Callable[[dict[str, Any]], Answer | None]


def status(http: int, error: str = "boom", **fields: Any) -> Fault:
    """An error of the server, to be tried again at once."""
    return lambda body: (http, NOW, json.dumps({"error": {"message": error, **fields}}))


def raw(text: str, kind: str = "application/json") -> Fault:
    """A body that is no chat completion."""
    return lambda body: (200, {"Content-Type": kind}, text)


def choice(content: str | None, finish: str = "stop", **message: Any) -> Fault:
    """A completion of one choice."""
    return lambda body: (200, {}, completion(content, finish, **message))


def no_schema(body: dict[str, Any]) -> Answer | None:
    """400 to a JSON schema, and nothing against JSON mode."""
    refused = body.get("response_format", {}).get("type") == "json_schema"
    return (400, {}, json.dumps({"error": {"message": "response_format is unknown"}})) if refused else None


def completion(content: str | None, finish: str = "stop", **message: Any) -> str:
    """The JSON of a chat completion."""
    said = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    return json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "test-model", "choices": [said]})


class ChatServer:
    """A server on 127.0.0.1. Faults are used up one a request, in order; `always` holds for every request.

    Attributes:
        requests: every body that came, with the headers under "headers".
        answered: the prompts that were answered well.
        hold_after: after so many good answers, further requests wait until `go` is set.
    """

    def __init__(
        self, says: Callable[[str], str] = good_reply, faults: Iterable[Fault] = (), always: Fault | None = None
    ) -> None:
        self.says = says
        self.faults = list(faults)
        self.always = always
        self.requests: list[dict[str, Any]] = []
        self.answered: list[str] = []
        self.hold_after: int | None = None
        self.holding = threading.Event()
        self.go = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.go.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, body: dict[str, Any]) -> Answer:
        self.requests.append(body)
        fault = self.faults.pop(0) if self.faults else self.always
        if fault is not None and (answer := fault(body)) is not None:
            return answer
        if self.hold_after is not None and len(self.answered) >= self.hold_after:
            self.holding.set()
            self.go.wait(30)
        prompt = body["messages"][0]["content"][-1]["text"]
        reply = self.says(prompt)
        self.answered.append(prompt)
        return (200, {}, completion(reply))


def _handler(server: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            code, headers, text = server.answer(
                {**body, "headers": {k.lower(): v for k, v in self.headers.items()}, "path": self.path}
            )
            try:
                self.send_response(code)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())
            except OSError:
                pass  # whoever asked was killed, or did not wait

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
