"""What the repository promises about itself: the README's commands, the notice, the paper map, the weights."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from healbench.samples import DEMO
from scripts.notice import notice

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

# What a test cannot run inside itself: it would install again, or start the tests.
OUTSIDE = ("make demo", "make test", "make test-long", "make bench")


def console_commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", README, re.S)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def test_the_readmes_commands_run(tmp_path: Path) -> None:
    commands = [c for c in console_commands() if not c.startswith(OUTSIDE)]
    assert len(commands) >= 8
    shutil.copy(DEMO.parent / "coffee_cup.jpg", tmp_path / "photo.jpg")
    (tmp_path / "photos").mkdir()
    shutil.copy(DEMO.parent / "tabby_face.jpg", tmp_path / "photos" / "cat.jpg")
    (sample,) = re.findall(r"```json\n(.*?)\n```", README, re.S)
    (tmp_path / "samples.jsonl").write_text(sample, encoding="utf-8")
    shutil.copy(ROOT / "src" / "healbench" / "data" / "taxonomy.yaml", tmp_path / "my-taxonomy.yaml")
    for command in commands:
        assert command.startswith(".venv/bin/healbench "), command
        arguments = [str(Path(sys.executable).with_name("healbench")), *shlex.split(command)[1:]]
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert done.stdout


def test_the_readmes_python_runs(tmp_path: Path) -> None:
    shutil.copy(DEMO.parent / "coffee_cup.jpg", tmp_path / "photo.jpg")
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.match(r"\d+\.\d+ \[.*\] For comfort: ", done.stdout)


def test_the_readmes_settings_are_taken(tmp_path: Path) -> None:
    (settings,) = re.findall(r"```toml\n(.*?)```", README, re.S)
    (tmp_path / "healbench.toml").write_text(settings.replace("5.0", "9.9"), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("healbench")), "score", str(DEMO.parent / "coffee_cup.jpg"), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["params"]["failure_rule"] == [9.9, 3]


def test_scoring_needs_no_network(tmp_path: Path) -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*_, **__): raise AssertionError('a connection was tried')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from healbench.cli import run\n"
        f"sys.exit(run(['demo', '--out', {str(tmp_path / 'run')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_notice_names_every_demo_picture_with_author_and_licence() -> None:
    assert (ROOT / "NOTICE").read_text(encoding="utf-8") == notice()


def test_every_link_to_a_file_leads_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_paper_map_names_modules_and_tests_that_exist() -> None:
    text = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    assert len(rows) > 25
    for cells in rows:
        assert len(cells) == 4, cells
        for name in re.findall(r"`((?:src|tests|scripts|docs|calibration|benchmarks)/[\w./-]+)`", "".join(cells)):
            assert (ROOT / name).exists(), name
        state = cells[3].strip()
        assert state.startswith(("built", "not built yet", "partly", "state")), state
        if state.startswith("built"):
            assert "`tests/" in cells[2], cells


def test_no_secret_of_the_environment_reaches_a_run(tmp_path: Path) -> None:
    secret = "sk-test-0123456789"
    command = [str(Path(sys.executable).with_name("healbench")), "demo", "--out", str(tmp_path / "run")]
    env = {**os.environ, "OPENAI_API_KEY": secret, "ANTHROPIC_API_KEY": secret, "HF_TOKEN": secret}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert secret not in done.stdout + done.stderr
    for file in (tmp_path / "run").rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes(), file


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md"])
def test_the_papers_of_the_project_are_there(name: str) -> None:
    assert (ROOT / name).stat().st_size > 300
