"""The switches of the package.

Reference: ``jax.config``.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

import os
import sys
import weakref
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from itertools import takewhile

from minijax._lazy import wake_all
from minijax.extents import Extent, dynamic_variable, in_force


class Config:
    """Named switches: each is an attribute, and may differ in a thread for a while.

    Attributes:
      state: two dictionaries, of the process and of this thread, which are replaced
        and never changed: as long as they are the same two, so are all values.
      values: the value of each switch in this thread, by its name.
      x64_enabled: whether 64-bit types exist.

    Reference: ``jax.config``.
    """

    __slots__ = (
        "_accepts", "_chosen", "_held", "_overrides", "_told", "_unsure", "_values"
    )  # fmt: skip

    def __init__(self):
        self._accepts, self._values, self._chosen = {}, {}, {}
        self._overrides = dynamic_variable("overrides", {})
        self._told, self._held, self._unsure = {}, [], set()

    state = property(lambda self: (self._values, self._here()))
    x64_enabled = property(lambda self: self.jax_enable_x64)

    @property
    def values(self):
        """The value of each switch in this thread, by its name."""
        overrides = self._here()
        self._settle()
        return {**self._values, **overrides}

    def define(self, name, default, accepts=bool, told=None):
        """Add a switch.

        Args:
          name: of the switch.
          default: its value, as a rule that of the environment variable of its name.
          accepts: turns a value into a valid one, or raises.
          told: a function that is called with all values that the switch has in the
            process and in its threads, whenever one comes or goes; it is not to
            change a switch.
        """
        self._accepts[name] = accepts
        if told is not None:
            self._told[name] = told

        def value(self):
            if told is not None and (self._held or self._unsure):
                self._settle()
            if self._overrides.get().before is None:
                return self._values[name]
            overrides = self._here()
            return overrides[name] if name in overrides else self._values[name]

        setattr(Config, name, property(value))
        try:
            self.update(name, default)
        except (ValueError, RuntimeError) as error:
            raise type(error)(f"{error}{_origin(name.upper())}") from None

    def update(self, name, value):
        """Set a switch for the whole process.

        Raises:
          AttributeError: if there is no switch of this name.
          ValueError: if it does not take such a value.
        """
        self._chosen[name] = self._accepted(name, value)
        try:
            self._publish(name)
        except BaseException:  # an interrupt: the switch is set, and nobody knows
            self._publish(name)
            raise

    def override(self, name, value):
        """Set a switch for a ``with`` block, in this thread alone."""
        return Override(self, {name: self._accepted(name, value)})

    def override_all(self, changes):
        """Set the switches of a dictionary for a ``with`` block, in this thread."""
        accepted = {name: self._accepted(name, changes[name]) for name in changes}
        return Override(self, accepted)

    def read(self, name):
        """Return the value of a switch in this thread."""
        self._known(name)
        return getattr(self, name)

    def parse_flags_with_absl(self):
        """Set the switches that the command line names: ``--jax_enable_x64=1``.

        Of its words, those that begin with ``--jax`` and stand before ``--`` count. A
        name alone means true. As in JAX, names that are no switches are passed over,
        since they may be meant for others; absl is not needed.
        """
        words = takewhile(lambda word: word != "--", sys.argv[1:])
        for word in words:
            name, _, value = word.removeprefix("--").partition("=")
            if word.startswith("--jax") and name in self._accepts:
                self.update(name, _number_or_word(value or "true"))

    def config_with_absl(self):
        """Make the switches flags of absl, which sets them as its program starts."""
        app, flags = map(import_module, ("absl.app", "absl.flags"))
        for name, value in self.values.items():
            if not isinstance(value, bool | None):
                value = str(value)
            kind = "bool" if isinstance(value, bool) else "string"
            define = getattr(flags, f"DEFINE_{kind}")
            define(name, value, f"The switch {name} of minijax.")
        app.call_after_init(lambda: self.complete_absl_config(flags))

    def complete_absl_config(self, absl_flags):
        """Set the switches that absl has found on the command line."""
        for name in self.values:
            if name in absl_flags.FLAGS and absl_flags.FLAGS[name].present:
                value = absl_flags.FLAGS[name].value
                self.update(name, _number_or_word(str(value)))

    def _here(self):
        before = self._overrides.get()
        extent = in_force(self._overrides)
        if extent is not before and self._held:
            self._settle()
        return extent.value

    def _publish(self, name):
        while self._values != self._chosen:  # another thread may set a switch as well
            self._values = {**self._chosen}
        self._tell(name)

    def _tell(self, name):
        if name not in self._told:
            return
        self._unsure.add(name)  # an interrupt may come before all is told
        told = None
        while told != (now := (self._values[name], *self._held)):
            told = now
            held = [ref() for ref, names in now[1:] if name in names]
            held = [x.changes[name] for x in held if not is_over(x)]
            self._told[name]([now[0], *held])
        self._unsure.discard(name)

    def _expect(self, override, names):
        """Tell of an override, whose block is about to begin."""
        self._held.append((weakref.ref(override), names))
        self._unsure |= names
        self._settle()

    def _settle(self):
        """Tell of all that has come, and of all that is over."""
        for held in [*self._held]:
            if is_over(held[0]()):
                self._unsure |= held[1]
                with suppress(ValueError):  # another thread was first
                    self._held.remove(held)
        for name in [*self._unsure]:
            self._tell(name)

    def _accepted(self, name, value):
        try:
            return self._known(name)(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def __getattr__(self, name):
        self._known(name)  # raises, as a known switch is a property

    def _known(self, name):
        if name in self._accepts:
            return self._accepts[name]
        if not name.startswith("__"):
            wake_all()  # a floor that is asleep may have it
        if name not in self._accepts:
            close = import_module("difflib").get_close_matches(name, self._accepts)
            meant = f" Did you mean {close[0]}?" if close else ""
            raise AttributeError(f"Unrecognized config option: {name}.{meant}")
        return self._accepts[name]


class Override(Extent):
    """Values of some switches in this thread, for a ``with`` block.

    Args:
      config: the `Config` of the switches.
      changes: a dictionary from their names to values that they accept.
    """

    __slots__ = ("changes", "config")

    def __init__(self, config, changes):
        super().__init__(config._overrides)
        self.config, self.changes = config, changes

    def __enter__(self):
        told = self.config._told.keys() & self.changes
        try:
            if told and not self.begun:  # they hear of it before it is in force
                self.lock.acquire(False)
                self.config._expect(self, told)
            self.value = in_force(self.variable).value | self.changes
            super().__enter__()
        except BaseException:  # an interrupt: it does not begin
            if not self.begun and self.lock.locked():
                self.lock.release()
            raise

    def again(self):
        """Return what can be entered like this one, once more."""
        return Override(self.config, self.changes)


def is_over(override):
    """Return whether nobody holds an override, or its block has ended."""
    return override is None or not override.lock.locked()


def _number_or_word(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _on_or_off(value):
    if not isinstance(value, str):
        return bool(value)
    for meaning, words in (True, "1 true t yes y on"), (False, "0 false f no n off"):
        if value.lower() in words.split():
            return meaning
    raise ValueError(f"{value!r} is neither on nor off.")


def _origin(variable):
    if variable not in os.environ:
        return ""
    return f" The value is the environment variable {variable}: correct or unset it."


config = Config()
config.define("jax_enable_x64", os.environ.get("JAX_ENABLE_X64", "0"), _on_or_off)


def enable_x64(new_val: bool = True) -> AbstractContextManager:
    """Return a context manager inside which 64-bit types exist (or do not).

    Reference: ``jax.enable_x64``.
    """
    return config.override("jax_enable_x64", new_val)
