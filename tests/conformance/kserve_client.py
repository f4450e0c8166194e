"""KServe's own REST client, unmodified, put to a server: prints what it was told as one line of JSON.

Run by test_kserve.py with an environment of its own; takes the address of the server.
"""

from __future__ import annotations

import asyncio
import json
import sys

import httpx
import numpy as np
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig
from kserve.protocol.infer_type import RequestedOutput

VALUES = np.array([[1.5, -2.25], [3, 4]], dtype=np.float32)
WORDS = np.array([["text", "漢字"]], dtype=object)


def request(binary: bool, **more) -> InferRequest:
    """Two rows for the model `sums`."""
    inputs = []
    for name, values in (("a", VALUES), ("b", VALUES[::-1])):
        made = InferInput(name=name, shape=list(values.shape), datatype="FP32")
        made.set_data_from_numpy(np.ascontiguousarray(values), binary_data=binary)
        inputs.append(made)
    return InferRequest(model_name="sums", infer_inputs=inputs, **more)


async def ask(base: str) -> dict:
    """Everything that the client can ask of a server of this protocol."""
    client = InferenceRESTClient(RESTConfig(protocol="v2", timeout=20))
    told = {
        "live": await client.is_server_live(base),
        "ready": await client.is_server_ready(base),
        "model_ready": await client.is_model_ready(base, "sums"),
    }
    for binary in (False, True):
        answer = await client.infer(base, request(binary, request_id="r-1"), model_name="sums")
        told["binary" if binary else "json"] = {
            "id": answer.id,
            "model": answer.model_name,
            **{output.name: output.as_numpy().tolist() for output in answer.outputs},
        }
    outputs = [RequestedOutput(name="sum", parameters={"binary_data": True})]
    answer = await client.infer(base, request(False, request_outputs=outputs), model_name="sums")
    told["binary_answer"] = {output.name: output.as_numpy().tolist() for output in answer.outputs}
    words = InferInput(name="x", shape=[1, 2], datatype="BYTES")
    words.set_data_from_numpy(WORDS, binary_data=True)
    answer = await client.infer(base, InferRequest("echo_bytes", [words]), model_name="echo_bytes")
    told["words"] = answer.outputs[0].as_numpy().tolist()
    told["plain_dict"] = (await client.infer(base, request(False).to_dict(), model_name="sums")).to_dict()
    for name, model, data in (("unknown", "nobody", request(False)), ("wrong", "echo_fp32", request(False))):
        try:
            await client.infer(base, data, model_name=model)
        except httpx.HTTPStatusError as error:
            told[name] = [error.response.status_code, str(error)]
    try:
        told["unknown_ready"] = await client.is_model_ready(base, "nobody")
    except httpx.HTTPStatusError as error:
        told["unknown_ready"] = error.response.status_code
    await client.close()
    return told


def plain(value: object) -> object:
    """Bytes as text, for JSON."""
    return value.decode() if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(ask(sys.argv[1])), default=plain))
