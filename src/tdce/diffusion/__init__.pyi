from tdce.diffusion.model import TabularDiffusion as TabularDiffusion
from tdce.diffusion.multinomial import gumbel_softmax as gumbel_softmax
from tdce.diffusion.plausibility import KNOTS as KNOTS
from tdce.diffusion.plausibility import rate_plausibility as rate_plausibility
from tdce.diffusion.plausibility import reference as reference
from tdce.diffusion.synthetic import classes_to_draw as classes_to_draw
from tdce.diffusion.synthetic import draw_synthetic as draw_synthetic
