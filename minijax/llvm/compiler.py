"""From the text of LLVM to functions that can be called.

Reference: https://llvmlite.readthedocs.io (binding layer).
"""

# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.

import contextlib
import ctypes
import functools

from minijax.jaxprs.types import Hook


class Library:
    """Machine code, and the functions in it.

    Args:
      text: of an LLVM module.

    Attributes:
      engine: LLVM's, with the code in memory.
    """

    def __init__(self, text):
        self.text = text
        self.engine = engine_factory.value(self)

    def prepared(self, binding):
        """Return the module after LLVM's passes, and the machine it is meant for."""
        return optimized(binding, self.text)

    def recipe(self, binding):
        """Return what the code depends on beside the text: processor and passes."""
        return f"{' '.join(host())} speed 2"

    def function(self, name, arity):
        """Return a function of the library that takes so many addresses."""
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arity)
        function = kind(self.engine.get_function_address(name))
        function.library = self  # the code has to live as long as it can be called
        return function

    def generated(self, form):
        """Return the machine code: an ``object``, bytes, or ``assembly``, text."""
        from llvmlite import binding

        module, machine = self.prepared(binding)
        return getattr(machine, f"emit_{form}")(module)

    @property
    def assembly(self):
        """The instructions, as text."""
        return self.generated("assembly")


def object_code(library):
    """Return the machine code of a library, bytes that are yet to be loaded."""
    return library.generated("object")


# The context in which LLVM is asked: on a higher floor, Ctrl-C waits for its end.
asking = Hook(contextlib.nullcontext)


class Engine:
    """LLVM's engine: code in memory, which lives as long as this does."""

    def __init__(self, engine):
        self.engine = engine

    def get_function_address(self, name):
        """Return the address of a function of the code."""
        with asking.value():
            return self.engine.get_function_address(name)


def load_object_code(code):
    """Return LLVM's engine with some machine code in memory."""
    from llvmlite import binding

    module, machine = binding.parse_assembly(""), target_machine(binding, host()[0])
    engine = binding.create_mcjit_compiler(module, machine)
    engine.remove_module(module)  # or it would be compiled, too
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    (module._ptr._objects or {}).clear()  # llvmlite's cast has made it hold itself
    return Engine(engine)


def add_symbol(name, where):
    """Tell LLVM the address of a function that texts may call by its name."""
    from llvmlite import binding

    with asking.value():
        binding.add_symbol(name, where)


# What makes the engine of a `Library`.
engine_factory = Hook(lambda library: load_object_code(object_code(library)))


def optimized(binding, text):
    """Return a module after LLVM's own passes, and the machine it is meant for.

    Each module has a machine of its own: the engine that runs it takes the machine
    with it when it goes.
    """
    machine = target_machine(binding, *host())
    module = parse_module(binding, text, machine)
    options = binding.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = True
    builder = binding.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    dispose_passes(binding, passes)
    return module, machine


def dispose_passes(binding, passes):
    """Give a list of passes back to LLVM.

    That of llvmlite 0.50 does not do it itself: its class inherits two methods for it,
    and the first one does nothing.
    """
    for kind in type(passes).__mro__:
        if "_dispose" in vars(kind) and kind is not binding.ffi.ObjectRef:
            kind._dispose(passes)
            return passes.detach()


def parse_module(binding, text, machine):
    """Return the module of a text, for a machine."""
    module = binding.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    return module


def target_machine(binding, triple, cpu="", features="", level=2):
    """Return LLVM's description of a processor; the words are those of a `Target`.

    The level says how hard the code generator tries: 0 not at all, 3 most.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=level
    )


@functools.cache
def host():
    """Return LLVM's name of this system and processor, and what it can do."""
    from llvmlite import binding

    triple, cpu = binding.get_default_triple(), binding.get_host_cpu_name()
    return triple, cpu, binding.get_host_cpu_features().flatten()
