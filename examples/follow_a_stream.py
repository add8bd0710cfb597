"""Follow a stream whose class mix changes, with a model that was trained before.

Run: python examples/follow_a_stream.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from priorshift import LabelShiftClassifier

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X / 16, y, train_size=300, random_state=0)
X_hold, X_live, y_hold, y_live = train_test_split(X_rest, y_rest, train_size=700, random_state=0)

model = LogisticRegression(max_iter=1000).fit(X_train, y_train)  # last year's model
clf = LabelShiftClassifier(model)
clf.fit(X_hold, y_hold)  # a labelled held-out set measures the model, once

rng = np.random.default_rng(0)
wrong_before, wrong_now, seen = 0, 0, 0
for t in range(100):
    share = 0.9 if (t // 25) % 2 else 0.1  # eights come and go
    weights = np.where(y_live == 8, share / (y_live == 8).sum(), (1 - share) / (y_live != 8).sum())
    rows = rng.choice(len(y_live), 20, p=weights)
    labels = clf.adapt_predict(X_live[rows])  # learns from the rows without their labels
    wrong_now += int((labels != y_live[rows]).sum())
    wrong_before += int((model.predict(X_live[rows]) != y_live[rows]).sum())
    seen += len(rows)

print(f"error of the model alone: {100 * wrong_before / seen:.1f} %")
print(f"error after adapting:     {100 * wrong_now / seen:.1f} %")
print(f"share of eights now, as estimated without labels: {clf.prior_[8]:.2f}")
