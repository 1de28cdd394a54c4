"""scikit-learn's own checks of manners, on both estimators with budgets of one small network."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from nasbot import Layer
from nasbot.architecture.blocks import chain
from nasbot.estimators import NASBOTClassifier, NASBOTRegressor

TINY = {"budget": 1, "steps": 150, "validation_fraction": 0.25}
REGRESSOR = NASBOTRegressor(start_from=[chain("mlp-reg", [Layer("relu", 16)])], **TINY)
CLASSIFIER = NASBOTClassifier(start_from=[chain("mlp-class", [Layer("relu", 16)])], **TINY)

NOT_OURS = {
    "check_sample_weight_equivalence_on_dense_data": "rows are divided and batched at random, so repeated rows are "
    "divided otherwise; tests/data/test_weighting.py compares steps, losses and metrics where they are exact",
}


@parametrize_with_checks([REGRESSOR, CLASSIFIER], expected_failed_checks=lambda _: NOT_OURS)
def test_manners(estimator, check):
    check(estimator)
