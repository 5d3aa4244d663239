# Made from chapters/16_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""From the text of LLVM to functions that can be called.

Reference: https://llvmlite.readthedocs.io (binding layer).
"""

import ctypes
import threading

_lock = threading.Lock()


class Library:
    """Machine code, and the functions in it.

    Args:
      text: of an LLVM module.

    Attributes:
      optimized: the text after LLVM's own passes.
      assembly: the instructions.
    """

    def __init__(self, text):
        from llvmlite import binding as llvm

        with _lock:
            machine = _target_machine(llvm)
            module = llvm.parse_assembly(text)
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            module.verify()
            _optimize(llvm, module, machine)
            self.optimized, self.assembly = str(module), machine.emit_assembly(module)
            self.engine = llvm.create_mcjit_compiler(module, machine)
            self.engine.finalize_object()

    def function(self, name, arity):
        """Return a function of the library, of so many addresses."""
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arity)
        return kind(self.engine.get_function_address(name))


def _target_machine(llvm):
    """Return LLVM's idea of this computer; no two engines may share one."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
    )


def _optimize(llvm, module, machine):
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
