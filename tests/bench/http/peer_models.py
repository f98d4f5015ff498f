"""The model of peers.py, y = x * w + b on rows of four floats, for LitServe and MLServer. usage: peer_models.py PORT"""
import importlib.util
import sys

import numpy as np

W = np.arange(1, 5, dtype=np.float32)
B = np.arange(4, dtype=np.float32) * 10


def litserve(port):
    ls.LitServer(Litserve(), accelerator="cpu").run(host="127.0.0.1", port=port, generate_client_file=False,
                                                    log_level="error", access_log=False)


# Each peer's environment has one of these. Both are at module level, because workers look classes up by name.
if importlib.util.find_spec("litserve"):
    import litserve as ls

    class Litserve(ls.LitAPI):
        def setup(self, device):
            pass

        def decode_request(self, request):
            return np.asarray(request["input"], dtype=np.float32)

        def predict(self, x):
            return x * W + B

        def encode_response(self, output):
            return {"output": output.tolist()}

if __name__ == "__main__":
    litserve(int(sys.argv[1]))
elif importlib.util.find_spec("mlserver"):
    from mlserver import MLModel
    from mlserver.codecs import NumpyCodec
    from mlserver.types import InferenceResponse

    class Mlserver(MLModel):
        async def load(self):
            return True

        async def predict(self, payload):
            x = NumpyCodec.decode_input(payload.inputs[0])
            return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("y", x * W + B)])
