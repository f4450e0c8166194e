//! `src/proto/` is what the files in `proto/` say. With `SEATRIAL_REGENERATE=1` this test writes it anew.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use prost::Message as _;
use prost_types::FileDescriptorSet;

const FILES: [&str; 4] = [
    "open_inference.proto",
    "grpc/health/v1/health.proto",
    "grpc/reflection/v1/reflection.proto",
    "grpc/reflection/v1alpha/reflection.proto",
];

/// Packages and the files that hold their messages. The older reflection has the messages of the newer.
const MODULES: [(&str, &str, &str); 3] = [
    ("inference.rs", "inference.rs", "The messages of `proto/open_inference.proto`."),
    ("grpc.health.v1.rs", "health.rs", "The messages of `proto/grpc/health/v1/health.proto`."),
    (
        "grpc.reflection.v1.rs",
        "reflection.rs",
        "The messages of `proto/grpc/reflection/v1/reflection.proto`.",
    ),
];

fn generate() -> BTreeMap<&'static str, Vec<u8>> {
    let mut set = protox::compile(FILES, ["proto"]).unwrap();
    let out = tempfile::tempdir().unwrap();
    let mut config = prost_build::Config::new();
    config.out_dir(out.path()).bytes(["."]).btree_map(["."]).compile_fds(set.clone()).unwrap();
    for file in &mut set.file {
        file.source_code_info = None;
    }
    let mut files = BTreeMap::from([("descriptors.bin", set.encode_to_vec())]);
    for (package, name, about) in MODULES {
        let code = fs::read_to_string(out.path().join(package)).unwrap();
        files.insert(name, format!("//! {about}\n{code}").into_bytes());
    }
    files
}

#[test]
fn the_generated_messages_are_fresh() {
    let folder = PathBuf::from("src/proto");
    let regenerate = env::var_os("SEATRIAL_REGENERATE").is_some();
    for (name, due) in generate() {
        let path = folder.join(name);
        if regenerate {
            fs::write(&path, &due).unwrap();
        }
        let found = fs::read(&path).unwrap_or_default();
        assert!(
            found == due,
            "`{name}` is out of date\nhint: SEATRIAL_REGENERATE=1 cargo test -p seatrial-protocol generated"
        );
    }
}

#[test]
fn the_two_reflections_differ_in_their_package_only() {
    let read = |version: &str| {
        let text = fs::read_to_string(format!("proto/grpc/reflection/{version}/reflection.proto")).unwrap();
        let rest: Vec<String> = text.lines().skip(1).map(|line| line.replace("v1alpha", "v1")).collect();
        rest
    };
    assert_eq!(read("v1"), read("v1alpha"));
}

#[test]
fn the_descriptors_can_be_read() {
    let set = FileDescriptorSet::decode(fs::read("src/proto/descriptors.bin").unwrap().as_slice()).unwrap();
    let names: Vec<&str> = set.file.iter().map(prost_types::FileDescriptorProto::name).collect();
    assert_eq!(names.len(), FILES.len());
    assert!(set.file.iter().all(|file| file.dependency.is_empty()), "reflection answers one file at a time");
}
