"""The spec's JSON Schema, by which editors complete and check the YAML."""

from __future__ import annotations

import json

from kgen.spec.families import variants


def spec_schema() -> dict:
    """The schema of every kernel family on every architecture, told apart by `arch:`."""
    from typing import Annotated, Union

    from pydantic import Field, TypeAdapter

    models = tuple(v.model for v in variants())
    kinds = Annotated[Union[models], Field(discriminator="arch")]  # noqa: UP007
    schema = TypeAdapter(kinds).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "kgen spec"}


def schema_text() -> str:
    """The schema as the file that is committed."""
    return json.dumps(spec_schema(), indent=2, ensure_ascii=False) + "\n"
