"""The page of supported operators is what the tables say now."""

from pathlib import Path

from tvm_ext.codegen.byoc.limits import CHOICES, LIMITS
from tvm_ext.codegen.byoc.patterns import BY_OPERATOR
from tvm_ext.codegen.network import LAYERS
from tvm_ext.codegen.supported_ops_page import main, supported_ops_page

PAGE = Path(__file__).parents[2] / "docs" / "supported_ops.md"


def test_page_is_up_to_date(tmp_path):
    assert PAGE.read_text(encoding="utf-8") == supported_ops_page(), (
        "run: python -m tvm_ext.codegen.supported_ops_page docs/supported_ops.md"
    )
    main([str(tmp_path / "page.md")])
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == supported_ops_page()


def test_page_names_all_of_the_tables():
    page = supported_ops_page()
    for name in BY_OPERATOR:
        assert f"`{name}`" in page
    for limit in (*LIMITS, *CHOICES):
        assert limit.subject in page


def test_every_limit_is_about_a_layer():
    assert {kind for limit in LIMITS for kind in limit.kinds} <= set(LAYERS)
    assert all(limit.low <= limit.high for limit in LIMITS)
