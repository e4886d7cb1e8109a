"""PyTorch programs, where torch is installed."""

import numpy as np
import pytest

from tvm_ext.frontend import load_model

from .cases import call, compile_functions

torch = pytest.importorskip("torch")


def test_exported_program_matches_torch():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten())
    x = torch.randn(2, 3, 5, 6)
    module = load_model(torch.export.export(layers.eval(), (x,)))
    main = module["main"]
    assert len(main.params) == 1
    assert list(main.attrs["tvm_ext.output_names"]) == ["output0"]
    got = call(compile_functions({"f": main}), "f", x.numpy())[0]
    np.testing.assert_allclose(got, layers(x).detach().numpy(), rtol=1e-5, atol=1e-6)
