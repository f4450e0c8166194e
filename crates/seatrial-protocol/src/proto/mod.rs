//! The messages of the gRPC services. Everything but this file is made from `proto/` by the test `generated`, which
//! also says when it is out of date; neither `protoc` nor a build script is needed to build.

#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated")]
#[rustfmt::skip]
pub mod health;
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated")]
#[rustfmt::skip]
pub mod inference;
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated")]
#[rustfmt::skip]
pub mod reflection;

/// What the services look like: a `FileDescriptorSet`.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!("descriptors.bin");
