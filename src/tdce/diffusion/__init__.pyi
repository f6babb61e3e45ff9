from tdce.diffusion.model import TabularDiffusion as TabularDiffusion
from tdce.diffusion.multinomial import gumbel_softmax as gumbel_softmax
from tdce.diffusion.plausibility import ENERGY_QUANTILES as ENERGY_QUANTILES
from tdce.diffusion.plausibility import measure_energy_quantiles as measure_energy_quantiles
from tdce.diffusion.plausibility import rate_plausibility as rate_plausibility
from tdce.diffusion.synthetic import SamplingPlan as SamplingPlan
from tdce.diffusion.synthetic import classes_to_draw as classes_to_draw
from tdce.diffusion.synthetic import draw_synthetic as draw_synthetic
