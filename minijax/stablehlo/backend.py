"""Programs as StableHLO: a text that is asked for by its name."""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

from importlib import import_module

from minijax.jitting.compilation import text_formats


def stablehlo_text(closed, name, donated):
    """Return a program as a StableHLO text; memory is not handed over in it."""
    module = import_module("minijax.stablehlo.exported")  # and with it all rules
    return module.mlir_module_text(closed, name)


def hlo_text(closed, name, donated):
    """Return the same text for those who ask for XLA's own dialect, with its name."""
    text = stablehlo_text(closed, name, donated)
    return f"// StableHLO, from which XLA makes its HLO\n{text}"


text_formats["stablehlo"] = stablehlo_text
text_formats["hlo"] = hlo_text
