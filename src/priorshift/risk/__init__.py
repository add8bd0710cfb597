"""The rewritten risk: losses, the ball, the stacked kernel, the implicit step."""

from priorshift.risk.data import LARGEST, RiskData, check_magnitude, class_sums
from priorshift.risk.implicit import ImplicitResult, ImplicitSolver, Solver
from priorshift.risk.inexact import SOLVERS, LinearisedSolver, PaperSolver, as_solver
from priorshift.risk.kernel import RiskValue, class_risks, rewritten_risk
from priorshift.risk.losses import Hinge, Loss, SmoothedHinge, Softmax, loss_by_name
from priorshift.risk.sketches.base import Sketch
from priorshift.risk.sketches.blocks import Blocks
from priorshift.risk.sketches.error import SketchError, sketch_error
from priorshift.risk.sketches.fixed import Coreset, Herding
from priorshift.risk.sketches.named import SKETCHES, as_sketch, sketch_by_name
from priorshift.risk.step import descend, gradient_step, norms, project_ball

__all__ = [
    "LARGEST",
    "SKETCHES",
    "SOLVERS",
    "Blocks",
    "Coreset",
    "Herding",
    "Hinge",
    "ImplicitResult",
    "ImplicitSolver",
    "LinearisedSolver",
    "Loss",
    "PaperSolver",
    "RiskData",
    "RiskValue",
    "Sketch",
    "SketchError",
    "SmoothedHinge",
    "Softmax",
    "Solver",
    "as_sketch",
    "as_solver",
    "check_magnitude",
    "class_risks",
    "class_sums",
    "descend",
    "gradient_step",
    "loss_by_name",
    "norms",
    "project_ball",
    "rewritten_risk",
    "sketch_by_name",
    "sketch_error",
]
