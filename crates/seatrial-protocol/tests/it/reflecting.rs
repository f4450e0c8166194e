//! Reflection: every service and symbol leads to its file.

use prost::Message as _;
use prost_types::FileDescriptorProto;
use seatrial_protocol::{
    proto::reflection::{
        ServerReflectionRequest, server_reflection_request::MessageRequest,
        server_reflection_response::MessageResponse,
    },
    reflection::{reflect, services},
};

fn ask(request: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest { host: "h".to_owned(), message_request: Some(request) };
    let answer = reflect(request.clone());
    assert_eq!((&*answer.valid_host, answer.original_request), ("h", Some(request)));
    answer.message_response.unwrap()
}

fn file_of(request: MessageRequest) -> Option<String> {
    match ask(request) {
        MessageResponse::FileDescriptorResponse(files) => {
            let [file] = files.file_descriptor_proto.as_slice() else { panic!("one file is due") };
            Some(FileDescriptorProto::decode(file.clone()).unwrap().name().to_owned())
        }
        MessageResponse::ErrorResponse(error) => {
            assert_eq!(error.error_code, 5, "{}", error.error_message);
            None
        }
        other => panic!("not due: {other:?}"),
    }
}

#[test]
fn services_and_symbols_lead_to_their_files() {
    assert_eq!(
        services(),
        [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
            "inference.GRPCInferenceService",
        ]
    );
    let MessageResponse::ListServicesResponse(list) = ask(MessageRequest::ListServices(String::new())) else {
        panic!("a list is due")
    };
    assert_eq!(list.service.iter().map(|s| &*s.name).collect::<Vec<_>>(), services());
    for (symbol, file) in [
        ("inference.GRPCInferenceService", Some("open_inference.proto")),
        ("inference.GRPCInferenceService.ModelInfer", Some("open_inference.proto")),
        ("inference.ModelInferRequest.InferInputTensor", Some("open_inference.proto")),
        ("inference.TYPE_FP16", Some("open_inference.proto")),
        (".grpc.health.v1.HealthCheckResponse.SERVING", Some("grpc/health/v1/health.proto")),
        ("grpc.reflection.v1alpha.ErrorResponse", Some("grpc/reflection/v1alpha/reflection.proto")),
        ("inference.Nobody", None),
    ] {
        let found = file_of(MessageRequest::FileContainingSymbol(symbol.to_owned()));
        assert_eq!(found.as_deref(), file, "{symbol}");
    }
    let name = "grpc/health/v1/health.proto";
    assert_eq!(file_of(MessageRequest::FileByFilename(name.to_owned())).as_deref(), Some(name));
    assert_eq!(file_of(MessageRequest::FileByFilename("x.proto".to_owned())), None);
}
