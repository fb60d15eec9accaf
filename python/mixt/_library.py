"""The shared library of mixt, loaded once."""

import ctypes
import importlib.util
import os
import pathlib


def _path() -> str:
    """The library that MIXT_LIBRARY names, else the one that came with the package."""
    given = os.environ.get("MIXT_LIBRARY")
    return given or os.path.realpath(pathlib.Path(__file__).parent / "lib" / "libmixt.so.0")


def _offer_cuda() -> None:
    """The CUDA backend is a package of its own, which the library loads by its path when a GPU is wanted."""
    if os.environ.get("MIXT_CUDA_LIBRARY"):
        return
    found = importlib.util.find_spec("mixt_cuda")
    for folder in (found.submodule_search_locations or []) if found else []:
        path = pathlib.Path(folder) / "libmixt_cuda.so"
        if path.exists():
            os.environ["MIXT_CUDA_LIBRARY"] = str(path)


_offer_cuda()
library = ctypes.CDLL(_path())
