"""What the user may choose: pydantic models, the rules between fields, and the loader that explains mistakes."""
