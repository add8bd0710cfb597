"""One file that holds a source, a learner and a state, without pickle and to the last bit.

The file is a manifest in JSON and blocks of numbers, with their sizes and check sums
(``archive.py``). The manifest says what the blocks are:

* the source: what the offline stage has measured, a few held-out rows as they came, and the model
  and feature map, if they are in the closed list of ``listed.py``;
* the learner, the guard and all settings;
* the stream: what it has learned, as ``stream_bytes.py`` writes it.

Reading it runs no code of the file: priorshift's own objects are named in one fixed list,
scikit-learn's in another, and of everything else there is but a name, for which the caller brings
the object; it has to give the saved answers on the kept rows. The check sums find damage; they do
not prove who wrote a file, and whoever wrote it decides what its model answers.
"""

from priorshift.saving.recipes import decode_setting, encode_setting
from priorshift.saving.saved import Saved, load_parts, refusing, save_parts
from priorshift.saving.stream_bytes import deployment_digest, stream_from_bytes, stream_to_bytes

__all__ = [
    "Saved",
    "decode_setting",
    "deployment_digest",
    "encode_setting",
    "load_parts",
    "refusing",
    "save_parts",
    "stream_from_bytes",
    "stream_to_bytes",
]
