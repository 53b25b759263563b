"""`epilogue.ops`: what happens to an element of D between its accumulator and its rounding, in order.

Shared by all architectures. What goes together is listed in `add_rules`, for the rule sets of each of them.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, model_validator

from kgen.errors import Refusal
from kgen.expression import FUNCTIONS, ExpressionError, parse
from kgen.spec.gemm.common import Name, Part
from kgen.spec.gemm.ops import OPERATIONS, REDUCTIONS, Operation
from kgen.spec.rules import RuleSet

_Names = Annotated[tuple[Name, ...], Field(strict=False)]
_WORDS = (*OPERATIONS, *REDUCTIONS)
_OF_EXPR = ("name", "code", "scalars", "rows", "columns", "matrices", "pairs")
_TAKEN = ("x", "y", *FUNCTIONS)


class Op(Part):
    """One step of the epilogue. A step that needs only its name may be written as that word alone: `- relu`."""

    op: Literal[(*_WORDS, "expr")] = Field(
        description="what it does, one of the steps listed under the spec reference's `epilogue.ops`; expr: `code`"
    )
    type: Literal["bf16", "fp16", "fp32"] = Field("fp32", description="element type of the arrays that it reads")
    name: Name | None = Field(None, description="expr: begins the names of its arguments")
    code: str | None = Field(
        None, description=f"expr: the new x, out of x, its arguments and {', '.join(FUNCTIONS)}; as `x > 0 ? x : s * x`"
    )
    scalars: _Names = Field((), description="expr: arguments that are one number each")
    rows: _Names = Field((), description="expr: arguments with a number per row of D")
    columns: _Names = Field((), description="expr: arguments with a number per column of D")
    matrices: _Names = Field((), description="expr: arguments with a number per element of D")
    pairs: bool = Field(False, description="expr: make one column of two neighbours, x and y, as swiglu does")

    @model_validator(mode="before")
    @classmethod
    def _word(cls, data):
        return {"op": data} if isinstance(data, str) else data

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema, handler):
        schema = handler(core_schema)
        target = handler.resolve_ref_schema(schema)
        inner = dict(target)
        target.clear()
        target |= {"title": "Op", "anyOf": [{"enum": list(_WORDS)}, inner], "additionalProperties": False}
        return schema

    @property
    def operation(self) -> Operation | None:
        """What it computes; None for a reduction."""
        if self.op != "expr":
            return OPERATIONS.get(self.op)
        kinds = {"scalar": self.scalars, "row": self.rows, "column": self.columns, "matrix": self.matrices}
        arguments = tuple((name, kind) for kind, names in kinds.items() for name in names)
        return Operation(f"{self.name}: {self.code}", self.code or "x", arguments, self.pairs)

    @property
    def argument_names(self) -> list[str]:
        """What its arguments are called in the kernel's argument struct."""
        if self.op in REDUCTIONS:
            return [self.op]
        prefix = f"{self.name}_" if self.op == "expr" else ""
        return [prefix + name for name, _ in self.operation.arguments]


Ops = Annotated[tuple[Op, ...], Field(strict=False)]


def add_rules(rules: RuleSet) -> None:
    """The rules on `epilogue.ops`, for the specs of one architecture."""
    for rule in (_ops_take, _ops_expression, _ops_once, _ops_order):
        rules.rule("epilogue.ops")(rule)


def _ops_take(s):
    """A step of `epilogue.ops` has `type` where it reads arrays; `name`, `code` and arguments where it is `expr`."""
    for i, op in enumerate(s.epilogue.ops):
        at = f"epilogue.ops.{i}"
        if op.op == "expr":
            for field in ("name", "code"):
                if getattr(op, field) is None:
                    yield Refusal(f"{at}.op", f"an expr needs {field}", f"add {field}: ...")
        else:
            for field in _OF_EXPR:
                if field in op.model_fields_set:
                    yield Refusal(f"{at}.{field}", f"{op.op} takes no {field}; only expr does", "remove it")
        if "type" in op.model_fields_set and not (op.operation and op.operation.typed):
            what = "reduces in fp32" if op.op in REDUCTIONS else "reads no array"
            yield Refusal(f"{at}.type", f"{op.op} {what}", "remove type")


def _ops_expression(s):
    """The `code` of an `expr` is a number out of `x`, its arguments and the known functions; it uses every argument."""
    for i, op in enumerate(s.epilogue.ops):
        if op.op != "expr" or op.code is None:
            continue
        at, shown = f"epilogue.ops.{i}", repr(op.code if len(op.code) <= 50 else op.code[:47] + "...")
        known = [name for name, _ in op.operation.arguments]
        for name in dict.fromkeys(n for n in known if n in _TAKEN or known.count(n) > 1):
            why = "has a meaning already" if name in _TAKEN else "is given twice"
            yield Refusal(at, f"argument {name} {why}", "choose another name")
        try:
            used = set(parse(op.code).names())
        except ExpressionError as e:
            yield Refusal(f"{at}.code", f"{shown} {e}")
            continue
        elements = ("x", "y") if op.pairs else ("x",)
        for name in sorted(used.difference(known, elements)):
            hint = f"declare it, as in scalars: [{name}]"
            if name == "y":
                hint = "y is the other column of a pair: set pairs: true"
            yield Refusal(f"{at}.code", f"{shown} uses {name}, which is no argument", hint)
        for name in [n for n in (*elements, *known) if n not in used]:
            yield Refusal(f"{at}.code", f"{shown} does not use {name}", "use it, or leave it out")


def _ops_once(s):
    """A step with arguments stands once in `epilogue.ops`, and no two arguments have the same name."""
    taken = Counter(("a", "b", "d", "m", "n", "k", "lda", "ldb", "ldd", "ldc"))
    for i, op in enumerate(s.epilogue.ops):
        for name in op.argument_names:
            if taken[name]:
                yield Refusal(
                    f"epilogue.ops.{i}", f"{op.op} has an argument {name}, which there is already",
                    "name an expr differently; other steps stand once",
                )  # fmt: skip
        taken.update(op.argument_names)


def _ops_order(s):
    """`epilogue.ops` makes pairs at most once; `cast` is the last step but for reductions, which end the list."""
    ops = s.epilogue.ops
    pairing = [i for i, op in enumerate(ops) if op.operation and op.operation.pairs]
    for i in pairing[1:]:
        yield Refusal(f"epilogue.ops.{i}", f"{ops[i].op} halves D's columns a second time", "make pairs once")
    for i, op in enumerate(ops):
        later = [o.op for o in ops[i + 1 :] if o.op not in REDUCTIONS]
        if op.op in REDUCTIONS and later:
            yield Refusal(
                f"epilogue.ops.{i}", f"{op.op} reduces what is stored, and {later[0]} changes it after", "put it last"
            )
        elif op.op == "cast" and later:
            yield Refusal(
                f"epilogue.ops.{i}", f"cast comes right before rounding, and {later[0]} after it", "put it last"
            )
