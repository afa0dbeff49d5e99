"""Small static plots as SVG, for a self-contained page; every mark has a title as its tooltip."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from longtake.display import visible

WIDTH, HEIGHT = 420, 260
LEFT, BOTTOM, TOP, RIGHT = 46, 36, 12, 30
COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280", "#4a5568", "#975a16", "#0987a0")
"""One per run; no two differ only in red and green."""

MARGIN = 1.2
"""Factor by which the axis of a curve goes beyond its ends."""
ROW, GAP = 16, 10
"""Height of a bar with its space, and the space between groups of bars."""
BARS_WIDTH = WIDTH * 1.5
BARS_LEFT, BARS_RIGHT = 150, 60
LONGEST_NAME = 24
"""Characters of a group's name that fit beside its bars."""

STYLE = """\
svg text { font-size: 11px; fill: currentColor; }
.axis { fill: none; stroke: currentColor; } .grid { stroke: #8883; }
.guide { stroke: #888; stroke-dasharray: 4 4; } .whisker { stroke: currentColor; }
"""
"""How drawings look; the page around them, or their file, has to bring it."""


@dataclass(frozen=True)
class Mark:
    """A proportion with its interval, drawn at ``x``."""

    x: float
    y: float
    low: float
    high: float
    name: str
    colour: str

    @property
    def interval(self) -> str:
        """The proportion with its interval, for the tooltip."""
        return f"{self.y:.1%} [{self.low:.1%}, {self.high:.1%}]"


def shown(text: object) -> str:
    """Escape text for HTML, and make control characters visible."""
    return html.escape(visible(str(text)))


def scatter(marks: Sequence[Mark], *, x_name: str, x_max: float, diagonal: bool = False) -> str:
    """Proportions on the y axis against a quantity from 0 to ``x_max``.

    ``diagonal`` draws the line from corner to corner.
    """
    # all values can be 0: a method that uses no frames
    x_max = x_max or 1.0
    parts = [_axes(x_name, [0.0, x_max / 2, x_max])]
    if diagonal:
        x0, y0 = _place(0, 0)
        x1, y1 = _place(1, 1)
        ends = f'x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"'
        parts.append(f'<line {ends} class="guide"/>')
    parts += [_point(mark, x_max) for mark in marks]
    return _svg(HEIGHT, parts, f"accuracy against {x_name}")


def curves(lines: Sequence[Sequence[Mark]], *, x_name: str) -> str:
    """Proportions against a quantity; the marks of a line are joined, and its end bears its name.

    The quantity is drawn by its logarithm: budgets differ by factors.
    """
    values = [mark.x for line in lines for mark in line]
    low, high = min(values) / MARGIN, max(values) * MARGIN
    span = math.log(high / low)
    parts = [_axes(x_name, [low * (high / low) ** share for share in (0.0, 0.5, 1.0)])]
    for line in lines:
        placed = [replace(mark, x=math.log(mark.x / low) / span) for mark in line]
        ends = [_place(mark.x, mark.y) for mark in placed]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in ends)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{line[0].colour}"/>')
        for mark, own in zip(placed, line, strict=True):
            parts.append(_point(mark, 1.0, f"{own.x:.4g}"))
        x, y = ends[-1]
        parts.append(_text(x - 8, y - 8, line[-1].name[:LONGEST_NAME], anchor="end"))
    return _svg(HEIGHT, parts, f"accuracy, {x_name}")


def bars(groups: Sequence[tuple[str, Sequence[Mark]]]) -> str:
    """Proportions as horizontal bars, one row per mark, in named groups."""
    y = 4.0
    parts: list[str] = []
    for name, marks in groups:
        middle = y + len(marks) * ROW / 2 + 4
        parts.append(_text(BARS_LEFT - 8, middle, name[:LONGEST_NAME], anchor="end"))
        for mark in marks:
            parts.append(_bar(mark, name, y))
            y += ROW
        y += GAP
    # the scale, below the last bar
    for share in (0.0, 0.5, 1.0):
        parts.append(_text(_along(share), y + 12, f"{share:.0%}", anchor="middle"))
    rows = sum(len(marks) for _, marks in groups)
    height = rows * ROW + len(groups) * GAP + BOTTOM
    return _svg(height, parts, "accuracy by kind", width=int(BARS_WIDTH))


def as_file(drawn: str) -> str:
    """A drawing as a file of its own, which brings its namespace, style and background."""
    namespace = '<svg xmlns="http://www.w3.org/2000/svg" color="#222" font-family="sans-serif"'
    backdrop = '<rect width="100%" height="100%" fill="#fff"/>'
    opening, rest = drawn.split(">", 1)
    return f"{opening.replace('<svg', namespace, 1)}><style>{STYLE}</style>{backdrop}{rest}\n"


def _point(mark: Mark, x_max: float, told: str = "") -> str:
    """A mark with its interval; ``told`` is its quantity in words."""
    x, y = _place(mark.x / x_max, mark.y)
    _, low = _place(0, mark.low)
    _, high = _place(0, mark.high)
    ends = f'x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}"'
    title = f"{shown(mark.name)}: {mark.interval} at {told or f'{mark.x:.4g}'}"
    return (
        f'<g><title>{title}</title><line {ends} stroke="{mark.colour}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{mark.colour}"/></g>'
    )


def _bar(mark: Mark, group: str, y: float) -> str:
    # a bar of no length would be invisible
    length = max(1.0, _along(mark.y) - BARS_LEFT)
    low, high = _along(mark.low), _along(mark.high)
    return (
        f"<g><title>{shown(mark.name)}, {shown(group)}: {mark.interval}</title>"
        f'<rect x="{BARS_LEFT}" y="{y:.1f}" width="{length:.1f}" height="{ROW - 4}" '
        f'fill="{mark.colour}"/>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y + 6:.1f}" y2="{y + 6:.1f}" class="whisker"/>'
        f"{_text(_along(1.0) + 6, y + 10, f'{mark.y:.0%}')}</g>"
    )


def _along(share: float) -> float:
    """The x coordinate of a proportion among bars."""
    return BARS_LEFT + share * (BARS_WIDTH - BARS_LEFT - BARS_RIGHT)


def _place(across: float, up: float) -> tuple[float, float]:
    """Coordinates of a point, given as proportions of the axes."""
    x = LEFT + across * (WIDTH - LEFT - RIGHT)
    y = HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - TOP)
    return x, y


def _axes(x_name: str, x_values: Sequence[float]) -> str:
    """Both axes; the values stand at the beginning, the middle and the end of the x axis."""
    base, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [f'<path d="M{LEFT} {TOP}V{base}H{end}" class="axis"/>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        _, y = _place(0, share)
        parts.append(_text(LEFT - 6, y + 4, f"{share:.0%}", anchor="end"))
        parts.append(f'<line x1="{LEFT}" x2="{end}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
    for share, value in zip((0.0, 0.5, 1.0), x_values, strict=True):
        x, _ = _place(share, 0)
        parts.append(_text(x, base + 15, f"{value:.4g}", anchor="middle"))
    parts.append(_text((LEFT + end) / 2, HEIGHT - 5, x_name, anchor="middle"))
    return "".join(parts)


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown(text)}</text>'


def _svg(height: float, parts: Sequence[str], name: str, width: int = WIDTH) -> str:
    size = f'viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}"'
    return f'<svg {size} role="img" aria-label="{shown(name)}">{"".join(parts)}</svg>'
