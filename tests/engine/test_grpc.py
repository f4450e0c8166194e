"""The gRPC door as its clients meet it: tritonclient's two, unmodified, gRPC's own library with Triton's messages, the
usual health service and reflection.
"""

from __future__ import annotations

import asyncio
import json
import queue
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc
from tritonclient.utils import InferenceServerException

from seatrial.engine import Server, start
from tests.engine import tiny
from tests.engine.client import infer, metric, wait_for
from tests.engine.conftest import Serve

BOTH = {"host": "127.0.0.1", "port": 0, "grpc_port": 0}
LONG = 800_000  # turns of the loop: about a second


@pytest.fixture(scope="module")
def server(doubling: Path, spinning: Path) -> Iterator[Server]:
    with start(tiny.config(tiny.entry(doubling), tiny.entry(spinning), listen=BOTH), timeout=60) as made:
        yield made


@pytest.fixture
def target(server: Server) -> str:
    return f"127.0.0.1:{server.grpc_port}"


@pytest.fixture
def client(target: str) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(target) as made:
        yield made


@pytest.fixture
def channel(target: str) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(target) as made:
        yield made


@pytest.fixture
def stub(channel: grpc.Channel) -> Any:
    return service_pb2_grpc.GRPCInferenceServiceStub(channel)


def values(rows: int = 2) -> np.ndarray:
    return np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)


def inputs(value: np.ndarray) -> list[triton.InferInput]:
    made = triton.InferInput("x", list(value.shape), "FP32")
    made.set_data_from_numpy(value)
    return [made]


def raw(value: np.ndarray, **changes: Any) -> Any:
    tensor = pb.ModelInferRequest.InferInputTensor(name="x", datatype="FP32", shape=value.shape)
    contents = [value.astype("<f4").tobytes()]
    return pb.ModelInferRequest(
        **{"model_name": "doubling", "inputs": [tensor], "raw_input_contents": contents} | changes
    )


def turns(steps: int) -> Any:
    tensor = pb.ModelInferRequest.InferInputTensor(name="steps", datatype="INT64", shape=[])
    tensor.contents.int64_contents.append(steps)
    return pb.ModelInferRequest(model_name="spinning", inputs=[tensor])


def refused(call: Callable[[], object]) -> grpc.Call:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error: Any = caught.value
    return error


def test_health_and_descriptions(client: triton.InferenceServerClient) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("doubling")
    assert client.is_model_ready("doubling", "1")
    assert not client.is_model_ready("nobody")
    assert client.get_server_metadata().name == "seatrial"
    about = client.get_model_metadata("doubling", as_json=True)
    assert about["inputs"] == [{"name": "x", "datatype": "FP32", "shape": ["-1", "2"]}]
    assert about["versions"] == ["1.2.0"]
    config = client.get_model_config("doubling").config
    assert (config.max_batch_size, list(config.input[0].dims), config.input[0].data_type) == (64, [2], 11)
    assert config.WhichOneof("scheduling_choice") == "dynamic_batching"
    index = client.get_model_repository_index().models
    assert [(m.name, m.state) for m in index] == [("doubling", "READY"), ("spinning", "READY")]
    with pytest.raises(InferenceServerException) as caught:
        client.get_model_metadata("nobody")
    assert caught.value.status() == "StatusCode.NOT_FOUND"


def test_the_descriptions_are_those_of_http(client: triton.InferenceServerClient, server: Server) -> None:
    import tritonclient.http

    client.infer("doubling", inputs(values()))
    with tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.port}") as http:
        assert list(client.get_server_metadata().extensions) == http.get_server_metadata()["extensions"]
        counted = http.get_inference_statistics("doubling")["model_stats"][0]
    stats = client.get_inference_statistics("doubling").model_stats[0]
    assert stats.inference_stats.success.count >= counted["inference_stats"]["success"]["count"] >= 1
    assert stats.inference_stats.compute_infer.ns > 0
    assert len(client.get_inference_statistics().model_stats) == 2


@pytest.mark.parametrize("rows", [1, 2, 64])
@pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
def test_inference(client: triton.InferenceServerClient, rows: int, compression: str | None) -> None:
    asked = [triton.InferRequestedOutput("y")]
    result = client.infer(
        "doubling", inputs(values(rows)), outputs=asked, request_id="r-1", compression_algorithm=compression
    )
    np.testing.assert_array_equal(result.as_numpy("y"), 2 * values(rows))
    head = result.get_response()
    assert (head.model_name, head.model_version, head.id) == ("doubling", "1.2.0", "r-1")


def test_the_other_client(target: str) -> None:
    async def many() -> list[Any]:
        async with triton_aio.InferenceServerClient(target) as client:
            assert await client.is_server_ready()
            return await asyncio.gather(
                *[client.infer("doubling", inputs(values(1 + n % 3)), request_id=str(n)) for n in range(30)]
            )

    for n, result in enumerate(asyncio.run(many())):
        np.testing.assert_array_equal(result.as_numpy("y"), 2 * values(1 + n % 3))
        assert result.get_response().id == str(n)


def test_a_stream_answers_in_order_and_survives_errors(client: triton.InferenceServerClient) -> None:
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    for n in range(20):
        name = "nobody" if n == 7 else "doubling"
        client.async_stream_infer(name, inputs(values(1 + n % 2)), request_id=str(n))
    for n in range(20):
        result, error = answers.get(timeout=20)
        if n == 7:
            assert "there is no model `nobody`" in str(error)
            continue
        assert error is None
        np.testing.assert_array_equal(result.as_numpy("y"), 2 * values(1 + n % 2))
        assert result.get_response().id == str(n)
    client.stop_stream()


def test_classification_and_parameters(client: triton.InferenceServerClient) -> None:
    asked = [triton.InferRequestedOutput("y", class_count=1)]
    result = client.infer("doubling", inputs(values(1)), outputs=asked, priority=1, timeout=5_000_000)
    assert result.as_numpy("y").tolist() == [[b"2.000000:1"]]


def test_typed_contents_are_answered_typed(stub: Any) -> None:
    tensor = pb.ModelInferRequest.InferInputTensor(name="x", datatype="FP32", shape=[1, 2])
    tensor.contents.fp32_contents.extend([1.5, -2.0])
    answer = stub.ModelInfer(pb.ModelInferRequest(model_name="doubling", inputs=[tensor]))
    assert list(answer.outputs[0].contents.fp32_contents) == [3.0, -4.0]
    assert list(answer.raw_output_contents) == []
    assert stub.ModelInfer(turns(3)).outputs[0].contents.int64_contents == [3]


def test_a_large_message_passes_and_a_larger_one_is_refused(serve: Serve, doubling: Path) -> None:
    bodies = {"max_body_bytes": 32 << 20}
    alone = {"mode": "none", "max_rows": 64}
    model = tiny.entry(doubling, queue_rows=1 << 24, batching=alone)
    server = serve(model, listen=BOTH, limits=bodies)
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", options=options) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        value = np.random.default_rng(1).random(((20 << 20) // 8, 2), dtype=np.float32)
        answer = stub.ModelInfer(raw(value), timeout=60)
        got = np.frombuffer(answer.raw_output_contents[0], dtype="<f4").reshape(value.shape)
        np.testing.assert_array_equal(got, 2 * value)
        big = np.zeros(((33 << 20) // 8, 2), np.float32)
        error = refused(lambda: stub.ModelInfer(raw(big), timeout=60))
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "expected at most 33554432 bytes" in error.details()
        packed = refused(lambda: stub.ModelInfer(raw(big), timeout=60, compression=grpc.Compression.Gzip))
        assert packed.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


STATUS = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    404: grpc.StatusCode.NOT_FOUND,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    501: grpc.StatusCode.UNIMPLEMENTED,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}

WRONG: dict[str, dict[str, Any]] = {
    "unknown model": {"model_name": "nobody"},
    "unknown version": {"model_version": "9.9.9"},
    "unknown input": {"name": "z"},
    "rank": {"shape": [4]},
    "size": {"shape": [2, 3]},
    "negative": {"shape": [-1, 2]},
    "datatype": {"datatype": "INT64"},
    "no datatype": {"datatype": "FP31"},
    "unknown output": {"output": "z"},
    "sequence": {"parameter": ("sequence_id", 7)},
    "reserved": {"parameter": ("triton_secret", 7)},
    "late": {"parameter": ("timeout", 1)},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_wrong_as_over_http(server: Server, stub: Any, wrong: dict[str, Any]) -> None:
    shape = wrong.get("shape", [2, 2])
    name, datatype = wrong.get("name", "x"), wrong.get("datatype", "FP32")
    model, version = wrong.get("model_name", "doubling"), wrong.get("model_version", "")
    body: dict[str, Any] = {
        "inputs": [{"name": name, "datatype": datatype, "shape": shape, "data": [1.0, 2.0, 3.0, 4.0]}]
    }
    tensor = pb.ModelInferRequest.InferInputTensor(name=name, datatype=datatype, shape=shape)
    tensor.contents.fp32_contents.extend([1.0, 2.0, 3.0, 4.0])
    request = pb.ModelInferRequest(model_name=model, model_version=version, inputs=[tensor])
    if "output" in wrong:
        body["outputs"] = [{"name": wrong["output"]}]
        request.outputs.add(name=wrong["output"])
    if "parameter" in wrong:
        key, value = wrong["parameter"]
        body["parameters"] = {key: value}
        request.parameters[key].int64_param = value
    path = f"{model}/versions/{version}" if version else model
    http = infer(server.port, path, json.dumps(body).encode())
    error = refused(lambda: stub.ModelInfer(request))
    assert error.code() == STATUS[http.status]
    trailing = dict(error.trailing_metadata())
    assert trailing["seatrial-code"] == http.json["code"]
    if wrong not in (WRONG["late"],):  # the two deadlines are told with their own times
        assert error.details() == http.json["error"]


def test_raw_and_typed_contents_exclude_each_other(stub: Any) -> None:
    request = raw(values())
    request.inputs[0].contents.fp32_contents.extend([0.0] * 4)
    error = refused(lambda: stub.ModelInfer(request))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "both contents and raw_input_contents" in error.details()


def test_what_is_not_there_is_unimplemented(stub: Any) -> None:
    for call, request in (
        (stub.RepositoryModelLoad, pb.RepositoryModelLoadRequest(model_name="doubling")),
        (stub.SystemSharedMemoryStatus, pb.SystemSharedMemoryStatusRequest()),
        (stub.CudaSharedMemoryUnregister, pb.CudaSharedMemoryUnregisterRequest()),
        (stub.TraceSetting, pb.TraceSettingRequest()),
        (stub.LogSettings, pb.LogSettingsRequest()),
    ):
        assert (
            refused(lambda call=call, request=request: call(request)).code() == grpc.StatusCode.UNIMPLEMENTED
        )


def test_stages_and_digest_come_on_request(stub: Any, doubling: Path) -> None:
    asked = (("seatrial-stages", "1"), ("seatrial-model-digest", "1"))
    _, call = stub.ModelInfer.with_call(raw(values()), metadata=asked)
    told = dict(call.initial_metadata())
    assert told["seatrial-model-digest"] == tiny.entry(doubling)["digest"]
    stages = dict(part.split("=") for part in told["seatrial-stages"].split(";"))
    assert float(stages["run"]) > 0
    assert "seatrial-stages" not in dict(stub.ModelInfer.with_call(raw(values()))[1].initial_metadata())


def runs(server: Server, count: int = 1) -> None:
    """Waits until the executor has taken as many requests."""
    wait_for(
        lambda: metric(server.port, "seatrial_batching_released_total", reason="single") >= count,
        "nothing runs",
    )


def queued(server: Server) -> float:
    return metric(server.port, "seatrial_batching_queued_rows", model="spinning")


def test_a_deadline_passes_while_the_executor_is_busy(serve: Serve, spinning: Path) -> None:
    server = serve(tiny.entry(spinning), listen=BOTH)
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        running = stub.ModelInfer.future(turns(LONG))
        runs(server)
        # The server's own answer, and not the client's: the message's time-out is shorter than the call's.
        late = turns(1)
        late.parameters["timeout"].int64_param = 60_000
        start_s = time.monotonic()
        error = refused(lambda: stub.ModelInfer(late, timeout=20))
        took = time.monotonic() - start_s
        assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        assert "within the deadline of 60 ms" in error.details()
        assert took < 0.5, f"60 ms were allowed, it took {took:.3f} s"
        # The call's own deadline empties the queue as well.
        waiting = stub.ModelInfer.future(turns(1), timeout=0.2)
        wait_for(lambda: queued(server) == 1, "nothing waits")
        wait_for(lambda: queued(server) == 0, "what is late holds its place", 2)
        assert waiting.exception().code() == grpc.StatusCode.DEADLINE_EXCEEDED
        assert not running.done()
        assert running.result(timeout=20).outputs[0].contents.int64_contents == [LONG]


def test_a_cancelled_call_leaves_the_queue(serve: Serve, spinning: Path) -> None:
    server = serve(tiny.entry(spinning), listen=BOTH)
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        running = stub.ModelInfer.future(turns(LONG))
        runs(server)
        waiting = [stub.ModelInfer.future(turns(LONG)) for _ in range(30)]
        wait_for(lambda: queued(server) == 30, "the queue does not fill")
        for call in waiting:
            call.cancel()
        wait_for(lambda: queued(server) == 0, "cancelled calls hold their places", 2)
        assert not running.done(), "the queue was emptied by the executor and not by the cancelling"
        assert running.result(timeout=20).outputs[0].contents.int64_contents == [LONG]
        assert metric(server.port, "seatrial_server_requests_total", model="spinning", code="499") == 30


def test_a_full_queue_says_when_to_come_back(serve: Serve, spinning: Path) -> None:
    server = serve(tiny.entry(spinning, queue_rows=1), listen=BOTH)
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        running = stub.ModelInfer.future(turns(LONG))
        runs(server)
        waiting = stub.ModelInfer.future(turns(1))
        wait_for(lambda: queued(server) == 1, "the queue does not fill")
        error = refused(lambda: stub.ModelInfer(turns(1)))
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        told = dict(error.trailing_metadata())
        assert int(told["retry-after"]) >= 1
        assert int(told["grpc-retry-pushback-ms"]) == int(told["retry-after-ms"]) >= 1
        assert running.result(timeout=20)
        assert waiting.result(timeout=20)


def reflected(
    channel: grpc.Channel,
) -> tuple[ProtoReflectionDescriptorDatabase, descriptor_pool.DescriptorPool]:
    database = ProtoReflectionDescriptorDatabase(channel)
    return database, descriptor_pool.DescriptorPool(database)


def health_messages(channel: grpc.Channel) -> tuple[Any, Any]:
    """The messages of the health service, as a client makes them that knows nothing but reflection."""
    pool = reflected(channel)[1]
    names = ("grpc.health.v1.HealthCheckRequest", "grpc.health.v1.HealthCheckResponse")
    request, response = (message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names)
    return request, response


def test_reflection_tells_the_services_as_triton_has_them(channel: grpc.Channel) -> None:
    database, pool = reflected(channel)
    names = set(database.get_services())
    assert {"inference.GRPCInferenceService", "grpc.health.v1.Health"} <= names
    ours = pool.FindServiceByName("inference.GRPCInferenceService")
    theirs = pb.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    for method in ours.methods:
        model = theirs.methods_by_name[method.name]
        same_message(method.input_type, model.input_type)
        same_message(method.output_type, model.output_type)


def same_message(ours: Any, theirs: Any, seen: set[str] | None = None) -> None:
    """Every field that we have is Triton's, with its number and type."""
    seen = set() if seen is None else seen
    if ours.full_name in seen:
        return
    seen.add(ours.full_name)
    label = descriptor_pb2.FieldDescriptorProto
    for field in ours.fields:
        model = theirs.fields_by_name[field.name]
        assert (field.number, field.type) == (model.number, model.type), field.full_name
        if field.type == label.TYPE_MESSAGE:
            same_message(field.message_type, model.message_type, seen)
        if field.type == label.TYPE_ENUM:
            values_of = {v.name: v.number for v in field.enum_type.values}
            assert values_of.items() <= {v.name: v.number for v in model.enum_type.values}.items()


def test_health_check(channel: grpc.Channel) -> None:
    request, response = health_messages(channel)
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=request.SerializeToString,
        response_deserializer=response.FromString,
    )
    assert check(request()).status == 1
    assert check(request(service="inference.GRPCInferenceService")).status == 1
    assert refused(lambda: check(request(service="nobody"))).code() == grpc.StatusCode.NOT_FOUND


def test_a_drain_is_watched_and_loses_nothing(serve: Serve, spinning: Path) -> None:
    server = serve(tiny.entry(spinning), listen=BOTH, drain={"grace_ms": 400, "timeout_ms": 20_000})
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        request, response = health_messages(channel)
        watch = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )(request(), timeout=30)
        assert next(watch).status == 1
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        running = stub.ModelInfer.future(turns(LONG))
        runs(server)
        server.terminate()
        assert next(watch).status == 2
        assert refused(lambda: next(watch)).code() == grpc.StatusCode.UNAVAILABLE
        assert running.result(timeout=20).outputs[0].contents.int64_contents == [LONG]
        assert server.wait(timeout=20) == 0
        assert server.drained == {"event": "drained", "answered": 1, "failed": 0}


def test_a_drain_ends_streams_and_idle_channels(serve: Serve, doubling: Path) -> None:
    server = serve(tiny.entry(doubling), listen=BOTH)
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        requests: queue.Queue[Any] = queue.Queue()
        answers = stub.ModelStreamInfer(iter(requests.get, None), timeout=30)
        requests.put(raw(values()))
        assert next(answers).infer_response.outputs[0].name == "y"
        begun = time.monotonic()
        assert server.stop() == 0
        took = time.monotonic() - begun
        assert took < 5, f"the open stream held the drain up for {took:.1f} s"
        assert refused(lambda: next(answers)).code() == grpc.StatusCode.UNAVAILABLE
        requests.put(None)


def test_without_a_port_there_is_no_grpc(serve: Serve, doubling: Path) -> None:
    assert serve(tiny.entry(doubling)).grpc_port is None


def test_the_port_file_of_grpc(serve: Serve, doubling: Path, tmp_path: Path) -> None:
    file = tmp_path / "grpc.port"
    server = serve(tiny.entry(doubling), listen=BOTH | {"grpc_port_file": str(file)})
    assert file.read_text() == f"{server.grpc_port}\n"
    server.stop()
    assert not file.exists()
