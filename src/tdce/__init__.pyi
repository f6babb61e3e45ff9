from tdce._core.errors import InputError as InputError
from tdce._core.errors import NotFittedError as NotFittedError
from tdce.audit.findings import Findings as Findings
from tdce.audit.verification import verify as verify
from tdce.datasets.loading import Dataset as Dataset
from tdce.datasets.loading import load as load
from tdce.explainer.answer import Answer as Answer
from tdce.explainer.explainer import Explainer as Explainer
from tdce.explainer.plans import TrainingPlans as TrainingPlans
from tdce.methods.explanation import Status as Status
from tdce.methods.protocol import Method as Method
from tdce.methods.question import Question as Question
from tdce.models.adapters import ModelLike as ModelLike
from tdce.models.endpoint import Endpoint as Endpoint
from tdce.models.ensemble import Ensemble as Ensemble
from tdce.models.goals import AtLeast as AtLeast
from tdce.models.goals import Between as Between
from tdce.models.goals import Not as Not
from tdce.models.output_goals import Change as Change
from tdce.models.output_goals import Range as Range
from tdce.models.targets import Favourable as Favourable
from tdce.models.targets import Target as Target
from tdce.report.histograms import Population as Population
from tdce.schema.columns.categorical import Categorical as Categorical
from tdce.schema.columns.numeric import Numeric as Numeric
from tdce.schema.schema import Schema as Schema

__version__: str
