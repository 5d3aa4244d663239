"""What the chapters draw with; installed beside minijax as `minijax_book`."""
