"""A folder of question sets as a writer or a reviewer changes it: one YAML file a coarse category, verdicts, history.

<coarse>.yaml           three coarse questions, six fine ones a pair
reviews/<coarse>.yaml   what a second reader says of each pair
history.jsonl           who changed what, when and why; only ever appended to
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from healbench.files import replace_file
from healbench.question_rules import verdicts
from healbench.questions import QuestionFile
from healbench.types import DIMENSIONS, Dimension, Question
from healbench.yamlfile import read_yaml

HISTORY = "history.jsonl"

Content = dict[str, Any]
"""What a file of questions holds, as plain lists and dicts (shape: `healbench.questions`)."""


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)  # lists stand inside their keys, as in the embedded files


def _list(dumper: _Dumper, items: list[Any]) -> yaml.Node:
    names = all(isinstance(item, str) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=names)


_Dumper.add_representer(list, _list)


def dump(content: Mapping[str, Any]) -> str:
    """YAML as people write it: keys in their order, no escapes, a text a line, lists of names on one line."""
    return yaml.dump(dict(content), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100_000)


def read_content(path: Path) -> Content | None:
    """A file of questions as plain data; None where there is none.

    Raises:
        UsageError: it has mistakes (with their lines).
    """
    if not path.is_file():
        return None
    read_yaml(path, QuestionFile)
    return _plain(path)


def write_content(folder: Path, content: Content) -> None:
    """Replaces the file of a coarse category in one step."""
    _write(folder / f"{content['coarse']}.yaml", content)


def question_entry(question: Question) -> Content:
    """A question as it stands in a file."""
    kind = {} if question.k == 0 else {"kind": question.kind}
    anchors = {rating: question.anchors[rating] for rating in sorted(question.anchors)}
    return {**kind, "construct": question.construct, "text": question.text, "anchors": anchors}


def function_entries(questions: list[Question]) -> Content:
    """The three coarse questions as they stand in a file."""
    return {question.dimension: question_entry(question) for question in questions}


def fine_entries(questions: list[Question]) -> Content:
    """The six fine questions of a pair as they stand in a file."""
    return {d: [question_entry(q) for q in questions if q.dimension == d] for d in DIMENSIONS}


def entry_of(content: Content, fine: str, dimension: Dimension, k: int) -> Content:
    """The entry of one question, to be read or changed.

    Raises:
        KeyError: the file has no such pair.
    """
    pair = content["fine"][fine]
    entry: Content = content["function"][dimension] if k == 0 else pair[dimension][k - 1]
    return entry


def set_verdicts(folder: Path, coarse: str, reader: str, changed: Mapping[str, Content]) -> None:
    """Replaces the verdicts on some pairs of a coarse category and keeps the others, in one step.

    Args:
        reader: of the whole file, where there is none yet.
        changed: by fine id: status, revised, reason.

    Raises:
        UsageError: the file that is there has mistakes (with their lines).
    """
    path = folder / "reviews" / f"{coarse}.yaml"
    verdicts(folder, coarse)
    before: Content = _plain(path) if path.is_file() else {"coarse": coarse, "reader": reader, "pairs": {}}
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, {**before, "pairs": {**before["pairs"], **changed}})


def _plain(path: Path) -> Content:
    content: Content = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def _write(path: Path, content: Content) -> None:
    """Comments that fill a line of the old file move to the top of the new one; YAML would drop them."""
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    comments = "".join(f"{line}\n" for line in old.splitlines() if line.startswith("#"))
    replace_file(path, comments + dump(content))
