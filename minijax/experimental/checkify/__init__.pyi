# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.experimental.checkify.checking import all_checks as all_checks
from minijax.experimental.checkify.checking import automatic_checks as automatic_checks
from minijax.experimental.checkify.checking import div_checks as div_checks
from minijax.experimental.checkify.checking import float_checks as float_checks
from minijax.experimental.checkify.checking import index_checks as index_checks
from minijax.experimental.checkify.checking import nan_checks as nan_checks
from minijax.experimental.checkify.checking import user_checks as user_checks
from minijax.experimental.checkify.checks import Error as Error
from minijax.experimental.checkify.checks import ErrorCategory as ErrorCategory
from minijax.experimental.checkify.checks import JaxRuntimeError as JaxRuntimeError
from minijax.experimental.checkify.checks import check as check
from minijax.experimental.checkify.checks import check_error as check_error
from minijax.experimental.checkify.checks import debug_check as debug_check
from minijax.experimental.checkify.checks import init_error as init_error
from minijax.experimental.checkify.transformation import checkify as checkify
