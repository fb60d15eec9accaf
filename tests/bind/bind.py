# What a language does that has no callbacks for C: builds a model by calls, trains it on arrays, reads a parameter where it lies,
# predicts. Usage: bind.py LIBRARY
import ctypes as c, random, sys
mixt = c.CDLL(sys.argv[1])
mixt.mixt_error_text.restype = c.c_char_p
def ok(status): assert status == 0, mixt.mixt_error_text()
def options(kind, values, **fields):  # a struct up to the last field that is set: the library has defaults for the rest
    class Options(c.Structure): _fields_ = [("struct_size", c.c_size_t)] + fields_of[kind]
    o = Options()
    getattr(mixt, f"mixt_{kind}_options_default")(c.byref(o), c.c_size_t(c.sizeof(o)))
    for name, value in values.items(): setattr(o, name, value)
    return c.byref(o)
fields_of = {"linear": [("features", c.c_int64)], "trainer": [("precision", c.c_char_p), ("policy", c.c_void_p), ("optimizer",
             c.c_char_p), ("batch", c.c_int64), ("accumulate", c.c_int64), ("split", c.c_int64), ("ranks", c.c_int64), ("lr", c.c_float)]}
class Value(c.Structure): _fields_ = [("id", c.c_int32)]
class Dlpack(c.Structure): _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("context", c.c_void_p), ("deleter", c.c_void_p),
    ("flags", c.c_uint64), ("data", c.c_void_p), ("device", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32),
    ("type", c.c_uint32), ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)), ("offset", c.c_uint64)]
for f in ("builder_input", "linear_with", "relu"): getattr(mixt, "mixt_" + f).restype = Value
mixt.mixt_tensor_data.restype = c.c_void_p

context, builder, model, trainer, data, x, y, w, out = (c.c_void_p() for _ in range(9))
ok(mixt.mixt_open_with(None, c.byref(context)))
ok(mixt.mixt_builder_new(context, c.byref(builder)))
v = mixt.mixt_builder_input(builder, None, 1, 1, (c.c_int64 * 1)(4))  # 1: FP32
v = mixt.mixt_relu(builder, mixt.mixt_linear_with(builder, b"fc1", v, options("linear", {"features": 16})))
v = mixt.mixt_linear_with(builder, b"fc2", v, options("linear", {"features": 2}))
ok(mixt.mixt_builder_finish(builder, v, 0, None, c.byref(model)))  # 0: cross-entropy
random.seed(1)
rows = [[random.uniform(-1, 1) for _ in range(4)] for _ in range(128)]
rows += [[-n for n in row] for row in rows]  # the mean, which training takes off, is 0
inputs = (c.c_float * 1024)(*[n for row in rows for n in row])
labels = (c.c_int32 * 256)(*[int(sum(row) > 0) for row in rows])
ok(mixt.mixt_tensor_over(inputs, 1, 2, (c.c_int64 * 2)(256, 4), c.byref(x)))
ok(mixt.mixt_tensor_over(labels, 9, 1, (c.c_int64 * 1)(256), c.byref(y)))  # 9: INT32
ok(mixt.mixt_data_from_tensors(x, y, None, c.byref(data)))
ok(mixt.mixt_trainer_new_with(model, options("trainer", {"batch": 32, "lr": 0.01}), c.byref(trainer)))
for _ in range(200): ok(mixt.mixt_trainer_step(trainer, data, None))
ok(mixt.mixt_trainer_param_tensor(trainer, c.c_int64(0), c.byref(w)))
managed = c.POINTER(Dlpack)()
ok(mixt.mixt_tensor_to_dlpack(w, c.byref(managed)))
seen, before = managed.contents.data, c.cast(managed.contents.data, c.POINTER(c.c_float))[0]
assert seen == mixt.mixt_tensor_data(w) and list(managed.contents.shape[:2]) == [16, 4] and managed.contents.flags == 1
for _ in range(3): ok(mixt.mixt_trainer_step(trainer, data, None))
assert c.cast(seen, c.POINTER(c.c_float))[0] != before  # the trainer's own memory
ok(mixt.mixt_trainer_predict_tensor(trainer, x, c.byref(out)))
logits = c.cast(mixt.mixt_tensor_data(out), c.POINTER(c.c_float))
right = sum((logits[2 * i + 1] > logits[2 * i]) == (labels[i] == 1) for i in range(256))
assert right > 240, right
c.CFUNCTYPE(None, c.c_void_p)(managed.contents.deleter)(c.cast(managed, c.c_void_p))
for tensor in (x, y, w, out): mixt.mixt_tensor_free(tensor)
mixt.mixt_close(context); mixt.mixt_data_close(data)
print(f"{right} of 256 right")
