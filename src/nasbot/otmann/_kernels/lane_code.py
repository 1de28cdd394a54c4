"""What the functions of ``lanes.py`` compile to: vector instructions, of whatever width the machine has.

LLVM splits sixteen lanes as it must. Numba and llvmlite are asked here for more than they promise to keep from one
version to the next, so ``compiled.py`` bounds their versions.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable

from nasbot.otmann._kernels import lanes
from nasbot.otmann._kernels.lanes import HOPS, LANES, WALKS

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_WHOLES = ir.VectorType(_I32, LANES)
_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_BITS = ir.IntType(LANES)
_FLAGS = ir.VectorType(ir.IntType(1), LANES)


class _Code:
    """The instructions of one call, written into its caller."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context = context
        self.builder = builder
        self.types = signature.args
        self.arguments = arguments

    def pointer(self, n: int, further: Any = None) -> Any:
        """Into the array that is argument n, at argument n + 1, or ``further`` on."""
        array = self.context.make_array(self.types[n])(self.context, self.builder, self.arguments[n])
        at = self.arguments[n + 1]
        return self.builder.gep(array.data, [at if further is None else self.builder.add(at, further)])

    def number(self, n: int, further: Any = None) -> Any:
        return self.builder.load(self.pointer(n, further))

    def lanes(self, n: int, further: Any = None, of: Any = _DOUBLES) -> Any:
        pointer = self.builder.bitcast(self.pointer(n, further), of.as_pointer())
        return self.builder.load(pointer, align=8 if of is _DOUBLES else 4)

    def store(self, value: Any, n: int) -> Any:
        self.builder.store(value, self.builder.bitcast(self.pointer(n), _DOUBLES.as_pointer()), align=8)
        return self.context.get_dummy_value()

    def everywhere(self, number: Any) -> Any:
        """A number in all lanes."""
        undefined = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
        first = self.builder.insert_element(undefined, number, ir.Constant(_I32, 0))
        return self.builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES))

    def difference(self, further: Any = None) -> Any:
        return self.builder.fsub(self.lanes(0, further), self.lanes(2, further))

    def equal(self) -> Any:
        flags = self.builder.fcmp_ordered("==", self.difference(), self.everywhere(self.arguments[4]))
        return self.builder.zext(self.builder.bitcast(flags, _BITS), _I64)

    def over_lanes(self, first: Any, combined: Callable[[Any, Any], Any]) -> Any:
        """What becomes of ``first``, which is of the first lanes, with the other lanes of argument 4 in turn."""
        so_far = cgutils.alloca_once_value(self.builder, first)  # type: ignore[no-untyped-call]
        step = ir.Constant(_I64, LANES)
        with cgutils.for_range_slice(self.builder, step, self.arguments[4], step) as (further, _):
            self.builder.store(combined(self.builder.load(so_far), self.difference(further)), so_far)
        return self.builder.load(so_far)

    def below(self) -> Any:
        bound = self.everywhere(self.arguments[5])

        def flagged(lanes: Any) -> Any:
            return self.builder.fcmp_ordered("<", lanes, bound)

        flags = self.over_lanes(
            flagged(self.difference()), lambda so_far, lanes: self.builder.or_(so_far, flagged(lanes))
        )
        return self.builder.icmp_unsigned("!=", self.builder.bitcast(flags, _BITS), ir.Constant(_BITS, 0))

    def lesser(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def least(self) -> Any:
        left, n = self.over_lanes(self.difference(), self.lesser), LANES
        while n > 1:
            n //= 2
            undefined = ir.Constant(left.type, ir.Undefined)
            low, high = (
                self.builder.shuffle_vector(
                    left, undefined, ir.Constant(ir.VectorType(_I32, n), list(range(first, first + n)))
                )
                for first in (0, n)
            )
            left = self.lesser(low, high)
        return self.builder.extract_element(left, ir.Constant(_I32, 0))

    def add_where(self) -> Any:
        flags = self.builder.bitcast(self.builder.trunc(self.arguments[2], _BITS), _FLAGS)
        before = self.lanes(0)
        after = self.builder.fadd(before, self.everywhere(self.arguments[3]))
        return self.store(self.builder.select(flags, after, before), 0)

    def copy(self) -> Any:
        return self.store(self.lanes(2), 0)

    def set(self) -> Any:
        weighted = self.builder.fmul(self.everywhere(self.arguments[6]), self.lanes(4))
        return self.store(self.builder.fadd(self.lanes(2), weighted), 0)

    def absolute(self, lanes: Any) -> Any:
        if lanes.type == _WHOLES:
            is_negative = self.builder.icmp_signed("<", lanes, ir.Constant(_WHOLES, None))
            return self.builder.select(is_negative, self.builder.neg(lanes), lanes)
        words = ir.VectorType(_I64, LANES)
        all_but_sign = ir.Constant(words, [ir.Constant(_I64, 2**63 - 1)] * LANES)
        return self.builder.bitcast(self.builder.and_(self.builder.bitcast(lanes, words), all_but_sign), _DOUBLES)

    def set_structural(self) -> Any:
        builder = self.builder
        apart_1, apart_2, n_groups, weight = self.arguments[10:]
        hops, walks = (
            cgutils.alloca_once_value(builder, ir.Constant(of, None))  # type: ignore[no-untyped-call]
            for of in (_WHOLES, _DOUBLES)
        )
        with cgutils.for_range(builder, n_groups) as loop:
            for k in range(HOPS):
                distance = self.distances(2, 4, HOPS, k, loop.index, apart_1, apart_2)
                builder.store(builder.add(builder.load(hops), distance), hops)
            ends = [self.distances(6, 8, WALKS, k, loop.index, apart_1, apart_2) for k in range(WALKS)]
            builder.store(builder.fadd(builder.load(walks), builder.fadd(*ends)), walks)
        weighted = builder.fmul(self.everywhere(weight), builder.sitofp(builder.load(hops), _DOUBLES))
        return self.store(builder.fadd(weighted, builder.load(walks)), 0)

    def distances(self, one: int, others: int, size: int, k: int, group: Any, apart_1: Any, apart_2: Any) -> Any:
        """|number of argument ``one`` - lanes of argument ``others``|, of length k out of ``size`` of a group."""
        builder = self.builder
        length = builder.add(builder.mul(group, ir.Constant(_I64, size)), ir.Constant(_I64, k))
        number = self.everywhere(self.number(one, builder.mul(length, apart_1)))
        of = ir.VectorType(number.type.element, LANES)
        lanes = self.lanes(others, builder.mul(length, apart_2), _WHOLES if of == _WHOLES else _DOUBLES)
        difference = builder.sub if of == _WHOLES else builder.fsub
        return self.absolute(difference(number, lanes))

    def clear(self) -> Any:
        return self.store(ir.Constant(_DOUBLES, [ir.Constant(ir.DoubleType(), 0.0)] * LANES), 0)

    def trailing_zeros(self) -> Any:
        return self.builder.cttz(self.arguments[0], cgutils.true_bit)


def _compile(function: Callable[..., Any], code: Callable[[_Code], Any], returns: Any) -> None:
    """Let compiled code that calls ``function`` contain ``code`` in its place."""

    def typed(*_: Any) -> Any:
        return returns

    typed.__signature__ = signature(function)  # type: ignore[attr-defined]
    type_callable(function)(lambda context: typed)

    def lowered(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        return code(_Code(context, builder, given, arguments))

    lower_builtin(function, types.VarArg(types.Any))(lowered)  # type: ignore[no-untyped-call]


_compile(lanes.any_below, _Code.below, types.boolean)
_compile(lanes.lanes_equal, _Code.equal, types.uint64)
_compile(lanes.least_of_lanes, _Code.least, types.float64)
_compile(lanes.add_to_lanes, _Code.add_where, types.void)
_compile(lanes.copy_lanes, _Code.copy, types.void)
_compile(lanes.set_lanes, _Code.set, types.void)
_compile(lanes.set_structural_costs, _Code.set_structural, types.void)
_compile(lanes.clear_lanes, _Code.clear, types.void)
_compile(lanes.first_bit, _Code.trailing_zeros, types.uint64)
