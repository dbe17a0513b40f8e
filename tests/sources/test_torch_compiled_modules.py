"""Activations of torch networks whose modules are compiled (`compile=True`): rows, shapes, hooks, refusals."""

import copy
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402

from eigengame import Checkpoint, activations  # noqa: E402
from eigengame.solver.passes.checkpoint import CheckpointError  # noqa: E402
from tests.game_pca import game_pca  # noqa: E402
from tests.sources.tables import error_of, same_fingerprint  # noqa: E402
from tests.sources.test_torch_activations import (  # noqa: E402
    BLOCKS,
    Block,
    N,
    Net,
    X,
    copied,
    loader,
    made_net,
)

pytestmark = [
    pytest.mark.skipif(
        torch.cuda.is_available(),
        reason="float32 on the CPU is expected; test_torch_on_gpu has the tests for a GPU",
    ),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of torch's own compiler
]


class Graphs:
    """A backend of `torch.compile` that records the number of images of each graph that it gets."""

    def __init__(self, backend="eager"):
        self.rows, self._backend = [], backend

    def __call__(self, graph, inputs):
        from torch._dynamo import lookup_backend

        images = [one for one in inputs if one.dim() == 4 and not isinstance(one, nn.Parameter)]
        self.rows.append(len(images[0]))
        return lookup_backend(self._backend)(graph, inputs)


@pytest.fixture
def use(monkeypatch):
    """Return a function that sets the backend of `torch.compile`; "eager" needs no compiler and little time."""
    compiler = torch.compile
    torch._dynamo.reset()

    def set_backend(backend):
        monkeypatch.setattr(
            torch, "compile", lambda *given, **options: compiler(*given, backend=backend, **options)
        )
        return backend

    yield set_backend
    torch._dynamo.reset()


@pytest.fixture
def graphs(use):
    return use(Graphs())


@pytest.fixture(scope="module")
def net():
    return made_net()


def compiled_names(source):
    """Return the names of the modules that the source compiles."""
    return [name for name, one in source._network._model.named_modules() if "forward" in vars(one)]


# ---------------------------------------------------------------- rows


@pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="torch needs a C++ compiler"
)
def test_rows_equal_those_without_compilation_and_the_network_is_not_changed(net, use):
    graphs = use(Graphs("inductor"))
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    source = activations(net, loader(), BLOCKS, compile=True)
    found, expected = copied(source, size=8), copied(activations(net, loader(), BLOCKS), size=8)
    # One program for both blocks, which have one shape.
    assert graphs.rows == [8]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    # The last 5 rows are a shorter batch, which runs without programs.
    np.testing.assert_array_equal(found[32:], expected[32:])
    assert not any("forward" in vars(module) for module in net.modules())
    assert not any(module._forward_hooks for module in net.modules())
    for name, tensor in net.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("batch", "size", "start", "rows"),
    [
        (8, 8, 0, [8]),
        (8, 8, 3, []),  # each batch is split
        (8, 16, 0, [8]),
        (20, 6, 0, [6]),
        (64, 64, 0, [N]),
    ],
)
def test_one_shape_is_compiled(net, graphs, batch, size, start, rows):
    source = activations(net, loader(batch), BLOCKS, compile=True)
    assert graphs.rows == []  # shapes of layers come from a run without programs
    expected = copied(activations(net, loader(batch), BLOCKS), start, size)
    for _ in range(2):
        np.testing.assert_allclose(copied(source, start, size), expected, atol=1e-5)
    assert graphs.rows == rows


def test_inputs_of_another_shape_are_not_compiled(net, graphs):
    sizes = [X[:8], X[8:16, :, :7, :7], X[16:24]]
    source = activations(net, sizes, "fc", compile=True)
    expected = copied(activations(net, sizes, "fc"), size=8)
    np.testing.assert_allclose(copied(source, size=8), expected, atol=1e-5)
    assert graphs.rows == [8]


@pytest.mark.parametrize("side", ["outputs", "inputs"])
@pytest.mark.parametrize(
    ("layers", "names"),
    [
        (None, ["layer1.0", "layer1.1"]),
        ("fc", ["layer1"]),
        (["layer1", "conv1"], ["layer1"]),
        ("layer1.0", ["layer1.0", "layer1.1"]),
        (["layer1.0.conv", "layer1.1"], ["layer1.1"]),
        ("layer1.1.*", ["layer1.0"]),
    ],
)
def test_the_largest_modules_without_a_layer_inside_are_compiled(net, graphs, layers, names, side):
    source = activations(net, loader(), layers, side=side, compile=True)
    assert compiled_names(source) == names
    plain = activations(net, loader(), layers, side=side)
    assert source.layers == plain.layers
    np.testing.assert_allclose(copied(source, size=8), copied(plain, size=8), atol=1e-5)
    assert graphs.rows == [8]


def test_a_list_of_modules_is_compiled_module_by_module_and_a_shared_module_once(graphs):
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            shared = Block()
            self.blocks, self.again = nn.ModuleList([shared, Block()]), shared
            self.stem, self.head = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 2, 3)

        def forward(self, x):
            x = self.stem(x)
            for block in self.blocks:
                x = block(x)
            return self.head(self.again(x))

    listed = Listed()
    source = activations(listed, loader(), "head", compile=True)
    assert compiled_names(source) == ["blocks.0", "blocks.1"]
    assert source._network._compiled._count == 2
    expected = copied(activations(listed, loader(), "head"), size=8)
    np.testing.assert_allclose(copied(source, size=8), expected, atol=1e-5)
    assert graphs.rows == [8]


def test_more_shapes_of_blocks_than_the_limit_of_torch_are_compiled(graphs):
    class Widening(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.conv = nn.Conv2d(width, width + 1, 1)

        def forward(self, x):
            return torch.relu(self.conv(x))

    limit = torch._dynamo.config.recompile_limit
    count = limit + 4
    network = nn.Sequential(*[Widening(3 + i) for i in range(count)])
    source = activations(network, loader(), compile=True)
    for _ in range(2):
        copied(source, size=8)
    assert graphs.rows == count * [8]
    assert torch._dynamo.config.recompile_limit == limit


# ---------------------------------------------------------------- identity


def test_a_run_is_not_resumed_with_compiled_modules(net, graphs, tmp_path):
    plain = activations(net, loader(), BLOCKS)
    source, same = (activations(net, loader(), BLOCKS, compile=True) for _ in range(2))
    assert same_fingerprint(source, same)
    assert "compile" not in plain.fingerprint()
    kept = Checkpoint(tmp_path, trust_source=True)
    game_pca(2, passes=1, random_state=0).fit(plain, checkpoint=kept)
    with pytest.raises(CheckpointError, match=r"belongs to another run: .*source\.compile was"):
        game_pca(2, passes=1, random_state=0).fit(source, checkpoint=kept)


# ---------------------------------------------------------------- networks that are compiled already


def test_a_network_that_is_compiled_as_a_whole_is_compiled_again_around_the_layers(net, graphs):
    expected = copied(activations(net, loader(), BLOCKS), size=8)
    own = copy.deepcopy(net)
    own.layer1[0].compile()
    own.compile()
    for given in (torch.compile(net), own):
        graphs.rows.clear()
        torch._dynamo.reset()
        source = activations(given, loader(), BLOCKS, compile=True)
        assert compiled_names(source) == ["layer1.0", "layer1.1"]
        np.testing.assert_allclose(copied(source, size=8), expected, atol=1e-5)
        assert graphs.rows == [8]
    assert own.layer1[0]._compiled_call_impl is not None


def test_a_network_with_compiled_modules_is_refused(net, graphs):
    wrapped = copy.deepcopy(net)
    wrapped.layer1 = torch.compile(wrapped.layer1)
    message = error_of(activations, wrapped, loader(), "fc", compile=True)
    assert "module 'layer1' of activations of Net is compiled already" in message
    assert "or leave out compile" in message
    replaced = copy.deepcopy(net)
    replaced.layer1[1].forward = torch.compile(replaced.layer1[1].forward)
    assert "module 'layer1.1' of activations" in error_of(
        activations, replaced, loader(), "fc", compile=True
    )
    replaced.forward = torch.compile(replaced.forward)
    assert "compile=True: activations of Net is compiled already" in error_of(
        activations, replaced, loader(), "fc", compile=True
    )


# ---------------------------------------------------------------- what is refused


def test_networks_and_rows_that_cannot_be_compiled_are_refused(net):
    message = error_of(activations, net, loader(), ["**", "layer1.0.conv"], compile=True)
    assert "no module of activations of Net can be compiled" in message
    assert "choose larger layers, such as blocks, or leave out compile" in message
    for rows in ("tokens", "pixels"):
        assert f"with rows='{rows}' the number of positions may differ" in error_of(
            activations, net, loader(), "layer1", rows=rows, compile=True
        )
    assert "compile='yes': give True or False" in error_of(
        activations, net, loader(), compile="yes"
    )

    class Stubborn(Net):
        def __deepcopy__(self, memo):
            raise TypeError("never")

    message = error_of(activations, Stubborn(), loader(), "fc", compile=True)
    assert "or compiled: give" in message
    assert "no device or compile to run the network without a copy" in message


def test_a_compiler_that_fails_is_reported_with_the_fix(net, use):
    def no_compiler(graph, inputs):
        raise RuntimeError("no g++ here")

    use(no_compiler)
    source = activations(net, loader(), BLOCKS, compile=True)
    message = error_of(copied, source, size=8)
    assert "activations of Net cannot be compiled" in message
    assert "no g++ here" in message
    assert "leave out compile, or install what torch.compile needs: a C++ compiler" in message


def test_an_error_of_a_compiled_network_remains_its_own(graphs):
    class Picky(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 2, 1)

        def forward(self, x):
            if len(x) == 8:
                raise KeyError("eight")
            return self.conv(x)

    source = activations(nn.Sequential(Picky()), loader(), "0", compile=True)
    with pytest.raises(KeyError, match="eight") as raised:
        copied(source, size=8)
    assert "ran on (8, 3, 8, 8) torch.float32" in raised.value.__notes__[-1]
