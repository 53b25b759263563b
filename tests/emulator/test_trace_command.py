"""docs/emulator.md holds: its example runs, and it lists every check by name."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "emulator.md").read_text()
NO_CHECKS = {"bulk-commit", "wgmma-group", "tma-read"}  # kinds of events
FAMILIES = (
    "smem|mbarrier|tma|tmem|bulk|wgmma|clc|async|uninitialised|tcgen05|idesc|swizzle|multicast|cluster|exit|cp-async"
    "|warp"
)


@pytest.fixture
def example(tmp_path):
    """A directory with the document's scale.cu and RUN.yaml."""
    for language, name, comment in (("cuda", "scale.cu", "//"), ("yaml", "RUN.yaml", "#")):
        found = re.search(rf"```{language}\n{comment} {re.escape(name)}\n(.*?)```", DOCUMENT, re.DOTALL)
        (tmp_path / name).write_text(found[1])
    return tmp_path


def test_the_example_runs(example, kgen_command):
    line = next(x for x in DOCUMENT.splitlines() if x.startswith("    kgen emulate scale.cu"))
    words = [str(example / w) if w in ("scale.cu", "RUN.yaml", "scale.svg") else w for w in line.split()[1:]]
    done = kgen_command(*words, "--trace", str(example / "scale.json"))
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.count("ok") == 3
    ElementTree.parse(example / "scale.svg")
    events = json.loads((example / "scale.json").read_text())["traceEvents"]
    assert sum(e.get("cat") == "load" for e in events) == 4
    assert sum(e["name"] == "process_name" for e in events) == 4


def test_a_broken_example_still_leaves_its_timeline(example, kgen_command):
    source = (example / "scale.cu").read_text()
    (example / "scale.cu").write_text(source.replace("_, [%0], 4096", "_, [%0], 8192"))
    svg = example / "scale.svg"
    done = kgen_command("emulate", str(example / "scale.cu"), "--run", str(example / "RUN.yaml"), "--svg", str(svg))
    assert done.returncode != 0 and "deadlock" in done.stderr and "4096 bytes missing" in done.stderr
    assert "waits for an mbarrier" in svg.read_text()


def test_a_timeline_that_cannot_be_written_is_said(example, kgen_command):
    run = str(example / "RUN.yaml")
    done = kgen_command("emulate", str(example / "scale.cu"), "--run", run, "--trace", str(example / "no" / "t.json"))
    assert done.returncode == 2 and "the timeline cannot be written" in done.stderr


def test_the_document_lists_every_check():
    sources = "".join(p.read_text() for p in (ROOT / "kgen" / "emulator").rglob("*.py"))
    names = set(re.findall(rf'"((?:{FAMILIES})(?:-[a-z0-9]+)+)"', sources)) - NO_CHECKS
    listed = set(re.findall(r"^\| `([a-z0-9-]+)` \|", DOCUMENT, re.MULTILINE))
    assert names <= listed, names - listed
    built = {"tmem-missing-wait-ld", "tmem-missing-wait-st", "tmem-missing-fence-before", "tmem-missing-fence-after"}
    assert listed - names <= built


def test_the_committed_picture_is_small_enough():
    picture = (ROOT / "docs" / "timeline.svg").read_bytes()
    ElementTree.fromstring(picture)
    assert len(picture) < 200_000
