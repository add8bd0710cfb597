"""The paper's evidence, rebuilt: experiments as data, one runner, tables, figures and a report."""
