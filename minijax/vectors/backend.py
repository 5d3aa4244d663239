"""Programs run step by step in planned memory, by kernels with vectors."""

# Made from chapters/24_vectors_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.jitting.compilation import backends
from minijax.llvm.kernel_text import module_text
from minijax.llvm.schedules import kernel_function
from minijax.llvm.targets import TargetLibrary, current_target
from minijax.memory.backend import PlannedProgram


class VectorProgram(PlannedProgram):
    """Runs the steps of a program; the kernels are machine code with vectors."""

    def compile(self, kernels):
        """Return functions of the buffers' memory, by the labels of the kernels."""
        target = current_target()
        functions = [kernel_function(k, label, target) for label, k in kernels.items()]
        self.text = module_text(functions)
        self.library = TargetLibrary(self.text, target)
        return {label: self.called(label, kernel) for label, kernel in kernels.items()}


backends["vectors"] = VectorProgram
