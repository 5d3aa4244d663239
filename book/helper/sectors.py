"""What a warp asks of memory: 32 numbers, and the sectors that move for them."""

from .svg import Canvas, soft

CELL, HIGH, ACROSS, MOST = 7, 16, 8, 8  # 8 numbers of 4 bytes are a sector


def _row(canvas, asked, x, y):
    """The sectors of one request, up to so many; how many there are, and the end."""
    sectors = sorted({place // ACROSS for place in asked})
    for i, sector in enumerate(sectors[:MOST]):
        left = x + i * (ACROSS * CELL + 6)
        width = ACROSS * CELL
        canvas.rect(left - 2, y - 2, width + 3, HIGH + 4, soft("device"), "device", 3)
        for j in range(ACROSS):
            used = sector * ACROSS + j in asked
            fill = "primal" if used else "paper"
            canvas.rect(left + j * CELL, y, CELL - 1, HIGH, fill, None, 1)
    end = x + min(len(sectors), MOST) * (ACROSS * CELL + 6)
    if len(sectors) > MOST:
        canvas.text(end, y + 12, f"… {len(sectors) - MOST} more", 11, "muted")
        end += 60
    return len(sectors), end


def sectors(requests, title="What a warp moves"):
    """Requests of a warp: the sectors that move, and the numbers used in them.

    `requests` maps names to the places, in numbers of 4 bytes, that 32 lanes ask for.
    """
    canvas, y, right, said = Canvas(), 14, 0, []
    for name, places in requests.items():
        asked = {int(place) for place in places}
        if not asked or min(asked) < 0:
            raise ValueError(f"{name}: a request has places, from 0 on")
        count = len({place // ACROSS for place in asked})
        used = len(asked) / ACROSS / count
        text = f"{name}: {count} sectors, {used:.0%} of them used"
        canvas.text(10, y, text, 12)
        _, end = _row(canvas, asked, 12, y + 10)
        right, y = max(right, end), y + HIGH + 34
        said.append(text)
    text = "; ".join(said) or "no requests"
    return canvas.figure(max(right, 320) + 10, y - 8, title, text)
