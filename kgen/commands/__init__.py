"""The commands, thin: they ask the library and say what it answered."""
