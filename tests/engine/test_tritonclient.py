"""tritonclient's HTTP clients, unmodified, both of them: what they ask and how they read the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException


@pytest.fixture
def client(port: int) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(f"127.0.0.1:{port}") as made:
        yield made


def values(rows: int = 2) -> np.ndarray:
    return np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)


def request(value: np.ndarray, binary: bool) -> list[triton.InferInput]:
    made = triton.InferInput("x", list(value.shape), "FP32")
    made.set_data_from_numpy(value, binary_data=binary)
    return [made]


def test_health_and_descriptions(client: triton.InferenceServerClient) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("doubling")
    assert client.is_model_ready("doubling", "1")
    assert not client.is_model_ready("nobody")
    assert client.get_server_metadata()["name"] == "seatrial"
    about = client.get_model_metadata("doubling")
    assert about["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}]
    assert client.get_model_config("doubling")["max_batch_size"] == 64
    index = client.get_model_repository_index()
    assert [m["name"] for m in index] == ["doubling", "spinning"]
    assert client.get_inference_statistics("doubling")["model_stats"][0]["name"] == "doubling"
    assert len(client.get_inference_statistics()["model_stats"]) == 2


@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
@pytest.mark.parametrize("answer", [False, True, None], ids=["json-out", "binary-out", "default-out"])
def test_inference(client: triton.InferenceServerClient, binary: bool, answer: bool | None) -> None:
    outputs = None if answer is None else [triton.InferRequestedOutput("y", binary_data=answer)]
    result = client.infer("doubling", request(values(), binary), outputs=outputs, request_id="r-1")
    np.testing.assert_array_equal(result.as_numpy("y"), 2 * values())
    head = result.get_response()
    assert (head["model_name"], head["model_version"], head["id"]) == ("doubling", "1.2.0", "r-1")


@pytest.mark.parametrize("sent", [None, "gzip", "deflate"])
@pytest.mark.parametrize("taken", [None, "gzip", "deflate"])
@pytest.mark.parametrize("rows", [2, 30])
def test_compression_both_ways(
    client: triton.InferenceServerClient, sent: str | None, taken: str | None, rows: int
) -> None:
    result = client.infer(
        "doubling", request(values(rows), True),
        request_compression_algorithm=sent, response_compression_algorithm=taken,
    )  # fmt: skip
    np.testing.assert_array_equal(result.as_numpy("y"), 2 * values(rows))


def test_timeouts_and_errors_reach_the_client(client: triton.InferenceServerClient) -> None:
    steps = triton.InferInput("steps", [], "INT64")
    steps.set_data_from_numpy(np.array(2_000_000, dtype=np.int64), binary_data=False)
    with pytest.raises(InferenceServerException, match="deadline of 50 ms") as late:
        client.infer("spinning", [steps], timeout=50_000)
    assert late.value.status() == "504"
    with pytest.raises(InferenceServerException, match="there is no model `nobody`") as unknown:
        client.infer("nobody", request(values(), True))
    assert unknown.value.status() == "404"
    wrong = triton.InferInput("x", [1, 3], "FP32")
    wrong.set_data_from_numpy(np.zeros((1, 3), dtype=np.float32))
    with pytest.raises(InferenceServerException, match="`x`") as shape:
        client.infer("doubling", [wrong])
    assert shape.value.status() == "400"


def test_classification(client: triton.InferenceServerClient) -> None:
    output = triton.InferRequestedOutput("y", class_count=1)
    result = client.infer("doubling", request(np.array([[1, 5]], dtype=np.float32), True), outputs=[output])
    assert result.as_numpy("y").tolist() == [[b"10.000000:1"]]


def test_the_asynchronous_client(port: int) -> None:
    async def run() -> None:
        async with triton_aio.InferenceServerClient(f"127.0.0.1:{port}") as client:
            assert await client.is_server_ready()
            assert await client.is_model_ready("doubling")
            assert (await client.get_model_config("doubling"))["max_batch_size"] == 64
            answers = await asyncio.gather(
                *(client.infer("doubling", request(values() + n, n % 2 == 0)) for n in range(16))
            )
            for n, answer in enumerate(answers):
                np.testing.assert_array_equal(answer.as_numpy("y"), 2 * (values() + n))
            packed = await client.infer(
                "doubling", request(values(60), True),
                request_compression_algorithm="gzip", response_compression_algorithm="deflate",
            )  # fmt: skip
            np.testing.assert_array_equal(packed.as_numpy("y"), 2 * values(60))
            with pytest.raises(InferenceServerException, match="nobody"):
                await client.infer("nobody", request(values(), True))

    asyncio.run(run())
