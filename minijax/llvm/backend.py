"""Programs run step by step, whose kernels are machine code."""

# Made from chapters/18_llvm.md by `make chapter`;
# edit the chapter, not this file.

from minijax.jitting.compilation import backends
from minijax.kernels.backends import KernelProgram
from minijax.llvm.compiler import Library
from minijax.llvm.kernel_text import emit_llvm


class LLVMProgram(KernelProgram):
    """Runs the steps of a program, one after the other; the kernels are machine code.

    Attributes:
      text: what LLVM is given.
      library: the `Library` that was made of it.
    """

    def compile(self, kernels):
        """Return functions of the buffers' memory, by the labels of the kernels."""
        self.text = emit_llvm(kernels)
        self.library = Library(self.text)
        return {label: self.called(label, kernel) for label, kernel in kernels.items()}

    def called(self, name, kernel):
        """Return a function that hands the addresses of buffers to machine code."""
        function = self.library.function(name, len(kernel.parameters))
        return lambda *memory: function(*[data.ctypes.data for data in memory])


LLVMProgram.dialects = KernelProgram.dialects | {
    "assembly": lambda program: program.library.assembly,
}
backends["llvm"] = LLVMProgram
