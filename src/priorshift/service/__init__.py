"""The service: ``priorshift serve``, one stream after the other kept for good, over HTTP.

It is a thin wrapper over ``Deployment.step`` and the bytes of ``saving.stream_bytes``:

* ``models``: the sources that are served, and how rows of a request become a batch;
* ``store`` (SQLite) and ``postgres``: what is on the disk, in transactions;
* ``engine``: one thread that steps streams and commits them in groups, and what reads see;
* ``app``, ``streams``, ``inference``: the routes; ``schemas``, ``tensors``: requests and answers;
* ``keys``, ``limits``, ``problems``: who may, how much, and how a refusal looks;
* ``metrics``, ``logs``, ``tracing``, ``page``: what is seen from outside;
* ``client``: the same from Python; ``command``: the command line.

Nothing inside of the library imports it.
"""
