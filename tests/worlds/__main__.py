"""Program that plays the errands of a file and prints the digest of each trace."""

import asyncio
import sys
from pathlib import Path

import msgspec

from quintain import codec
from tests.worlds import Errand, run_errand

for errand in msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=list[Errand]):
    sys.stdout.write(codec.digest(asyncio.run(run_errand(errand))) + "\n")
