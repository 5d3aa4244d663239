# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.stablehlo.exported import Exported as Exported
from minijax.stablehlo.exported import default_export_platform as default_export_platform
from minijax.stablehlo.exported import export as export
