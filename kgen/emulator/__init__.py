"""A PTX emulator. Imports nothing of kgen but `kgen.errors`, so that it can prove the rest wrong."""
