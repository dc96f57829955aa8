"""The kernel IR text front end: which kernels does a `.kir` text describe, and what is wrong with it?"""

from fencepost.frontends.kir.reader import read
from fencepost.frontends.result import ReadResult

__all__ = ["ReadResult", "read"]
