"""The paper's tables, figures and claims, measured again beside the printed numbers."""
