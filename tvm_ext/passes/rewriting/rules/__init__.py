"""Rewrite rules, one a file; `tvm_ext.passes.rewriting.rule.rules` finds them."""
