# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.exporting.exported import Exported as Exported
from minijax.exporting.exported import default_export_platform as default_export_platform
from minijax.exporting.exported import export as export
