"""What pyproject.toml cannot say: the page of findings, which `jaccard-eval help CODE` prints, is part of a wheel.

It stays among the docs, once: a build copies it into the package.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithPages(build_py):
    """Builds the package with the pages that it shows."""

    def run(self) -> None:
        """Copy the modules, then the pages; an editable install finds these where they are."""
        super().run()
        if not self.editable_mode:
            self.copy_file("docs/findings.md", str(Path(self.build_lib, "jaccard_eval", "findings.md")))


setup(cmdclass={"build_py": BuildWithPages})
