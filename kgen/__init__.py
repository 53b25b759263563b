"""kgen: YAML kernel specs become complete, standalone, proven CUDA projects."""

__version__ = "0.1.0"
