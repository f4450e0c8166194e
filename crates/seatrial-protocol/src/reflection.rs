//! Server reflection: what the services look like, told from the descriptors of the files in `proto/`. None of these
//! files imports another, so each one answers for itself.

use std::{collections::HashMap, sync::LazyLock};

use bytes::Bytes;
use prost::Message as _;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet};

use crate::proto::{
    DESCRIPTORS,
    reflection::{
        ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
        ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    },
};

/// gRPC's number for "not found".
const NOT_FOUND: i32 = 5;

/// gRPC's number for "invalid argument".
const INVALID_ARGUMENT: i32 = 3;

static INDEX: LazyLock<Index> = LazyLock::new(Index::read);

/// Every name that can be asked for, with the file that has it.
#[derive(Default)]
struct Index {
    services: Vec<String>,
    files: HashMap<String, Bytes>,
    symbols: HashMap<String, Bytes>,
    messages: Vec<String>,
}

/// Answers one request of the stream.
pub fn reflect(request: ServerReflectionRequest) -> ServerReflectionResponse {
    ServerReflectionResponse {
        valid_host: request.host.clone(),
        message_response: Some(INDEX.answer(request.message_request.as_ref())),
        original_request: Some(request),
    }
}

/// The names of the services that reflection tells of.
pub fn services() -> &'static [String] {
    &INDEX.services
}

impl Index {
    /// The descriptors are our own and tried by a test, so that what cannot be read is simply not told.
    fn read() -> Self {
        let mut index = Self::default();
        for file in FileDescriptorSet::decode(DESCRIPTORS).unwrap_or_default().file {
            index.add(&file);
        }
        index.services.sort();
        index
    }

    fn add(&mut self, file: &FileDescriptorProto) {
        let bytes = Bytes::from(file.encode_to_vec());
        self.files.insert(file.name().to_owned(), bytes.clone());
        let mut symbols = vec![file.package().to_owned()];
        for service in &file.service {
            let name = format!("{}.{}", file.package(), service.name());
            symbols.extend(service.method.iter().map(|method| format!("{name}.{}", method.name())));
            self.services.push(name.clone());
            symbols.push(name);
        }
        for message in &file.message_type {
            message_symbols(file.package(), message, &mut symbols, &mut self.messages);
        }
        for choice in &file.enum_type {
            enum_symbols(file.package(), choice, &mut symbols);
        }
        for symbol in symbols {
            self.symbols.entry(symbol).or_insert_with(|| bytes.clone());
        }
    }

    fn answer(&self, request: Option<&MessageRequest>) -> MessageResponse {
        match request {
            Some(MessageRequest::ListServices(_)) => {
                let service = self.services.iter().map(|name| ServiceResponse { name: name.clone() });
                MessageResponse::ListServicesResponse(ListServiceResponse { service: service.collect() })
            }
            Some(MessageRequest::FileByFilename(name)) => file(self.files.get(name), "file", name),
            Some(MessageRequest::FileContainingSymbol(name)) => {
                file(self.symbols.get(name.trim_start_matches('.')), "symbol", name)
            }
            Some(MessageRequest::AllExtensionNumbersOfType(name)) if self.messages.contains(name) => {
                let base_type_name = name.clone();
                MessageResponse::AllExtensionNumbersResponse(ExtensionNumberResponse {
                    base_type_name,
                    extension_number: Vec::new(),
                })
            }
            Some(MessageRequest::AllExtensionNumbersOfType(name)) => missing("message", name),
            Some(MessageRequest::FileContainingExtension(wanted)) => {
                missing("extension of", &wanted.containing_type)
            }
            None => error(INVALID_ARGUMENT, "the reflection request asks for nothing".to_owned()),
        }
    }
}

fn message_symbols(
    scope: &str,
    message: &DescriptorProto,
    out: &mut Vec<String>,
    messages: &mut Vec<String>,
) {
    let name = format!("{scope}.{}", message.name());
    out.extend(message.field.iter().map(|field| format!("{name}.{}", field.name())));
    for nested in &message.nested_type {
        message_symbols(&name, nested, out, messages);
    }
    for choice in &message.enum_type {
        enum_symbols(&name, choice, out);
    }
    messages.push(name.clone());
    out.push(name);
}

fn enum_symbols(scope: &str, choice: &EnumDescriptorProto, out: &mut Vec<String>) {
    out.push(format!("{scope}.{}", choice.name()));
    // The values of an enum are names of the scope around it.
    out.extend(choice.value.iter().map(|value| format!("{scope}.{}", value.name())));
}

fn file(found: Option<&Bytes>, what: &str, name: &str) -> MessageResponse {
    found.map_or_else(
        || missing(what, name),
        |bytes| {
            let file_descriptor_proto = vec![bytes.clone()];
            MessageResponse::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto })
        },
    )
}

fn missing(what: &str, name: &str) -> MessageResponse {
    error(NOT_FOUND, format!("there is no {what} {} here", crate::refusal::quote(name)))
}

fn error(error_code: i32, error_message: String) -> MessageResponse {
    MessageResponse::ErrorResponse(ErrorResponse { error_code, error_message })
}
