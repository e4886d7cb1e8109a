"""Graph rewriting by rules of pattern, precondition, replacement and saving."""

from tvm_ext.passes.rewriting.rewrite_graph import Application, Refusal, RewriteGraph

__all__ = ["Application", "Refusal", "RewriteGraph"]
