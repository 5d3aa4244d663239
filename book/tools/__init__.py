"""The small tools which turn chapters into notebooks, modules and pages."""
