"""The book as a course: a reader writes the package, page by page, from stubs."""
