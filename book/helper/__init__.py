"""What the chapters draw with: the distribution minijax-book, not part of minijax."""
