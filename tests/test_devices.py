"""Networks on a GPU. There is none here: what is tested is that it is refused by name, that naming the processor
changes nothing, and, with tensors that have a place but no values (torch's meta device), that rows and weights meet on
the weights' device."""

import lending
import pytest
import torch
from fits import SHORT
from torch.nn.functional import cross_entropy

import tdce
from tdce import InputError
from tdce._core import Backbone, deterministic, place_networks
from tdce._core.training import Adam, _clip, _update_average
from tdce.diffusion import TabularDiffusion
from tdce.models import Classifier

LACKS_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
HAS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")


def fitted(device: str) -> tdce.Explainer:
    explainer = tdce.Explainer(hidden=16, steps=30, plans=SHORT, progress="silent", device=device)
    return explainer.fit(lending.table(150), label="decision", favourable="yes")


@LACKS_GPU
def test_a_gpu_that_is_not_there_is_refused_by_name(tmp_path):
    message = "device='cuda' is not available: torch sees no GPU; use device='cpu'"
    with pytest.raises(InputError, match=message):
        fitted("cuda")
    lending.explainer().save(tmp_path / "a.tdce")
    with pytest.raises(InputError, match=message):
        tdce.Explainer.load(tmp_path / "a.tdce", device="cuda")


@pytest.mark.parametrize(("device", "why"), [
    ("gpu", "it must be 'cpu' or 'cuda'"), (0, "it must be 'cpu' or 'cuda'"), ("", "it must be 'cpu' or 'cuda'"),
    ("mps", "device='mps' is not supported: answers need float64"), ("meta", "device='meta' is not supported"),
])  # fmt: skip
def test_another_device_is_refused_by_name(device, why):
    with pytest.raises(InputError, match=why):
        fitted(device)


def test_naming_the_processor_changes_neither_the_artefact_nor_an_answer(tmp_path):
    plain = tdce.Explainer(hidden=16, steps=30, plans=SHORT, progress="silent")
    plain.fit(lending.table(150), label="decision", favourable="yes")
    named = fitted("cpu")
    assert named.provenance.artefact == plain.provenance.artefact
    rows = lending.table(4, seed=2)
    assert named.explain(rows).to_frame().equals(plain.explain(rows).to_frame())
    plain.save(tmp_path / "a.tdce")
    loaded = tdce.Explainer.load(tmp_path / "a.tdce", device="cpu")
    assert loaded.explain(rows).to_frame().equals(plain.explain(rows).to_frame())
    assert (loaded.get_params()["device"], loaded.set_params(device="cuda").device) == ("cpu", "cuda")


class _Home(torch.autograd.Function):
    """From the meta device, whose tensors have no values, to the processor: zeros; its gradients go the other way."""

    @staticmethod
    def forward(ctx, x):
        return torch.zeros(x.shape, dtype=x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.to("meta")


def test_rows_and_weights_meet_on_the_weights_device(monkeypatch):
    """Any product of a row on one device and a weight on another is an error, as on a machine with a GPU."""
    space, to = lending.explainer().fitted.encoder.space, torch.Tensor.to
    monkeypatch.setattr(deterministic, "is_batch_independent", lambda *_: True)  # a trial needs values

    def there_and_back(x, *where, **how):
        return _Home.apply(x) if x.is_meta and where and where[0] == torch.device("cpu") else to(x, *where, **how)

    monkeypatch.setattr(torch.Tensor, "to", there_and_back)
    for module in (Classifier(space.width, 2, 16), TabularDiffusion(space, 16, classes=2)):
        place_networks(module, "meta")
        weights = tuple(module.parameters())
        assert {weight.device.type for weight in weights} == {"meta"}
        assert {buffer.device.type for buffer in module.buffers()} == {"cpu"}
        x, y = torch.zeros(24, space.width), torch.zeros(24, dtype=torch.long)
        if isinstance(module, Classifier):
            value = cross_entropy(module(x), y)
        else:
            value = module.loss(space.join(x[:, : space.num], space.one_hot(x[:, space.num :])), torch.Generator(), y)
        assert value.device.type == "cpu"
        gradients = torch.autograd.grad(value, weights)
        assert {gradient.device.type for gradient in gradients} == {"meta"}
        Adam(weights).step(_clip(gradients, 1.0), 1e-3)
        _update_average(tuple(torch.zeros_like(weight) for weight in weights), weights, 0.9)
        module.eval().requires_grad_(False)
        if isinstance(module, Classifier):
            assert module(x).device.type == "cpu"
        else:
            noise = [(torch.zeros(24, space.num), torch.zeros(24, space.cat))] * 2
            assert {each.device.type for each in module.errors_at(x, [300, 500], noise, y, 20)} == {"cpu"}
            assert module.denoise(x, 5, y).device.type == "cpu"


def test_without_the_move_the_devices_would_not_meet():
    """So the test above can fail."""
    network = Backbone(4, 2, 8, 2, torch.Generator()).to("meta")
    with pytest.raises(RuntimeError, match="device"):
        network.inputs(torch.zeros(3, 4))


@HAS_GPU
def test_on_a_gpu_the_same_rows_have_the_same_answer_alone_and_together(tmp_path):
    explainer, rows = fitted("cuda"), lending.table(6, seed=2)
    answer = explainer.explain(rows).to_frame()
    for i in range(len(rows)):
        assert explainer.explain(rows.iloc[[i]]).to_frame().equals(answer.iloc[[i]])
    assert fitted("cuda").provenance.artefact == explainer.provenance.artefact
    explainer.save(tmp_path / "gpu.tdce")
    assert tdce.Explainer.load(tmp_path / "gpu.tdce", device="cuda").explain(rows).to_frame().equals(answer)
    assert tdce.Explainer.load(tmp_path / "gpu.tdce").explain(rows).counts() == explainer.explain(rows).counts()
