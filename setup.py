"""What pyproject.toml cannot say: the compiled core where there is a compiler.

The core is no extension module of Python but a library that ctypes loads: one build serves every version.
Without a compiler, or with JACCARD_EVAL_NATIVE=0, the package is built without it, and does all the same.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

IS_MSVC = sys.platform == "win32"
# No reordering and no fused arithmetic: results are those of the Python code to the last bit.
OPTIONS = ["/O2", "/std:c++17", "/fp:strict"] if IS_MSVC else ["-O2", "-std=c++17", "-ffp-contract=off", "-g0"]
# On Linux, systems differ in their C++ library; the little of it that is used becomes part of the core.
LINKED = ["-static-libstdc++", "-static-libgcc", "-Wl,-s"] if sys.platform == "linux" else []
CORE = Extension(
    "jaccard_eval.native._core",
    sources=[f"jaccard_eval/native/{name}.cpp" for name in ("core", "digests", "lines", "maps", "shapes")],
    depends=["jaccard_eval/native/reader.hpp"],
    extra_compile_args=OPTIONS if IS_MSVC else [*OPTIONS, "-fvisibility=hidden"],
    extra_link_args=LINKED,
    language="c++",
    optional=True,
)


class BuildLibrary(build_ext):
    """Builds the core under one name on every system, without what only an extension module has."""

    def get_ext_filename(self, fullname: str) -> str:
        """Return the path without the tag of a Python."""
        return str(Path(*fullname.split("."))) + ".so"

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """Return none: there is no module to initialise."""
        return []

    def get_libraries(self, ext: Extension) -> list[str]:
        """Return none: it is not linked to Python."""
        return []


class BuildWhatIsThere(build_py):
    """Builds no module that is gone since the last build in this folder, which pip would install as well."""

    def run(self) -> None:
        """Remove such modules first."""
        built = Path(self.build_lib)
        for path in built.glob("jaccard_eval/**/*.py"):
            if not path.relative_to(built).exists():
                path.unlink()
        super().run()


class WheelForAnyPython(bdist_wheel):
    """Tags a wheel by the system alone, and not at all where it holds no core."""

    def finalize_options(self) -> None:
        """Say what the wheel holds before its name is made."""
        super().finalize_options()
        self.root_is_pure = not self.distribution.has_ext_modules()

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag; that of a Python and its interface does not matter."""
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[] if os.environ.get("JACCARD_EVAL_NATIVE") == "0" else [CORE],
    cmdclass={"build_py": BuildWhatIsThere, "build_ext": BuildLibrary, "bdist_wheel": WheelForAnyPython},
)
