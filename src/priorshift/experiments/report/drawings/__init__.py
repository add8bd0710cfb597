"""The paper's figures by subject: a function draws each."""
