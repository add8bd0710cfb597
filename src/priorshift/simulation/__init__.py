"""Streams whose class prior is known: shifts, drawn and recorded streams, evaluation, regret."""
