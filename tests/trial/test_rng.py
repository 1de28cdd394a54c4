"""Streams are addresses: these numbers must never change, or no recorded study can be resumed."""

import subprocess
import sys

import numpy as np
import pytest

from nasbot._rng import Role, derived_seed, stream
from nasbot.errors import OptionError


def test_equal_addresses_equal_streams():
    assert stream(7, 3, Role.PROPOSAL).random(5).tolist() == stream(7, 3, Role.PROPOSAL).random(5).tolist()


def test_different_addresses_different_streams():
    addresses = [(s, t, r) for s in (0, 1, 2**64 - 1) for t in (0, 1, 1000) for r in Role]
    assert len({stream(*address).integers(2**63) for address in addresses}) == len(addresses)


def test_streams_are_the_same_for_ever():
    assert stream(0, 0, Role.PROPOSAL).integers(2**63) == FIRST_DRAW
    assert [int(role) for role in Role] == list(range(len(Role)))


def test_streams_are_the_same_in_another_process():
    program = "from nasbot._rng import *; print(stream(12, 34, Role.OBJECTIVE).integers(2**63))"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert int(output) == stream(12, 34, Role.OBJECTIVE).integers(2**63) == derived_seed(12, 34, Role.OBJECTIVE)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "0", None, True])
def test_seeds_are_whole_numbers(seed):
    with pytest.raises(OptionError, match="seed"):
        stream(seed, 0, Role.PROPOSAL)


def test_numpy_integers_are_whole_numbers():
    assert stream(np.int64(3), 0, Role.PROPOSAL).random() == stream(3, 0, Role.PROPOSAL).random()


FIRST_DRAW = 5212420523617970750
