"""tvm_ext."""
