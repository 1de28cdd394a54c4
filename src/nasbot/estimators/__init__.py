"""The scikit-learn face: ``NASBOTRegressor`` and ``NASBOTClassifier``."""

from nasbot.estimators.classifier import NASBOTClassifier
from nasbot.estimators.regressor import NASBOTRegressor

__all__ = ["NASBOTClassifier", "NASBOTRegressor"]
