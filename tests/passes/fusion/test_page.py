"""docs/fusion.md shows what the code says today."""

from __future__ import annotations

from tests.passes.fusion import page


def test_the_page_is_up_to_date() -> None:
    text = page.PAGE.read_text()
    for name, body in page.sections().items():
        assert page.split(text, name)[1] == body, "run python -m tests.passes.fusion.page"
