# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.experimental.checkify.checking import Error as Error
from minijax.experimental.checkify.checking import ErrorCategory as ErrorCategory
from minijax.experimental.checkify.checking import JaxRuntimeError as JaxRuntimeError
from minijax.experimental.checkify.checking import all_checks as all_checks
from minijax.experimental.checkify.checking import automatic_checks as automatic_checks
from minijax.experimental.checkify.checking import check as check
from minijax.experimental.checkify.checking import check_error as check_error
from minijax.experimental.checkify.checking import checkify as checkify
from minijax.experimental.checkify.checking import debug_check as debug_check
from minijax.experimental.checkify.checking import div_checks as div_checks
from minijax.experimental.checkify.checking import float_checks as float_checks
from minijax.experimental.checkify.checking import index_checks as index_checks
from minijax.experimental.checkify.checking import init_error as init_error
from minijax.experimental.checkify.checking import nan_checks as nan_checks
from minijax.experimental.checkify.checking import user_checks as user_checks
