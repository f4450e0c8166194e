"""tritonclient's HTTP client, unmodified: the calls and forms that a model of rows of floats does not reach."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from seatrial.engine import Server

VALUES = {
    "BOOL": [True, False], "BYTES": ["text", "漢字 \N{GRINNING FACE}"],
    "UINT8": [0, 255], "UINT16": [0, 65_535], "UINT32": [0, 2**32 - 1], "UINT64": [0, 2**64 - 1],
    "INT8": [-128, 127], "INT16": [-32_768, 32_767], "INT32": [-(2**31), 2**31 - 1], "INT64": [-(2**63), 2**63 - 1],
    "FP16": [1.5, -2], "FP32": [0.1, -3.5], "FP64": [0.1, 1e308],
}  # fmt: skip
SCORES = np.array([[0.5, 2, -1, 1.25], [9, 8, 7, 6]], dtype=np.float32)


@pytest.fixture
def client(mirror: Server) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(f"127.0.0.1:{mirror.port}", concurrency=4) as made:
        yield made


def tensor(name: str, values: np.ndarray, datatype: str, binary: bool = True) -> triton.InferInput:
    made = triton.InferInput(name, list(values.shape), datatype)
    made.set_data_from_numpy(values, binary_data=binary)
    return made


def floats(*values: float) -> np.ndarray:
    return np.array([values], dtype=np.float32)


@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
@pytest.mark.parametrize("datatype", sorted(VALUES))
def test_every_datatype_comes_back_as_it_was(
    client: triton.InferenceServerClient, datatype: str, binary: bool
) -> None:
    values = np.array([VALUES[datatype]], dtype=triton_to_np_dtype(datatype))
    outputs = [triton.InferRequestedOutput("y", binary_data=binary)]
    result = client.infer(
        f"echo_{datatype.lower()}", [tensor("x", values, datatype, binary)], outputs=outputs
    )
    expected = np.char.encode(values.astype(str), "utf-8") if datatype == "BYTES" else values
    given = result.as_numpy("y")
    if datatype == "BYTES" and not binary:
        given = np.char.encode(given.astype(str), "utf-8")
    assert given.tolist() == expected.tolist()


@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
def test_classes_have_labels(client: triton.InferenceServerClient, binary: bool) -> None:
    output = triton.InferRequestedOutput("y", binary_data=binary, class_count=2)
    result = client.infer("scores", [tensor("x", SCORES, "FP32")], outputs=[output])
    classes = [[c.decode() if isinstance(c, bytes) else c for c in row] for row in result.as_numpy("y")]
    assert classes == [["2.000000:1:dog", "1.250000:3:owl"], ["9.000000:0:cat", "8.000000:1:dog"]]


def test_outputs_are_chosen_and_may_differ_in_form(client: triton.InferenceServerClient) -> None:
    inputs = [tensor("b", floats(1, 2), "FP32", binary=False), tensor("a", floats(5, 7), "FP32")]
    wanted = [
        triton.InferRequestedOutput("difference"),
        triton.InferRequestedOutput("sum", binary_data=False),
    ]
    result = client.infer("sums", inputs, outputs=wanted)
    np.testing.assert_array_equal(result.as_numpy("difference"), floats(4, 5))
    np.testing.assert_array_equal(result.as_numpy("sum"), floats(6, 9))
    only = client.infer("sums", inputs, outputs=wanted[:1])
    assert only.as_numpy("sum") is None


def test_asynchronous_calls_answer_each_its_own(client: triton.InferenceServerClient) -> None:
    calls = [client.async_infer("echo_fp32", [tensor("x", floats(n, -n), "FP32")]) for n in range(12)]
    for n, call in enumerate(calls):
        np.testing.assert_array_equal(call.get_result().as_numpy("y"), floats(n, -n))


def test_parameters_priority_timeout_headers_and_query_are_taken(
    client: triton.InferenceServerClient,
) -> None:
    result = client.infer(
        "echo_fp32", [tensor("x", floats(1), "FP32")],
        model_version="1", request_id="r-7", priority=1, timeout=5_000_000,
        headers={"X-Own": "1"}, query_params={"own": "1"}, parameters={"own": 7, "word": "x", "flag": True},
    )  # fmt: skip
    assert result.get_response()["id"] == "r-7"


def test_bodies_made_and_read_without_a_connection(mirror: Server) -> None:
    import http.client

    body, length = triton.InferenceServerClient.generate_request_body([tensor("x", floats(1, 2), "FP32")])
    connection = http.client.HTTPConnection("127.0.0.1", mirror.port, timeout=20)
    connection.request(
        "POST", "/v2/models/echo_fp32/infer", body, {"Inference-Header-Content-Length": str(length)}
    )
    answer = connection.getresponse()
    size = answer.getheader("Inference-Header-Content-Length")
    result = triton.InferenceServerClient.parse_response_body(
        answer.read(), header_length=None if size is None else int(size)
    )
    connection.close()
    np.testing.assert_array_equal(result.as_numpy("y"), floats(1, 2))


def test_statistics_count_requests_rows_and_runs(client: triton.InferenceServerClient) -> None:
    def read() -> dict[str, int]:
        (stats,) = client.get_inference_statistics("lookup", "1")["model_stats"]
        of = stats["inference_stats"]
        assert of["compute_input"]["count"] == of["compute_infer"]["count"] == of["compute_output"]["count"]
        return {
            "rows": stats["inference_count"],
            "runs": stats["execution_count"],
            "ok": of["success"]["count"],
        }

    before = read()
    for _ in range(3):
        client.infer("lookup", [tensor("ids", np.array([[1], [2]]), "INT64")])
    after = read()
    assert {key: after[key] - before[key] for key in before} == {"rows": 6, "runs": 3, "ok": 3}


def test_a_model_without_rows_is_configured_without_batches(client: triton.InferenceServerClient) -> None:
    config = client.get_model_config("plain", "1")
    assert (config["max_batch_size"], "dynamic_batching" in config) == (0, False)
    assert config["input"] == [{"name": "x", "data_type": "TYPE_INT64", "dims": [2, 2]}]


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.get_trace_settings(),
        lambda c: c.get_log_settings(),
        lambda c: c.get_system_shared_memory_status(),
        lambda c: c.register_system_shared_memory("r", "/r", 8),
        lambda c: c.get_cuda_shared_memory_status(),
    ],
    ids=["trace", "log", "shm-status", "shm-register", "cuda-status"],
)
def test_what_is_not_served_says_so(client: triton.InferenceServerClient, call) -> None:
    with pytest.raises(InferenceServerException, match="there is no path") as refused:
        call(client)
    assert refused.value.status() == "404"
