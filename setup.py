"""What pyproject.toml cannot say: one file more in the wheel, beside the package.

Python runs the lines of a .pth file when it starts. This one does nothing unless the
environment says MINIJAX_AS_JAX=1; then `import jax` means minijax (chapter 42).
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SWITCH = (
    "import os; os.environ.get('MINIJAX_AS_JAX', '0') in ('', '0') or "
    "__import__('minijax.as_jax', fromlist=['install']).install()\n"
)


class BuildWithSwitch(build_py):
    """Builds the package, and writes the line that Python runs."""

    def run(self):
        super().run()
        if not self.editable_mode:
            Path(self.build_lib, "minijax_as_jax.pth").write_text(SWITCH)

    def get_outputs(self, include_bytecode=1):
        switch = str(Path(self.build_lib, "minijax_as_jax.pth"))
        return [*super().get_outputs(include_bytecode), switch]


setup(cmdclass={"build_py": BuildWithSwitch})
