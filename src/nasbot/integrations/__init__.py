"""Bridges to other libraries, one module each; each needs the extra of its name.

optuna    networks suggested inside Optuna's trials; a study of ours in Optuna's storage
botorch   the kernel of eq. (7) for GPyTorch and BoTorch
"""
