"""Sketches of the held-out set: less to read or to keep, at a price that can be measured.

``Blocks`` reads another random part of the set each round; ``Coreset`` and ``Herding`` are fixed
weighted subsets that can replace the set.
"""
