"""The rewritten risk: losses, the ball, the stacked kernel, the implicit step."""

from priorshift.risk.ball import norms, project_ball
from priorshift.risk.data import RiskData
from priorshift.risk.implicit import ImplicitResult, ImplicitSolver
from priorshift.risk.kernel import RiskValue, class_risks, rewritten_risk
from priorshift.risk.losses import Hinge, Loss, SmoothedHinge, Softmax, loss_by_name
from priorshift.risk.sketch import Blocks
from priorshift.risk.step import descend, gradient_step

__all__ = [
    "Blocks",
    "Hinge",
    "ImplicitResult",
    "ImplicitSolver",
    "Loss",
    "RiskData",
    "RiskValue",
    "SmoothedHinge",
    "Softmax",
    "class_risks",
    "descend",
    "gradient_step",
    "loss_by_name",
    "norms",
    "project_ball",
    "rewritten_risk",
]
