"""The offline judge as a whole: determinism, order on real photographs, and what it refuses."""

import hashlib
import io
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageFilter

from healbench.errors import SetupError, UsageError
from healbench.images import load_picture
from healbench.judge import heal_score, load_judge
from healbench.models.offline import judge as offline
from healbench.models.offline.content import Content, class_meanings, embedded_reference, known_texts, text_key
from healbench.models.offline.features import look
from healbench.models.offline.networks import SentenceEncoder
from healbench.models.offline.statistics import NAMES, measure
from healbench.questions import Questions
from healbench.samples import DEMO, samples_from_jsonl
from healbench.taxonomy import Taxonomy
from healbench.types import DIMENSIONS, HealScore, Judgement, Picture, Sample

TAXONOMY = Taxonomy.load()
QUESTIONS = Questions()
SAMPLES = {s.id: s for s in samples_from_jsonl(DEMO, TAXONOMY)}


def judged(samples: list[Sample], pictures: list[Picture] | None = None) -> list[Judgement]:
    sets = [QUESTIONS.of(TAXONOMY.category(s.category or "")) for s in samples]
    return list(load_judge("offline").judge(samples, pictures or [load_picture(s.image) for s in samples], sets))


def score(sample: Sample, rgb: np.ndarray | None = None) -> HealScore:
    picture = load_picture(sample.image) if rgb is None else Picture(sample.image, rgb, "0")
    outcome = heal_score(judged([sample], [picture])[0])
    assert isinstance(outcome, HealScore)
    return outcome


def test_a_picture_gets_the_same_numbers_alone_and_in_any_batch() -> None:
    samples = list(SAMPLES.values())
    together = judged(samples)
    assert judged(samples[::-1])[::-1] == together
    for sample, judgement in list(zip(samples, together, strict=True))[::6]:
        assert judged([sample]) == [judgement]


def test_nine_ratings_and_a_sentence_a_dimension_with_its_evidence() -> None:
    for judgement in judged(list(SAMPLES.values())[:6]):
        assert judgement.ratings is not None
        for dimension in DIMENSIONS:
            assert all(r is not None and 1 <= r <= 10 for r in judgement.ratings[dimension])
            sentence = judgement.rationale[dimension]
            assert sentence.endswith(".")
            assert sentence.count("nothing in particular") < 2


@pytest.mark.parametrize("name", ["circuit_board", "city_traffic", "jaguars", "rocket"])
def test_uneasy_subjects_fail_heal(name: str) -> None:
    assert "heal" in score(SAMPLES[name]).failures


@pytest.mark.parametrize("name", ["forest_stream_blurred", "kingfisher_noisy", "dandelions_jpeg"])
def test_degraded_copies_fail_quality(name: str) -> None:
    assert "quality" in score(SAMPLES[name]).failures
    assert "quality" not in score(SAMPLES[name.rsplit("_", 1)[0]]).failures


def test_a_wrong_text_fails_alignment_and_the_right_one_does_not() -> None:
    assert "alignment" in score(SAMPLES["red_canyon_wrong_text"]).failures
    assert "alignment" not in score(SAMPLES["red_canyon"]).failures


def _blur(image: Image.Image) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(2))


def _noise(image: Image.Image) -> Image.Image:
    pixels = np.asarray(image, dtype=np.float64)
    noisy = pixels + np.random.default_rng(0).normal(0, 25, pixels.shape)
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


def _jpeg(image: Image.Image) -> Image.Image:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=8)
    return Image.open(file)


@pytest.mark.parametrize("degrade", [_blur, _noise, _jpeg])
def test_every_clean_demo_photo_is_above_its_degraded_copy(degrade: Callable[[Image.Image], Image.Image]) -> None:
    clean = [s for s in SAMPLES.values() if s.extra["change"] == "resized" and not s.id.endswith("wrong_text")]
    for sample in clean:
        image = Image.fromarray(load_picture(sample.image).rgb)
        image.thumbnail((512, 512))
        assert score(sample, np.asarray(image)).quality > score(sample, np.asarray(degrade(image))).quality, sample.id


@settings(max_examples=25, deadline=None)
@given(arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40), st.just(3))))
def test_any_picture_gets_finite_measurements_and_a_score(rgb: np.ndarray) -> None:
    measured = measure(rgb)
    assert all(np.isfinite(getattr(measured, name)) for name in NAMES)
    assert 4 <= score(SAMPLES["coffee_cup"], rgb).total <= 40


@pytest.mark.parametrize("grey", [0, 128, 255])
def test_a_flat_picture_is_scored_low_in_quality_and_breaks_nothing(grey: int) -> None:
    assert score(SAMPLES["coffee_cup"], np.full((300, 400, 3), grey, dtype=np.uint8)).quality < 5


def test_measurements_agree_with_what_was_put_in() -> None:
    rng = np.random.default_rng(0)
    for sigma in (5, 10, 20):
        noisy = np.clip(128 + rng.normal(0, sigma, (400, 500, 1)), 0, 255).astype(np.uint8).repeat(3, axis=2)
        assert measure(noisy).noise == pytest.approx(sigma, rel=0.05)
    half = np.zeros((100, 100, 3), dtype=np.uint8)
    half[:, 50:] = 255
    assert measure(half).crushed == pytest.approx(0.5)
    assert measure(half).blown == pytest.approx(0.5)
    assert measure(half).saturation == 0
    green = np.zeros((100, 100, 3), dtype=np.uint8)
    green[..., 1] = 200
    assert [measure(green).green, measure(green).blue, measure(green).saturation] == pytest.approx([1, 0, 1])


def test_a_text_fits_its_own_photograph_better_than_another() -> None:
    content = Content()
    seen = {n: look(content, load_picture(SAMPLES[n].image).rgb) for n in ("tabby_face", "coffee_cup", "mountain_path")}
    texts = {"tabby_face": "the face of a cat", "coffee_cup": "a cup of espresso", "mountain_path": "mountain peaks"}
    for name, text in texts.items():
        fits = {other: content.match(sight.evidence, text) for other, sight in seen.items()}
        assert max(fits, key=lambda other: fits[other]) == name


def test_what_ships_is_what_the_manifests_say() -> None:
    folder = resources.files("healbench.models.offline") / "weights"
    calibration = json.loads((folder / "CALIBRATION.json").read_text(encoding="utf-8"))["files"]
    for name, digest in calibration.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert sum(Path(str(f)).stat().st_size for f in folder.iterdir()) < 60_000_000


def test_the_shipped_meanings_are_those_of_the_encoder() -> None:
    assert np.abs(embedded_reference().meaning - class_meanings()).max() < 1e-3
    encoder, known = SentenceEncoder(), known_texts()
    assert len(known) > 600
    for category in TAXONOMY.valid[::9]:
        for text in (category.definition, *category.visual_cues):
            assert known[text_key(text)] @ encoder.encode(text) > 0.9999


def test_a_missing_or_foreign_calibration_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    parts = ("mean", "scale", "weights", "bias")
    wrong: Any = {f"{d}.{part}": np.zeros((3, 1)) for d in DIMENSIONS for part in parts}
    np.savez(file, **wrong)
    for content in (b"", b"not an archive", file.getvalue()):
        offline.heads.cache_clear()
        monkeypatch.setattr(offline, "read_weights", lambda _, content=content: content)
        with pytest.raises(SetupError, match=r"calibration\.npz is damaged"):
            offline.heads()
    offline.heads.cache_clear()


def test_the_judge_takes_no_argument() -> None:
    with pytest.raises(UsageError, match="takes no argument"):
        load_judge("offline:large")
