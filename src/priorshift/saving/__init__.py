"""One file that holds a source, a learner and a state, without pickle and to the last bit.

The file is a zip archive, nothing in it compressed:

* ``manifest.json``: the format's name and version, all settings, and the size and SHA-256 of every
  other member. The SHA-256 of the manifest itself is the archive's comment;
* ``arrays.npz``: the arrays of the source and of settings, under names such as ``source/proba``;
* ``stream.bin``: what the stream has learned, as ``saving/stream_bytes.py`` writes it;
* ``estimator.skops``, ``features.skops``: scikit-learn objects, in the format of skops.

Reading it runs no code of the file: priorshift's own objects are named in a fixed list,
scikit-learn's go through skops with types of scikit-learn, NumPy and SciPy only, and of everything
else there is but a name, for which the caller brings the object. The checksums find damage; they do
not prove who wrote a file, and a forged decision tree can still crash scikit-learn. So load only
models that come from people you trust.
"""

from priorshift.saving.recipes import decode_setting, encode_setting
from priorshift.saving.saved import Saved, load_parts, save_parts
from priorshift.saving.stream_bytes import stream_from_bytes, stream_to_bytes

__all__ = [
    "Saved",
    "decode_setting",
    "encode_setting",
    "load_parts",
    "save_parts",
    "stream_from_bytes",
    "stream_to_bytes",
]
