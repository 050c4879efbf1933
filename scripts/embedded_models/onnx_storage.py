# mypy: disable-error-code="import-not-found, no-any-return"
"""Make an ONNX file small without changing how it computes.

Large weights are stored as float16 or as int8 with one scale a channel, and the graph turns them back into
float32 with `Cast` and `Mul`. onnxruntime folds both when it loads the file, so every product and sum runs in
float32: no CPU-specific integer kernel is involved, unlike with dynamic quantisation.
"""

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper


def _finish(graph: onnx.GraphProto, new_nodes: list[onnx.NodeProto], tensors: list[onnx.TensorProto]) -> None:
    """Put `new_nodes` before the nodes that use them, and replace the graph's initializers."""
    nodes = [*new_nodes, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.initializer[:]
    graph.initializer.extend(tensors)


def _cast(source: str, target: str) -> onnx.NodeProto:
    return helper.make_node("Cast", [source], [target], to=TensorProto.FLOAT)


def store_float16(model: onnx.ModelProto, smallest: int = 16_384) -> None:
    """Store large float32 weights of `model` as float16, in place.

    Weights of fewer elements than `smallest`, which are the first layers and the depthwise ones, stay float32: that
    halves the error of the logits for 3 % more bytes.
    """
    nodes: list[onnx.NodeProto] = []
    tensors: list[onnx.TensorProto] = []
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.size < smallest:
            tensors.append(tensor)
            continue
        half = values.astype(np.float16)
        if not np.isfinite(half).all():
            raise ValueError(f"{tensor.name} does not fit into float16")
        tensors.append(numpy_helper.from_array(half, f"{tensor.name}_f16"))
        nodes.append(_cast(f"{tensor.name}_f16", tensor.name))
    _finish(model.graph, nodes, tensors)


def quantise(weight: NDArray[np.float32], axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return int8 values and float32 scales with `values * scales ≈ weight`.

    One symmetric scale for each index along the axes other than `axis`. Of 41 scales from 60 % to 100 % of the
    one that avoids clipping, each channel takes the one with the smallest squared error.
    """
    peak = np.abs(weight).max(axis=axis, keepdims=True)
    peak = np.where(peak == 0, np.float32(1), peak)
    best = np.full_like(peak, np.inf)
    scales = peak / np.float32(127)
    for share in np.linspace(0.6, 1.0, 41, dtype=np.float32):
        trial = (peak * share / np.float32(127)).astype(np.float32)
        values = np.clip(np.rint(weight / trial), -127, 127)
        error = ((values * trial - weight) ** 2).sum(axis=axis, keepdims=True)
        scales = np.where(error < best, trial, scales)
        best = np.minimum(error, best)
    return np.clip(np.rint(weight / scales), -127, 127).astype(np.int8), scales.astype(np.float32)


def store_int8(model: onnx.ModelProto, smallest: int = 100_000) -> None:
    """Store the matrices of `model` as int8 with one float32 scale a channel, in place.

    A `Gemm` or `MatMul` weight gets one scale for each output; it is restored once, at load. An embedding table
    gets one scale for each row; only the rows that a text uses are restored, so the table stays int8 in memory.
    """
    users = {name: node for node in model.graph.node for name in node.input}
    before: list[onnx.NodeProto] = []
    tensors: list[onnx.TensorProto] = []
    for tensor in model.graph.initializer:
        weight = numpy_helper.to_array(tensor)
        if weight.dtype != np.float32 or weight.ndim != 2 or weight.size < smallest:
            tensors.append(tensor)
            continue
        name, user = tensor.name, users[tensor.name]
        by_rows = user.op_type == "Gather" or any(a.name == "transB" and a.i for a in user.attribute)
        values, scales = quantise(weight, axis=1 if by_rows else 0)
        tensors.append(numpy_helper.from_array(values, f"{name}_i8"))
        tensors.append(numpy_helper.from_array(scales, f"{name}_scale"))
        if user.op_type == "Gather":
            ids, out = user.input[1], user.output[0]
            before += [
                helper.make_node("Gather", [f"{name}_i8", ids], [f"{out}_i8"], axis=0),
                helper.make_node("Gather", [f"{name}_scale", ids], [f"{out}_scale"], axis=0),
                _cast(f"{out}_i8", f"{out}_f32"),
                helper.make_node("Mul", [f"{out}_f32", f"{out}_scale"], [out]),
            ]
            model.graph.node.remove(user)
        elif user.op_type in {"Gemm", "MatMul"}:
            before += [
                _cast(f"{name}_i8", f"{name}_f32"),
                helper.make_node("Mul", [f"{name}_f32", f"{name}_scale"], [name]),
            ]
        else:
            raise ValueError(f"{name} is used by {user.op_type}, which this function does not handle")
    _finish(model.graph, before, tensors)


def to_bytes(model: onnx.ModelProto) -> bytes:
    """Check `model` and serialise it, without the exporter's debugging text."""
    for node in model.graph.node:
        node.doc_string = ""
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)
