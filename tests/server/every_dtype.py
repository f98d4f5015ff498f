"""Elements of every datatype for the model several.dtypes, and what it answers."""
import numpy as np
from ml_dtypes import bfloat16

VALUES = {
    "ARGS[0]": np.array([True, False, True]), "ARGS[1]": np.array([0, 1, 254], np.uint8),
    "ARGS[2]": np.array([-128, 0, 126], np.int8), "ARGS[3]": np.array([-5, 0, 5], np.int16),
    "ARGS[4]": np.array([-5, 0, 5], np.int32), "ARGS[5]": np.array([-2**62, 0, 2**62], np.int64),
    "ARGS[6]": np.array([0.5, 1, -2], np.float16), "ARGS[7]": np.array([0.5, 1, -2], bfloat16),
    "ARGS[8]": np.array([0.1, np.nan, np.inf], np.float32), "ARGS[9]": np.array([0.1, 1e300, -np.inf]),
    "ARGS[10]": np.arange(6, dtype=np.float32).reshape(3, 2), "ARGS[11]": np.array([0, 56, 126], np.uint8)}


def check_every_dtype(client, module, utils):
    """module: tritonclient.http or tritonclient.grpc, whose client it is."""
    inputs = []
    for name, value in VALUES.items():
        inputs.append(module.InferInput(name, value.shape, utils.np_to_triton_dtype(value.dtype)))
        inputs[-1].set_data_from_numpy(value)
    result = client.infer("several.dtypes", inputs)
    for i, value in enumerate(VALUES.values()):
        expected = ~value if i == 0 else value + 1 if i < 6 else value * 2 if i < 10 else value
        np.testing.assert_array_equal(result.as_numpy(f"RESULT[{i}]"), expected.astype(value.dtype))
