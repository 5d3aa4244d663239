"""The picture of a matrix product in blocks, panels and tiles."""

from minijax_book import figures


def test_the_tile_is_where_its_panels_meet():
    figure = figures.tiling((12, 16, 10), (3, 4), (6, 8, 5), at=(4, 9, 6))
    assert "make the tile at row 3 and column 8" in figure.alt
    assert "a, 12 × 10, in blocks of 6 × 5 and panels of 3 rows" in figure.alt


def test_panels_are_counted_from_their_block():
    figure = figures.tiling((12, 16, 10), (4, 3), (6, 8, 5), at=(7, 9, 6))
    assert "the tile at row 6 and column 8" in figure.alt


def test_the_last_blocks_may_be_smaller():
    figure = figures.tiling((7, 9, 4), (3, 4), (6, 8, 5), at=(6, 8, 3))
    assert "the tile at row 6 and column 8" in figure.alt
    assert figure.width > 9 * 14 and figure.height > 7 * 14
