"""The TileLang front end: which kernels with pipelined loops does a Python file hold?"""

from fencepost.frontends.result import ReadResult
from fencepost.frontends.tilelang.reader import read

__all__ = ["ReadResult", "read"]
