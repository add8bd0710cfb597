"""Files and pipes: tables read row by row, adapted batch by batch, written and resumed.

* ``tables.py``: rows of CSV, NDJSON and Parquet, one after the other.
* ``columns.py``: from cells to what the classifier reads.
* ``fitting.py``: a source from a held-out file.
* ``output.py``: rows written so that a resumed run gives the same bytes.
* ``resuming.py``: how far a run has come, in one file that is replaced as a whole.
* ``adapting.py``: the run itself.
"""
