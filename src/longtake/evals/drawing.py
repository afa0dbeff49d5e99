"""Small plots as SVG, for a page that stands alone. Nothing here is interactive; every mark has a title."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from longtake.display import visible

WIDTH, HEIGHT = 420, 260
LEFT, BOTTOM, TOP, RIGHT = 46, 36, 12, 30
COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280", "#4a5568", "#975a16", "#0987a0")
"""One a run, told apart without red against green."""


@dataclass(frozen=True)
class Mark:
    """A share at a place, with its interval."""

    x: float
    y: float
    low: float
    high: float
    name: str
    colour: str


def shown(text: object) -> str:
    """Any text, harmless: control characters visible, markup escaped."""
    return html.escape(visible(str(text)))


def scatter(marks: Sequence[Mark], *, x_name: str, x_max: float, diagonal: bool = False) -> str:
    """Shares (0 to 1, upwards) against some quantity from 0 on; the diagonal is where stated equals true."""
    x_max = x_max or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + x / x_max * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (
            HEIGHT - BOTTOM - TOP
        )

    parts = [_axes(x_name, x_max)]
    if diagonal:
        (x0, y0), (x1, y1) = place(0, 0), place(x_max, 1)
        parts.append(
            f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" class="guide"/>'
        )
    for mark in marks:
        (x, y), (_, low), (_, high) = (
            place(mark.x, mark.y),
            place(mark.x, mark.low),
            place(mark.x, mark.high),
        )
        parts.append(
            f"<g><title>{shown(mark.name)}: {mark.y:.1%} [{mark.low:.1%}, {mark.high:.1%}] at {mark.x:.4g}</title>"
            f'<line x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}" stroke="{mark.colour}"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{mark.colour}"/></g>'
        )
    return _svg(HEIGHT, parts, f"share right against {x_name}")


def bars(groups: Sequence[tuple[str, Sequence[Mark]]]) -> str:
    """Shares from left to right, a row a mark, gathered by group."""
    row, gap, left, right = 16, 10, 150, 60
    height = sum(len(marks) * row + gap for _, marks in groups) + BOTTOM
    reach, y, parts = WIDTH * 1.5 - left - right, 4.0, list[str]()
    for name, marks in groups:
        middle = y + len(marks) * row / 2 + 4
        parts.append(
            f'<text x="{left - 8}" y="{middle:.1f}" text-anchor="end">{shown(name[:24])}</text>'
        )
        for mark in marks:
            parts.append(
                f"<g><title>{shown(mark.name)}, {shown(name)}: {mark.y:.1%} [{mark.low:.1%}, {mark.high:.1%}]</title>"
                f'<rect x="{left}" y="{y:.1f}" width="{max(1.0, mark.y * reach):.1f}" height="{row - 4}" '
                f'fill="{mark.colour}"/>'
                f'<line x1="{left + mark.low * reach:.1f}" x2="{left + mark.high * reach:.1f}" y1="{y + 6:.1f}" '
                f'y2="{y + 6:.1f}" class="whisker"/>'
                f'<text x="{left + reach + 6:.1f}" y="{y + 10:.1f}">{mark.y:.0%}</text></g>'
            )
            y += row
        y += gap
    for share in (0.0, 0.5, 1.0):
        parts.append(
            f'<text x="{left + share * reach:.1f}" y="{y + 12:.1f}" text-anchor="middle">{share:.0%}</text>'
        )
    return _svg(height, parts, "share right by kind", width=int(WIDTH * 1.5))


def _axes(x_name: str, x_max: float) -> str:
    base, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [f'<path d="M{LEFT} {TOP}V{base}H{end}" class="axis"/>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = base - share * (base - TOP)
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
        parts.append(f'<line x1="{LEFT}" x2="{end}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
    for share in (0.0, 0.5, 1.0):
        x = LEFT + share * (end - LEFT)
        parts.append(
            f'<text x="{x:.1f}" y="{base + 15}" text-anchor="middle">{share * x_max:.4g}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + end) / 2}" y="{HEIGHT - 5}" text-anchor="middle">{shown(x_name)}</text>'
    )
    return "".join(parts)


def _svg(height: float, parts: Sequence[str], name: str, width: int = WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}" role="img" '
        f'aria-label="{shown(name)}">{"".join(parts)}</svg>'
    )
