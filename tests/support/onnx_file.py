#!/usr/bin/env python3
"""Small ONNX files whose weights a formula gives, written field by field. Needs no packages.

    onnx_file.py KIND FILE

KIND: rows (2 to 3), mlp (28 x 28 to 10), external (the same, its weights in FILE.data), convnet (3 x 16 x 16 to 10, batch norm in inference form, a residual
block), unsupported (two nodes of ops that there are not), escape (external data outside of the folder), cycle.
"""
import math, struct, sys

FLOAT, INT64 = 1, 7


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, *parts):
    body = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def text(field, value):
    return message(field, value.encode())


def weight(seed, count, scale):
    """Numbers between -scale and scale, the same everywhere"""
    out, state = [], seed * 2654435761 & 0xffffffff
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xffffffff
        out.append((state / 4294967296 * 2 - 1) * scale)
    return out


def tensor(name, dims, values, kind=FLOAT, external=None):
    head = b"".join(number(1, d) for d in dims) + number(2, kind) + text(8, name)
    data = struct.pack("<%d%s" % (len(values), "f" if kind == FLOAT else "q"), *values)
    if external is None:
        return head + message(9, data)
    place, offset = external
    pairs = [("location", place), ("offset", str(offset)), ("length", str(len(data)))]
    return head + b"".join(message(13, text(1, k), text(2, v)) for k, v in pairs) + number(14, 1)


def attribute(name, value):
    if isinstance(value, int):
        return message(5, text(1, name), number(3, value), number(20, 2))
    if isinstance(value, float):
        return message(5, text(1, name), varint(2 << 3 | 5) + struct.pack("<f", value), number(20, 1))
    return message(5, text(1, name), *[number(8, v) for v in value], number(20, 7))


def node(op, inputs, outputs, name="", domain="", **attributes):
    return message(1, *[text(1, i) for i in inputs], *[text(2, o) for o in outputs], text(3, name), text(4, op),
                   *[attribute(k, v) for k, v in attributes.items()], *([text(7, domain)] if domain else []))


def value(field, name, dims, kind=FLOAT):
    sizes = [message(1, text(2, d) if isinstance(d, str) else number(1, d)) for d in dims]
    return message(field, text(1, name), message(2, message(1, number(1, kind), message(2, *sizes))))


def model(nodes, initializers, inputs, outputs, opset=18):
    graph = b"".join(nodes) + text(2, "small") + b"".join(message(5, t) for t in initializers) + b"".join(inputs + outputs)
    return number(1, 9) + text(2, "tests") + message(7, graph) + message(8, text(1, ""), number(2, opset))


def mlp(data=None):
    layers, initializers, offset = [("fc1", 32, 784), ("fc2", 10, 32)], [], 0
    for i, (name, rows, columns) in enumerate(layers):
        for part, dims, scale in (("weight", (rows, columns), 1 / math.sqrt(columns)), ("bias", (rows,), 0.1)):
            values = weight(2 * i + len(dims), math.prod(dims), scale)
            initializers.append(tensor(f"{name}.{part}", dims, values, external=data and (data, offset)))
            offset += 4 * len(values)
    nodes = [node("Flatten", ["x"], ["flat"], "/flat", axis=1),
             node("Gemm", ["flat", "fc1.weight", "fc1.bias"], ["h"], "/fc1/Gemm", transB=1),
             node("Relu", ["h"], ["r"], "/relu"),
             node("Gemm", ["r", "fc2.weight", "fc2.bias"], ["y"], "/fc2/Gemm", transB=1)]
    return model(nodes, initializers, [value(11, "x", ["n", 1, 28, 28])], [value(12, "y", ["n", 10])])


def convnet():
    t, seed = [], iter(range(1, 99))
    def add(name, dims, scale, shift=0.0):
        t.append(tensor(name, dims, [v + shift for v in weight(next(seed), math.prod(dims), scale)]))
    def norm(name, channels):
        for part, scale, shift in (("weight", 0.2, 1.0), ("bias", 0.1, 0.0), ("running_mean", 0.1, 0.0), ("running_var", 0.2, 1.0)):
            add(f"{name}.{part}", (channels,), scale, shift)
    add("conv1.weight", (8, 3, 3, 3), 0.2)
    norm("bn1", 8)
    add("conv2.weight", (8, 8, 3, 3), 0.12)
    add("conv2.bias", (8,), 0.1)
    add("onnx::MatMul_9", (8 * 8 * 8, 10), 0.04)
    add("fc.bias", (10,), 0.1)
    t.append(tensor("axes", (1,), [0], INT64))
    t.append(tensor("minus", (1,), [-1], INT64))
    nodes = [node("Conv", ["x", "conv1.weight"], ["c1"], "/conv1/Conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             node("BatchNormalization", ["c1"] + [f"bn1.{p}" for p in ("weight", "bias", "running_mean", "running_var")], ["b1"], "/bn1/BatchNormalization", epsilon=1e-5, momentum=0.9),
             node("Relu", ["b1"], ["r1"], "/relu1"),
             node("MaxPool", ["r1"], ["p1"], "/pool", kernel_shape=[2, 2], strides=[2, 2]),
             node("Conv", ["p1", "conv2.weight", "conv2.bias"], ["c2"], "/conv2/Conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             node("Add", ["c2", "p1"], ["a"], "/add"),
             node("Relu", ["a"], ["r2"], "/relu2"),
             node("Shape", ["r2"], ["s"], "/shape"),
             node("Gather", ["s", "axes"], ["batch"], "/gather", axis=0),
             node("Concat", ["batch", "minus"], ["flat"], "/concat", axis=0),
             node("Reshape", ["r2", "flat"], ["f"], "/reshape"),
             node("MatMul", ["f", "onnx::MatMul_9"], ["m"], "/fc/MatMul"),
             node("Add", ["fc.bias", "m"], ["z"], "/fc/Add"),
             node("Softmax", ["z"], ["y"], "/softmax", axis=-1)]
    return model(nodes, t, [value(11, "x", ["n", 3, 16, 16])], [value(12, "y", ["n", 10])])


def small(kind):
    w = tensor("w", (10, 784), weight(1, 7840, 0.03), external=("../w.bin", 0) if kind == "escape" else None)
    if kind == "rows":
        parts = [tensor(n, d, weight(i + 1, math.prod(d), 0.7)) for i, (n, d) in enumerate((("fc1.weight", (8, 2)), ("fc1.bias", (8,)), ("fc2.weight", (3, 8)), ("fc2.bias", (3,))))]
        return model([node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["h"], "/fc1/Gemm", transB=1), node("Relu", ["h"], ["r"], "/relu"),
                      node("Gemm", ["r", "fc2.weight", "fc2.bias"], ["y"], "/fc2/Gemm", transB=1)], parts, [value(11, "x", ["n", 2])], [value(12, "y", ["n", 3])])
    ends = [value(11, "x", ["n", 784])], [value(12, "y", ["n", 10])]
    if kind == "cycle":
        return model([node("Add", ["x", "b"], ["a"], "/a"), node("Relu", ["a"], ["b"], "/b"), node("Gemm", ["b", "w"], ["y"], "/c", transB=1)], [w], *ends)
    if kind == "unsupported":
        return model([node("Frobnicate", ["x"], ["a"], "/first"), node("Relu", ["a"], ["b"], "/relu"),
                      node("Whirl", ["b"], ["c"], "/second", "my.domain"), node("Gemm", ["c", "w"], ["y"], "/fc", transB=1)], [w], *ends)
    return model([node("Gemm", ["x", "w"], ["y"], "/fc", transB=1)], [w], *ends)


def main():
    kind, path = sys.argv[1:]
    if kind == "external":
        place = path.rsplit("/", 1)[-1] + ".data"
        with open(path + ".data", "wb") as f:
            for i, (rows, columns) in enumerate(((32, 784), (10, 32))):
                for dims, scale in (((rows, columns), 1 / math.sqrt(columns)), ((rows,), 0.1)):
                    f.write(struct.pack("<%df" % math.prod(dims), *weight(2 * i + len(dims), math.prod(dims), scale)))
        content = mlp(place)
    else:
        content = mlp() if kind == "mlp" else convnet() if kind == "convnet" else small(kind)
    with open(path, "wb") as f:
        f.write(content)


main()
