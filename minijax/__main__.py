"""What ``python -m minijax`` runs: it prints the environment report."""

# Made from chapters/27_threads_rest.md by `make chapter`;
# edit the chapter, not this file.

import minijax


def main():
    """Print the environment report."""
    minijax.print_environment_info()


if __name__ == "__main__" and __package__ == "minijax":
    main()
