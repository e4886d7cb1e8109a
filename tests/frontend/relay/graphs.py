"""Graphs as ``tvm.ir.save_json`` writes them, node by node, in the layouts of several versions."""

import base64
import json
import struct

import numpy as np

CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4}


def array_bytes(array, code=None, bits=None):
    """TVM's binary form of an array, by hand."""
    name = array.dtype.name.rstrip("0123456789")
    code = CODES[name] if code is None else code
    bits = 8 * array.dtype.itemsize if bits is None else bits
    return (
        struct.pack("<QQ", 0xDD5E40F096B4A13F, 0)
        + struct.pack("<ii", 1, 0)
        + struct.pack("<i", array.ndim)
        + struct.pack("<BBH", code, bits, 1)
        + struct.pack(f"<{array.ndim}q", *array.shape)
        + struct.pack("<q", array.nbytes)
        + array.tobytes()
    )


class SavedGraph:
    """Nodes of a file to be. Each method adds one and returns its number.

    Version 0.8 has no virtual devices and writes most strings into the nodes that have them; 0.18
    and later put the numbers of some attributes into boxes.
    """

    def __init__(self, version="0.16.0"):
        self.version = version
        self.minor = int(version.split(".")[1])
        self.nodes = [{"type_key": ""}]
        self.arrays = []
        self.ops = {}

    def add(self, type_key, repr_str="", keys=(), items=(), **attrs):
        node = {"type_key": type_key}
        if repr_str:
            node["repr_str"] = repr_str
        if attrs:
            node["attrs"] = {name: str(value) for name, value in sorted(attrs.items())}
        if keys:
            node["keys"] = list(keys)
        if items:
            node["data"] = list(items)
        self.nodes.append(node)
        return len(self.nodes) - 1

    def expression(self, type_key, checked_type=0, **attrs):
        device = {} if self.minor < 9 else {"virtual_device_": 0}
        return self.add(type_key, span=0, _checked_type_=checked_type, **device, **attrs)

    def string(self, text):
        return self.add("runtime.String", text)

    def integer(self, value, dtype="int32"):
        return self.add("IntImm", dtype=dtype, span=0, value=value)

    def box(self, value):
        """A number in an attribute that is boxed since 0.18."""
        if self.minor < 18:
            return self.integer(value)
        return self.add("runtime.BoxInt", str(value))

    def text(self, value):
        """A string in an attribute that is a node since 0.9."""
        return value if self.minor < 9 else self.string(value)

    def array(self, items):
        return self.add("Array", items=items)

    def integers(self, *values):
        return self.array([self.integer(v) for v in values])

    def tensor_type(self, shape, dtype="float32"):
        dims = [d if isinstance(d, str) else self.integer(d) for d in shape]
        dims = [self.add("tir.Any", dtype="int32") if d == "?" else d for d in dims]
        return self.add("relay.TensorType", dtype=dtype, shape=self.array(dims), span=0)

    def tuple_type(self, fields):
        return self.add("TupleType", fields=self.array(fields), span=0)

    def var(self, name, annotation=0, vid=None):
        vid = vid or self.add("relay.Id", name_hint=self.string(name))
        return self.expression("relay.Var", annotation, vid=vid, type_annotation=annotation)

    def constant(self, value):
        blob = base64.b64encode(array_bytes(value)).decode()
        self.arrays.append(blob)
        return self.expression("relay.Constant", data=len(self.arrays) - 1)

    def op(self, name):
        if name not in self.ops:
            self.ops[name] = self.add("Op", name)
        return self.ops[name]

    def call(self, op, args, attrs=0, checked_type=0):
        op = self.op(op) if isinstance(op, str) else op
        arguments = self.array(args)
        types = self.array([])
        return self.expression(
            "relay.Call", checked_type, op=op, args=arguments, attrs=attrs, type_args=types
        )

    def record(self, name, **attrs):
        return self.add(f"relay.attrs.{name}", **attrs)

    def tuple(self, fields):
        return self.expression("relay.Tuple", fields=self.array(fields))

    def field(self, value, index):
        return self.expression("relay.TupleGetItem", tuple_value=value, index=index)

    def map(self, entries):
        return self.add("Map", keys=entries.keys(), items=entries.values())

    def function(self, params, body, ret_type=0, attrs=None):
        entries = 0 if attrs is None else self.add("DictAttrs", __dict__=self.map(attrs))
        return self.expression(
            "relay.Function",
            params=self.array(params),
            body=body,
            ret_type=ret_type,
            type_params=self.array([]),
            attrs=entries,
        )

    def global_var(self, name):
        return self.expression("GlobalVar", name_hint=self.string(name))

    def module(self, functions):
        """A module of functions by their global variables' numbers."""
        pairs = [number for pair in functions.items() for number in pair]
        return self.add("IRModule", functions=self.add("Map", items=pairs), attrs=0, source_map=0)

    def main(self, params, body, ret_type=0):
        """The text of a module with a single function."""
        function = self.function(params, body, ret_type)
        return self.save(self.module({self.global_var("main"): function}))

    def save(self, root):
        """The file's text, one node a line."""
        nodes = ",\n".join(json.dumps(node) for node in self.nodes)
        rest = json.dumps({"b64ndarrays": self.arrays, "attrs": {"tvm_version": self.version}})
        return f'{{"root": {root}, "nodes": [\n{nodes}\n], {rest[1:]}'


def metadata(entries):
    """A text's metadata section: by a type, what makes its nodes' numbers."""
    graph = SavedGraph()
    lists = {key: graph.array(make(graph)) for key, make in entries.items()}
    return "\n#[metadata]\n" + graph.save(graph.map(lists))


def scalar(value, dtype="float32"):
    return np.array(value, dtype)
