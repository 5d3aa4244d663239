"""What the chapters draw with: a distribution of its own, minijax-figures."""
