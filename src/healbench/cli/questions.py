"""`healbench questions`: the nine questions of a category; check, write, review and change them."""

# ruff: noqa: PLC0415 - see healbench.cli.command

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from healbench.cli.command import AsJson, app, print_json, say
from healbench.errors import UsageError

questions_app = App(name="questions", help="The nine questions of a category.", sort_key=2)
app.command(questions_app)


@questions_app.default
def show_questions(
    category: str, *, taxonomy: Path | None = None, folder: Path | None = None, as_json: AsJson = False
) -> int:
    """Print the nine questions of a category.

    Args:
        category: `coarse/fine`, or `fine` where that is unique.
        taxonomy: file that takes the place of the embedded taxonomy.
        folder: folder that takes the place of the embedded questions.
        as_json: machine output.
    """
    from healbench.console import print_questions
    from healbench.questions import Questions
    from healbench.taxonomy import Taxonomy

    found = Taxonomy.load(taxonomy).category(category)
    nine = Questions(folder).of(found)
    print_json(dataclasses.asdict(nine) | {"category": found.id}) if as_json else print_questions(nine)
    return 0


@questions_app.command(name="check")
def check_questions(*, taxonomy: Path | None = None, questions: Path | None = None) -> int:
    """Check question sets against the rules of writing, and that a second reader has read each.

    Args:
        taxonomy: file that takes the place of the embedded taxonomy.
        questions: folder that takes the place of the embedded questions.
    """
    from healbench.plugins import load_adapter
    from healbench.question_rules import check_questions as findings_of
    from healbench.question_rules import verdicts
    from healbench.questions import Questions
    from healbench.taxonomy import Taxonomy

    known, sets = Taxonomy.load(taxonomy), Questions(questions)
    findings = findings_of(sets, known, load_adapter("embedder", "offline"))
    for finding in findings:
        print(f"{finding.place}: {finding.rule}: {finding.message}")
    if findings:
        say(f"{len(findings)} to mend in {questions or 'the embedded questions'}")
        return 2
    status = Counter(verdicts(sets.folder, c.coarse)[c.fine].status for c in known.valid)
    told = ", ".join(f"{n} {name}" for name, n in sorted(status.items()))
    print(
        f"{questions or 'embedded'}: {len(known.valid)} sets, {9 * len(known.valid)} questions, nothing to mend; "
        f"second reader: {told}"
    )
    return 0


@questions_app.command(name="write")
def write_questions(
    *,
    taxonomy: Path,
    chat: str,
    out: Path,
    base_url: str | None = None,
    limit: int | None = None,
    again: Annotated[bool, Parameter(negative="")] = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Let a chat model draft the questions of a taxonomy; the same command goes on where it stopped.

    Args:
        taxonomy: your taxonomy file.
        chat: the model, e.g. `openai:MODEL`.
        out: folder of questions, to be named with `--questions` afterwards.
        base_url: of an OpenAI-compatible server of your own, e.g. http://localhost:8000/v1.
        limit: only the first N pairs.
        again: ask anew for pairs that failed, even where a reply is kept.
        dry_run: say how many calls and tokens it takes, and do nothing.
    """
    from healbench.plugins import load_adapter
    from healbench.question_writing import plan_writing
    from healbench.question_writing import write_questions as write_into
    from healbench.taxonomy import Taxonomy

    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit}: must be 1 or more")
    known = Taxonomy.load(taxonomy)
    if dry_run:
        plan = plan_writing(known, out, limit)
        print(
            f"at most {plan.calls} calls, about {plan.tokens_in} tokens in and {plan.tokens_out} out; "
            f"each reply that breaks a rule costs one more. The price is your server's."
        )
        return 0
    done = write_into(
        known,
        load_adapter("chat", chat, **({"base_url": base_url} if base_url else {})),
        out,
        embedder=load_adapter("embedder", "offline"),
        limit=limit,
        again=again,
        on_pair=lambda pair, outcome: say(f"{outcome}: {pair}"),
    )
    for row in done.failed.values():
        say(f"failed: {row['id']}: {row['part']}: {row['code']}: {row['message']}")
    print(f"{out}: {len(done.new)} sets drafted, {len(done.there)} were there, {len(done.failed)} failed")
    return 1 if done.failed else 0


@questions_app.command(name="review")
def review_questions(
    *run_dirs: Path, out: Path | None = None, sample: int | None = None, seed: int = 0, as_json: AsJson = False
) -> int:
    """Show how the questions do on scored pictures, worst first, and write a CSV to decide in.

    Args:
        run_dirs: folders that `score` has written, all with one judge.
        out: review CSV, for `questions apply`.
        sample: at most so many pictures of a pair, drawn at random.
        seed: of the draw.
        as_json: the statistics, one question a line.
    """
    from healbench.console import print_review
    from healbench.question_review import review_rows, review_table
    from healbench.review_csv import write_review

    if not run_dirs:
        raise UsageError("name one run folder or more; `healbench score … --out RUN_DIR` makes one")
    review = review_rows(run_dirs, sample=sample, seed=seed)
    if out is not None:
        write_review(out, review_table(review))
    if as_json:
        for item in review.items:
            print_json({"id": item.id, **dataclasses.asdict(item)})
    else:
        print_review(review)
    if out is not None:
        say(f"review: {out}")
    return 0


@questions_app.command(name="apply")
def apply_review(review: Path, *, out: Path, questions: Path | None = None, taxonomy: Path | None = None) -> int:
    """Make the next version of the questions from a review CSV; nothing is written if any row is wrong.

    Args:
        review: CSV of `questions review` with verdicts: accept, edit or reject.
        out: a new folder for the next version.
        questions: the folder that was reviewed; the embedded questions if not given.
        taxonomy: file that takes the place of the embedded taxonomy.
    """
    from healbench.plugins import load_adapter
    from healbench.question_apply import apply_review as apply
    from healbench.questions import Questions
    from healbench.taxonomy import Taxonomy

    embedder = load_adapter("embedder", "offline")
    done = apply(review, Questions(questions), Taxonomy.load(taxonomy), out, embedder=embedder)
    told = ", ".join(f"{n} {verdict}" for verdict, n in done.counts.items())
    print(f"{out}: {told}; {len(done.pairs)} sets changed")
    return 0
