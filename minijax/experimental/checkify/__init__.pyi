# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.experimental.checkify.checking import Checkified as Checkified
from minijax.experimental.checkify.checking import Checks as Checks
from minijax.experimental.checkify.checking import all_checks as all_checks
from minijax.experimental.checkify.checking import automatic_checks as automatic_checks
from minijax.experimental.checkify.checking import check_rules as check_rules
from minijax.experimental.checkify.checking import checkified as checkified
from minijax.experimental.checkify.checking import checkify as checkify
from minijax.experimental.checkify.checking import div_checks as div_checks
from minijax.experimental.checkify.checking import float_checks as float_checks
from minijax.experimental.checkify.checking import index_checks as index_checks
from minijax.experimental.checkify.checking import nan_checks as nan_checks
from minijax.experimental.checkify.checking import plainly as plainly
from minijax.experimental.checkify.checking import run_checked as run_checked
from minijax.experimental.checkify.checking import user_checks as user_checks
from minijax.experimental.checkify.checks import Causes as Causes
from minijax.experimental.checkify.checks import Error as Error
from minijax.experimental.checkify.checks import ErrorCategory as ErrorCategory
from minijax.experimental.checkify.checks import JaxRuntimeError as JaxRuntimeError
from minijax.experimental.checkify.checks import check as check
from minijax.experimental.checkify.checks import check_codes as check_codes
from minijax.experimental.checkify.checks import check_error as check_error
from minijax.experimental.checkify.checks import debug_check as debug_check
from minijax.experimental.checkify.checks import failure_of as failure_of
from minijax.experimental.checkify.checks import init_error as init_error
