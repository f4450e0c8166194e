//! What the server says about its models as messages: the same facts as in JSON, in the fields that gRPC has for them.

use seatrial_types::{DataType, Dim, TensorSpec};

use crate::{
    description::{IndexEntry, ModelInfo, PLATFORM, is_batched, preferred, sizes},
    encode::ModelId,
    proto::inference::{
        self as proto,
        model_config::SchedulingChoice,
        model_metadata_response::TensorMetadata,
        model_version_policy::{Latest, PolicyChoice},
        repository_index_response::ModelIndex,
    },
    statistics::{BatchStats, ModelStats, Tally},
};

/// Inputs and outputs with -1 for free dimensions.
pub fn model_metadata_message(model: &ModelInfo<'_>) -> proto::ModelMetadataResponse {
    let tensors = |specs: &[TensorSpec]| specs.iter().map(tensor_metadata).collect();
    proto::ModelMetadataResponse {
        name: model.id.name.clone(),
        versions: model.versions.to_vec(),
        platform: PLATFORM.to_owned(),
        inputs: tensors(&model.signature.inputs),
        outputs: tensors(&model.signature.outputs),
    }
}

fn tensor_metadata(spec: &TensorSpec) -> TensorMetadata {
    let (name, datatype) = (spec.name.clone(), spec.datatype.name().to_owned());
    TensorMetadata { name, datatype, shape: sizes(&spec.shape) }
}

/// The configuration in Triton's words, without the batch dimension when requests are joined.
pub fn model_config_message(model: &ModelInfo<'_>) -> proto::ModelConfigResponse {
    let batched = is_batched(model);
    let dims = |shape: &[Dim]| sizes(shape).into_iter().skip(usize::from(batched)).collect();
    let input = |spec: &TensorSpec| proto::ModelInput {
        name: spec.name.clone(),
        data_type: config_type(spec.datatype).into(),
        dims: dims(&spec.shape),
    };
    let output = |spec: &TensorSpec| proto::ModelOutput {
        name: spec.name.clone(),
        data_type: config_type(spec.datatype).into(),
        dims: dims(&spec.shape),
    };
    let config = proto::ModelConfig {
        name: model.id.name.clone(),
        platform: PLATFORM.to_owned(),
        version_policy: Some(proto::ModelVersionPolicy {
            policy_choice: Some(PolicyChoice::Latest(Latest { num_versions: 1 })),
        }),
        max_batch_size: if batched { i32::try_from(model.batching.max_rows).unwrap_or(i32::MAX) } else { 0 },
        input: model.signature.inputs.iter().map(input).collect(),
        output: model.signature.outputs.iter().map(output).collect(),
        backend: "onnxruntime".to_owned(),
        model_transaction_policy: Some(proto::ModelTransactionPolicy { decoupled: false }),
        scheduling_choice: batched.then(|| SchedulingChoice::DynamicBatching(dynamic_batching(model))),
    };
    proto::ModelConfigResponse { config: Some(config) }
}

fn dynamic_batching(model: &ModelInfo<'_>) -> proto::ModelDynamicBatching {
    let (rows, max_queue_delay_microseconds) = preferred(model.batching);
    let preferred_batch_size = rows.iter().map(|n| i32::try_from(*n).unwrap_or(i32::MAX)).collect();
    proto::ModelDynamicBatching { preferred_batch_size, max_queue_delay_microseconds, ..Default::default() }
}

const fn config_type(datatype: DataType) -> proto::DataType {
    match datatype {
        DataType::Bool => proto::DataType::TypeBool,
        DataType::U8 => proto::DataType::TypeUint8,
        DataType::U16 => proto::DataType::TypeUint16,
        DataType::U32 => proto::DataType::TypeUint32,
        DataType::U64 => proto::DataType::TypeUint64,
        DataType::I8 => proto::DataType::TypeInt8,
        DataType::I16 => proto::DataType::TypeInt16,
        DataType::I32 => proto::DataType::TypeInt32,
        DataType::I64 => proto::DataType::TypeInt64,
        DataType::F16 => proto::DataType::TypeFp16,
        DataType::BF16 => proto::DataType::TypeBf16,
        DataType::F32 => proto::DataType::TypeFp32,
        DataType::F64 => proto::DataType::TypeFp64,
        DataType::Bytes => proto::DataType::TypeString,
    }
}

/// Statistics of the models that were asked for.
pub fn model_stats_message(models: &[(&ModelId, &ModelStats)]) -> proto::ModelStatisticsResponse {
    let model = |(id, stats): &(&ModelId, &ModelStats)| proto::ModelStatistics {
        name: id.name.clone(),
        version: id.version.clone(),
        last_inference: stats.last_inference_ms,
        inference_count: stats.inference_count,
        execution_count: stats.execution_count,
        inference_stats: Some(proto::InferStatistics {
            success: duration(stats.success),
            fail: duration(stats.fail),
            queue: duration(stats.queue),
            compute_input: duration(stats.compute_input),
            compute_infer: duration(stats.compute_infer),
            compute_output: duration(stats.compute_output),
            cache_hit: duration(Tally::default()),
            cache_miss: duration(Tally::default()),
        }),
        batch_stats: stats.batches.iter().map(batch_stats).collect(),
    };
    proto::ModelStatisticsResponse { model_stats: models.iter().map(model).collect() }
}

fn batch_stats(stats: &BatchStats) -> proto::InferBatchStatistics {
    proto::InferBatchStatistics {
        batch_size: stats.batch_size,
        compute_input: duration(stats.compute_input),
        compute_infer: duration(stats.compute_infer),
        compute_output: duration(stats.compute_output),
    }
}

#[allow(clippy::unnecessary_wraps, reason = "the fields of a message are optional")]
const fn duration(tally: Tally) -> Option<proto::StatisticDuration> {
    Some(proto::StatisticDuration { count: tally.count, ns: tally.ns })
}

/// The repository index.
pub fn repository_index_message(entries: &[IndexEntry]) -> proto::RepositoryIndexResponse {
    let models = entries.iter().map(|entry| ModelIndex {
        name: entry.id.name.clone(),
        version: entry.id.version.clone(),
        state: entry.state.name().to_owned(),
        reason: entry.reason.clone(),
    });
    proto::RepositoryIndexResponse { models: models.collect() }
}
