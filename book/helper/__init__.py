"""What the chapters draw with: the distribution minijax-figures, not part of minijax."""
