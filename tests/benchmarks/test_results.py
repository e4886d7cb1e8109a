"""The writer of RESULTS.md."""

import pytest

from benchmarks.results import markdown_table, write_section


def test_writing_twice_changes_nothing(tmp_path):
    file = tmp_path / "RESULTS.md"
    write_section("one", "first", file)
    write_section("two", "second\n", file)
    before = file.read_text()
    write_section("one", "first\n\n", file)
    write_section("two", "second", file)
    assert file.read_text() == before
    assert before.endswith(
        "<!-- begin:one -->\nfirst\n<!-- end:one -->\n\n"
        "<!-- begin:two -->\nsecond\n<!-- end:two -->\n"
    )


def test_a_section_is_replaced_in_place_and_the_rest_kept(tmp_path):
    file = tmp_path / "RESULTS.md"
    file.write_text("intro\n<!-- begin:a -->\nold\nlines\n<!-- end:a -->\ntail\n")
    write_section("a", r"new \1", file)
    assert file.read_text() == "intro\n<!-- begin:a -->\nnew \\1\n<!-- end:a -->\ntail\n"
    assert [p.name for p in tmp_path.iterdir()] == ["RESULTS.md"]


@pytest.mark.parametrize(
    ("name", "body", "text", "message"),
    [
        ("a b", "", "", "letters, digits and hyphens"),
        ("a", "<!-- end:a -->", "", "holds a marker"),
        ("a", "", "<!-- begin:a -->", "1 begins and 0 ends"),
        ("a", "", "<!-- end:a -->\n<!-- begin:a -->", "1 begins and 1 ends"),
    ],
)
def test_refusals_leave_the_file_alone(tmp_path, name, body, text, message):
    file = tmp_path / "RESULTS.md"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        write_section(name, body, file)
    assert file.read_text() == text


def test_table_aligns_and_escapes():
    assert markdown_table(["m", "x"], [["a|b", "1"]]) == "| m | x |\n| --- | ---: |\n| a\\|b | 1 |"
    with pytest.raises(ValueError, match="1 cells, the header 2"):
        markdown_table(["m", "x"], [["a"]])
