"""Compiled models as files: one uncompressed zip that any process with this package can load.

=================  ===========================================================================
member             contents
=================  ===========================================================================
``metadata.json``  format and package versions, target, CPU features, size and SHA-256 of the rest
``plan.yaml``      the plan
``program.json``   buffers and calls (`tvm_ext.program.Program`)
``code.so``        kernels and VM function as a shared library
``constants.bin``  the constants' slab, each constant at its planned offset
=================  ===========================================================================

Nothing is pickled. The code is as trusted as any shared library: load files from people you trust.
"""
