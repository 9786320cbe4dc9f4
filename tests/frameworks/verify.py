"""Run the recipes and `attach` in the frameworks that are installed, and write which these were to verified.toml.

`make frameworks` calls it in an environment of its own. `verify.py --stale` answers, by exit code 0, whether what was
verified has changed since; `.ci/run` asks that first.
"""

import hashlib
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERIFIED = Path(__file__).with_name("verified.toml")
# What tests here run in, by the name of its package; torch and torchvision are what these run on.
FRAMEWORKS = ("ultralytics", "lightning", "mmengine", "transformers", "supervision", "torchmetrics", "wandb")
FRAMEWORKS += ("rfdetr", "mlflow-skinny", "tensorboard", "torch", "torchvision")
# Not installed: the recipe of the first runs among stand-ins, in tests/recipes, that of the second in MMEngine alone.
ABSENT = {"detectron2": "not in the package registry", "mmdet": "its mmcv is not built in the package registry"}


def digest() -> str:
    """Return a digest of the drop-ins, the integrations, the recipes and the tests."""
    folders = ("jaccard_eval/compat", "jaccard_eval/integrations", "tests/frameworks")
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    named = ["pycocotools.py", "torchmetrics.py", "patch.py"]
    parts = [path.read_bytes() for path in [*paths, *(ROOT / "jaccard_eval" / name for name in named)]]
    page = (ROOT / "docs/training-loop.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return hashlib.sha256(b"\0".join([*parts, *(block.encode() for block in blocks)])).hexdigest()


def is_stale() -> bool:
    """Whether the file is missing, or of something else."""
    return not VERIFIED.exists() or f'digest = "{digest()}"' not in VERIFIED.read_text(encoding="utf-8")


def main() -> int:
    """Run the tests; write the versions when they pass."""
    if sys.argv[1:] == ["--stale"]:
        return not is_stale()
    # Folders of the sample have names of packages.
    command = [sys.executable, "-m", "pytest", "-o", "pythonpath=tests", "--timeout=300", str(VERIFIED.parent)]
    if failed := subprocess.run([*command, "-rs", "-W", "ignore", "--durations=3"], cwd=ROOT, check=False).returncode:
        return failed
    found, absent = {}, dict(ABSENT)
    for name in FRAMEWORKS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            absent[name] = "not installed"
    lines = [
        "# By `make frameworks`: what the recipes and `attach` were run in, and of what, as a digest of the files."
    ]
    lines += [f'digest = "{digest()}"']
    for title, values in (("verified", found), ("not-verified", absent)):
        lines += ["", f"[{title}]", *(f'{name} = "{value}"' for name, value in values.items())]
    VERIFIED.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
