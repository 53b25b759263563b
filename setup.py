"""Puts templates and specs, which stand at the top of the checkout, inside the package as kgen/_data."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DATA = ("templates", "specs")


class BuildWithData(build_py):
    def run(self):
        super().run()
        if self.editable_mode:
            return  # a checkout is read in place
        for name in DATA:
            target = Path(self.build_lib, "kgen", "_data", name)
            shutil.rmtree(
                target, ignore_errors=True
            )  # what an earlier build left may be gone from the checkout
            shutil.copytree(name, target)


setup(cmdclass={"build_py": BuildWithData})
