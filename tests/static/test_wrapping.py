"""The page's prose is filled; what Markdown reads by lines is not."""

from kgen.static.wrapping import WIDTH, wrapped

LONG = "word " * 60


def test_paragraphs_and_items_are_filled_to_the_width():
    text = wrapped(f"{LONG}\n\n- {LONG}\n  and more\n- second\n")
    assert max(map(len, text.splitlines())) <= WIDTH
    items = text.split("\n\n")[1].splitlines()
    assert [line for line in items if line.startswith("- ")] == [items[0], "- second"]
    assert all(line.startswith(("- ", "  ")) for line in items)
    assert text.split() == f"{LONG} - {LONG} and more - second".split(), "no word is lost"


def test_tables_and_headings_stay_as_they_are():
    kept = f"# {LONG.strip()}\n\n| {LONG}|\n| --- |\n| {LONG}|\n"
    assert wrapped(kept) == kept


def test_no_line_begins_with_a_plus():
    text = wrapped(" + ".join(["term"] * 60))
    assert not any(line.lstrip().startswith("+") for line in text.splitlines())
    assert text.split() == " + ".join(["term"] * 60).split()
