"""Networks of PyTorch: last layer, probabilities, fine-tuning, and a classifier of them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import priorshift
from priorshift import LabelShiftClassifier, deep
from priorshift.datasets import digits_split
from priorshift.errors import InputError, InputTypeError, PriorshiftWarning


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def digits():
    return digits_split()


def make(torch, outputs=10):
    """A network with all that behaves otherwise in training: batch norm and dropout."""
    nn = torch.nn
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2),
            nn.Linear(144, 16), nn.ReLU(), nn.Linear(16, outputs),
        )  # fmt: skip


@pytest.fixture(scope="module")
def tuned(torch, digits):
    rows, labels = digits.X_train, digits.y_train
    settings = {"epochs": 15, "batch_size": 32, "rate": 0.01, "image": (8, 8, 1)}
    return deep.fine_tune(make(torch), rows, labels, **settings)


def bytes_of(module):
    return b"".join(value.numpy().tobytes() for value in module.state_dict().values())


def test_without_torch_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (
        lambda: deep.last_layer(None, [[0.0]]),
        lambda: deep.fine_tune(None, [[0.0]], [0]),
        lambda: deep.TorchClassifier(None, [0, 1]),
    ):
        with pytest.raises(InputError, match=r"pip install '\.\[deep\]'"):
            call()


def test_the_last_layer_of_the_features_is_the_probabilities(digits, tuned):
    found = deep.last_layer(tuned, digits.X_pool, image=(8, 8, 1))
    weights, bias = (p.detach().numpy().astype(float) for p in tuned[-1].parameters())
    odds = np.exp(found.features @ weights.T + bias)
    np.testing.assert_allclose(found.proba, odds / odds.sum(axis=1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(found.proba.sum(axis=1), 1, atol=1e-12)
    # By the network's own way through, without a hook.
    images = digits.X_pool.reshape(-1, 1, 8, 8).astype(np.float32)
    hidden = tuned[:-1](sys.modules["torch"].as_tensor(images)).detach().numpy()
    np.testing.assert_allclose(found.features, hidden, atol=1e-4)


def test_training_helps_and_leaves_the_module_alone(torch, digits, tuned):
    def error(module):
        proba = deep.last_layer(module, digits.X_pool, image=(8, 8, 1)).proba
        return np.mean(proba.argmax(axis=1) != digits.y_pool)

    before = make(torch)
    kept = bytes_of(before)
    deep.fine_tune(before, digits.X_train[:50], digits.y_train[:50], epochs=1, image=(8, 8, 1))
    assert bytes_of(before) == kept
    assert all(part.training for part in before.modules())
    assert error(before) > 0.6
    assert error(tuned) < 0.08


def test_the_same_seed_gives_the_same_bytes(torch, digits):
    def weights(seed):
        torch.rand(3)  # the caller's own draws change nothing
        rows, labels = digits.X_train[:200], digits.y_train[:200]
        return bytes_of(
            deep.fine_tune(make(torch), rows, labels, epochs=2, seed=seed, image=(8, 8, 1))
        )

    state = torch.random.get_rng_state()
    assert weights(3) == weights(3)
    assert weights(3) != weights(4)
    torch.random.set_rng_state(state)
    expected = torch.rand(1)
    torch.random.set_rng_state(state)
    deep.fine_tune(make(torch), digits.X_train[:9], digits.y_train[:9], image=(8, 8, 1))
    assert torch.rand(1) == expected  # and the caller's draws are not changed


def test_threads_and_modes_are_put_back(torch, digits):
    module = make(torch)
    module[1].eval()  # a frozen batch norm in a network that is trained
    torch.set_num_threads(2)
    try:
        deep.last_layer(module, digits.X_pool[:5], image=(8, 8, 1), threads=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert [part.training for part in module] == [True, False, *[True] * 6]
    assert not any(part._forward_hooks for part in module.modules())


def test_frozen_parameters_stay(torch, digits):
    module = make(torch)
    for weights in module[0].parameters():
        weights.requires_grad = False
    rows, labels = digits.X_train[:100], digits.y_train[:100]
    tuned = deep.fine_tune(module, rows, labels, epochs=1, image=(8, 8, 1))
    assert torch.equal(tuned[0].weight, module[0].weight)
    assert not torch.equal(tuned[-1].weight, module[-1].weight)
    with pytest.raises(InputError, match="nothing to train"):
        deep.fine_tune(module[0:1].append(_frozen_head(torch)), rows, labels, image=(8, 8, 1))


def _frozen_head(torch):
    head = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(144, 10))
    for weights in head.parameters():
        weights.requires_grad = False
    return head


def test_channels_of_a_pixel_lie_side_by_side(torch):
    """A network that only sums the second channel finds it in rows of pixels."""
    layer = torch.nn.Linear(12, 2)
    with torch.no_grad():
        layer.weight[:] = torch.tensor([[0.0] * 4 + [1.0] * 4 + [0.0] * 4, [0.0] * 12])
        layer.bias[:] = 0
    module = torch.nn.Sequential(torch.nn.Flatten(), layer)
    image = np.zeros((2, 2, 3))
    image[..., 1] = [[1, 2], [3, 4]]
    found = deep.last_layer(module, image.reshape(1, -1), image=(2, 2, 3))
    assert found.features.tolist() == [[0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0]]
    np.testing.assert_allclose(found.proba[0, 0], 1 / (1 + np.exp(-10)), rtol=1e-6)


def test_the_last_layer_is_found_wherever_it_was_registered(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(3, 2)
            self.body = torch.nn.Linear(4, 3)

        def forward(self, rows):
            return self.head(self.body(rows).relu())

    assert deep.last_layer(Net(), np.eye(4)).features.shape == (4, 3)


def test_refusals(torch):
    linear = torch.nn.Linear(4, 2)
    with pytest.raises(InputTypeError, match=r"pass a torch\.nn\.Module"):
        deep.last_layer("network", np.eye(4))
    with pytest.raises(InputError, match="no parameters"):
        deep.last_layer(torch.nn.ReLU(), np.eye(4))
    with pytest.raises(InputError, match="without a softmax"):
        deep.last_layer(torch.nn.Sequential(linear, torch.nn.Softmax(1)), np.eye(4))
    with pytest.raises(InputError, match="4 numbers a row, an image of 3x3x1 has 9"):
        deep.last_layer(linear, np.eye(4), image=(3, 3, 1))
    with pytest.raises(InputError, match="at least one"):
        deep.last_layer(linear, np.empty((0, 4)))
    for labels in ([0, 1, 2, 0], [0, 1], ["a", "b", "a", "b"], [0, -1, 0, 0]):
        with pytest.raises(InputError, match="from 0 to 1"):
            deep.fine_tune(linear, np.eye(4), labels)


@pytest.mark.parametrize("learner", ["atlas", "auto"])
def test_a_network_in_a_label_shift_classifier(digits, tuned, learner):
    model = deep.TorchClassifier(tuned, classes=range(10), image=(8, 8, 1))
    clf = LabelShiftClassifier(model, learner=learner, features=model.features)
    clf.fit(digits.X_holdout, digits.y_holdout)
    read = clf.source_.read(digits.X_pool[:7])
    np.testing.assert_array_equal(read.features[:, :16], model.features(digits.X_pool[:7]))
    if learner == "atlas":  # auto calibrates
        np.testing.assert_allclose(read.proba, model.predict_proba(digits.X_pool[:7]), atol=1e-12)
    # Only ones and eights: that nothing else comes has to help.
    some = np.isin(digits.y_pool, (1, 8))
    rows, labels = digits.X_pool[some], digits.y_pool[some]
    rng = np.random.default_rng(0)
    for _ in range(60):
        clf.adapt(rows[rng.choice(len(rows), 20)])
    assert clf.prior_[[1, 8]].sum() > 0.9
    assert np.mean(clf.predict(rows) != labels) < np.mean(model.predict(rows) != labels)


def test_a_saved_classifier_gets_its_network_back(digits, tuned, tmp_path):
    model = deep.TorchClassifier(tuned, classes=range(10), image=(8, 8, 1))
    clf = LabelShiftClassifier(model, learner="atlas", features=model.features)
    clf.fit(digits.X_holdout, digits.y_holdout).adapt(digits.X_pool[:50])
    with pytest.warns(PriorshiftWarning, match="only refers to"):
        clf.save(tmp_path / "some.priorshift")
    again = priorshift.load(tmp_path / "some.priorshift", estimator=model, features=model.features)
    rows = digits.X_pool[50:80]
    np.testing.assert_array_equal(again.predict_proba(rows), clf.predict_proba(rows))
