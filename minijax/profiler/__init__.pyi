# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.profiler.spans import ProfileOptions as ProfileOptions
from minijax.profiler.spans import StepTraceAnnotation as StepTraceAnnotation
from minijax.profiler.spans import TraceAnnotation as TraceAnnotation
from minijax.profiler.spans import annotate_function as annotate_function
from minijax.profiler.spans import start_trace as start_trace
from minijax.profiler.spans import stop_trace as stop_trace
from minijax.profiler.spans import trace as trace
