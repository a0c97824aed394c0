"""A drawing of a MuJoCo model that needs no OpenGL: the same picture on every machine, in milliseconds.

The geoms are projected orthographically, far ones first. Left out: lights, textures, meshes and height fields.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from mujoco import mjtGeom, mjtJoint
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Vector: TypeAlias = NDArray[np.float64]

SIZE = (504, 336)
OVERSAMPLING = 2
SKY, FLOOR, TILE = (33, 38, 46), (46, 53, 63), (56, 64, 75)
VISIBLE_GROUPS = 3
"""Geoms of higher groups are collision shapes that MuJoCo's own viewer hides too."""
TILES = 6
"""Rows of floor to each side."""
ROOM = 1.7
"""The picture's height, in heights of the body at rest."""

# Plain numbers, because NumPy's integers are never equal to MuJoCo's enumerations.
PLANE, SPHERE, ELLIPSOID, BOX = map(
    int, (mjtGeom.mjGEOM_PLANE, mjtGeom.mjGEOM_SPHERE, mjtGeom.mjGEOM_ELLIPSOID, mjtGeom.mjGEOM_BOX)
)
DRAWN = (SPHERE, ELLIPSOID, BOX, int(mjtGeom.mjGEOM_CAPSULE), int(mjtGeom.mjGEOM_CYLINDER))
FREE, BALL, SLIDE, HINGE = map(
    int, (mjtJoint.mjJNT_FREE, mjtJoint.mjJNT_BALL, mjtJoint.mjJNT_SLIDE, mjtJoint.mjJNT_HINGE)
)

# The eight corners of a box, and its six faces as corner numbers.
_CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float64)
_FACES = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))


class BodyDrawing:
    """Draws the present state of a simulation; the camera travels with a body that is free to leave."""

    def __init__(self, model: Any, data: Any) -> None:
        self.model, self.data = model, data
        self.right, self.up = _view(model)
        self.forward = np.cross(self.up, self.right)
        self.travels = _travels(model)
        self.geoms = [geom for geom in range(model.ngeom) if self._visible(geom)]
        planes = np.flatnonzero(model.geom_type == PLANE)
        self.floor = int(planes[0]) if len(planes) else None
        self.centre, self.extent = self._bounds()
        self.pixels = OVERSAMPLING * min(SIZE[1] / self.extent[1], SIZE[0] / self.extent[0]) / ROOM

    def __call__(self) -> NDArray[np.uint8]:
        """The picture (height, width, 3)."""
        if self.travels:
            self.centre[:2] = self.data.subtree_com[1][:2]
        image = Image.new("RGB", (OVERSAMPLING * SIZE[0], OVERSAMPLING * SIZE[1]), SKY)
        draw = ImageDraw.Draw(image)
        if self.floor is not None:
            self._draw_floor(draw, float(self.data.geom_xpos[self.floor][2]))
        for geom in sorted(self.geoms, key=lambda geom: -float(self.data.geom_xpos[geom] @ self.forward)):
            self._draw_geom(draw, geom)
        return np.asarray(image.reduce(OVERSAMPLING))

    def _bounds(self) -> tuple[Vector, Vector]:
        """The middle (3,) of all geoms as they stand, and their width and height in the picture."""
        centre, spans = np.zeros(3), []
        for axis in (self.right, self.up, self.forward):
            along = self.data.geom_xpos[self.geoms] @ axis
            reach = np.array([self._reach(geom, axis) for geom in self.geoms])
            low, high = float((along - reach).min()), float((along + reach).max())
            centre += (low + high) / 2 * axis
            spans.append(high - low)
        return centre, np.array(spans[:2])

    def _reach(self, geom: int, axis: Vector) -> float:
        """How far a geom extends from its middle along an axis."""
        kind, size = self.model.geom_type[geom], self.model.geom_size[geom]
        slant = np.abs(axis @ self.data.geom_xmat[geom].reshape(3, 3))
        if kind in (BOX, ELLIPSOID):
            return float(slant @ size)
        return float(size[0] + (0.0 if kind == SPHERE else slant[2] * size[1]))

    def _visible(self, geom: int) -> bool:
        model = self.model
        return bool(
            model.geom_type[geom] in DRAWN and model.geom_group[geom] < VISIBLE_GROUPS and self._rgba(geom)[3] > 0
        )

    def _rgba(self, geom: int) -> Vector:
        material = self.model.geom_matid[geom]
        rgba: Vector = self.model.geom_rgba[geom]
        # A geom left at MuJoCo's default grey takes the colour of its material.
        return self.model.mat_rgba[material] if material >= 0 and np.allclose(rgba, (0.5, 0.5, 0.5, 1)) else rgba

    def _project(self, points: Vector) -> list[tuple[float, float]]:
        """Pixels of points (P, 3)."""
        shifted = (points - self.centre) @ np.stack([self.right, self.up], axis=1) * self.pixels
        width, height = OVERSAMPLING * SIZE[0], OVERSAMPLING * SIZE[1]
        return [(width / 2 + float(x), height / 2 - float(y)) for x, y in shifted]

    def _draw_floor(self, draw: ImageDraw.ImageDraw, level: float) -> None:
        """A chequered strip: the body's speed shows against it."""
        side = 2.0 ** round(math.log2(self.extent.max() / 4))
        column, row = (math.floor(position / side) for position in self.centre[:2])
        tiles = [(i, j) for i in range(-2 * TILES, 2 * TILES) for j in range(-2 * TILES, TILES)]
        light = [(column + i, row + j) for i, j in tiles if (column + i + row + j) % 2]
        whole = np.array([(-2, -2), (2, -2), (2, 1), (-2, 1)]) * TILES + (column, row)
        squares = np.array(light)[:, None] + ((0, 0), (1, 0), (1, 1), (0, 1))
        for number, flat in enumerate((whole, *squares)):
            corners = np.column_stack([flat * side, np.full(4, level)])
            draw.polygon(self._project(corners), fill=TILE if number else FLOOR)

    def _draw_geom(self, draw: ImageDraw.ImageDraw, geom: int) -> None:
        centre, size = self.data.geom_xpos[geom], self.model.geom_size[geom]
        axes = self.data.geom_xmat[geom].reshape(3, 3)
        kind, colour = self.model.geom_type[geom], _bytes(self._rgba(geom))
        if kind == BOX:
            corners = self._project(centre + (_CORNERS * size) @ axes.T)
            for face in _FACES:
                draw.polygon([corners[corner] for corner in face], fill=colour, outline=_darker(colour))
            return
        if kind == ELLIPSOID:
            longest, radius = int(np.argmax(size)), float(np.median(size))
            half = axes[:, longest] * (size[longest] - radius)
        else:
            radius = float(size[0])
            half = axes[:, 2] * (0.0 if kind == SPHERE else size[1])
        self._draw_rod(draw, np.stack([centre - half, centre + half]), radius, colour)

    def _draw_rod(self, draw: ImageDraw.ImageDraw, ends: Vector, radius: float, colour: tuple[int, int, int]) -> None:
        """A capsule, or a ball where both ends are one; a rim sets it off from what lies behind."""
        points, thickness = self._project(ends), max(radius * self.pixels, 1.5)
        for reach, fill in ((thickness, _darker(colour)), (max(thickness - 2.0, 1.0), colour)):
            draw.line(points, fill=fill, width=round(2 * reach))
            for x, y in points:
                draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=fill)


def _view(model: Any) -> tuple[Vector, Vector]:
    """The picture's right and up: from above where all turns are about z, from the side where about y, else askew."""
    kinds = model.jnt_type
    hinges = np.abs(model.jnt_axis[kinds == HINGE])
    free = bool(((kinds == FREE) | (kinds == BALL)).any())
    if not free and (hinges[:, 2] > 0.99).all():
        return np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    planar = not free and bool((hinges[:, 1] > 0.99).all())
    turn, tilt = math.radians(0 if planar else 30), math.radians(10 if planar else 20)
    right = np.array([math.cos(turn), math.sin(turn), 0.0])
    up = np.array([-math.sin(turn) * math.sin(tilt), math.cos(turn) * math.sin(tilt), math.cos(tilt)])
    return right, up


def _travels(model: Any) -> bool:
    """Whether the first body can go anywhere: by a free joint, or by slides without limits."""
    first = int(model.body_jntadr[1])
    kind = model.jnt_type[first]
    unlimited_slide = kind == SLIDE and not model.jnt_limited[first]
    return first >= 0 and bool(kind == FREE or unlimited_slide)


def _bytes(rgba: Vector) -> tuple[int, int, int]:
    red, green, blue = (round(255 * float(part)) for part in rgba[:3])
    return red, green, blue


def _darker(colour: tuple[int, int, int]) -> tuple[int, int, int]:
    red, green, blue = (part * 11 // 20 for part in colour)
    return red, green, blue
