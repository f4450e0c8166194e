//! Files that are not a supported runtime are refused with one sentence, before anything of theirs is used.

use std::{fs, path::PathBuf, process::Command};

use seatrial_session::{Runtime, SessionError};

use crate::dock;

fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Builds a shared library of one C file with the compiler that links Rust programs.
fn compile(name: &str, source: &str) -> Option<PathBuf> {
    let folder = scratch(name);
    let (file, library) = (folder.join("source.c"), folder.join("libonnxruntime.so"));
    fs::write(&file, source).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&file).status();
    if built.is_ok_and(|status| status.success()) {
        return Some(library);
    }
    dock::skip("no C compiler `cc`");
    None
}

fn refusal(path: &std::path::Path) -> SessionError {
    Runtime::open(path).map(|runtime| runtime.version().to_owned()).expect_err("it must be refused")
}

#[test]
fn the_installed_runtime_opens_and_gives_its_version() {
    let Some(runtime) = dock::runtime() else { return };
    assert!(runtime.version().starts_with("1."), "{}", runtime.version());
    assert!(runtime.path().to_string_lossy().contains(runtime.version()), "{}", runtime.path().display());
}

#[test]
fn a_missing_file_is_named() {
    let path = scratch("missing").join("libonnxruntime.so.9");
    let error = refusal(&path);
    assert_eq!(error.to_string(), format!("no ONNX Runtime library at `{}`", path.display()));
    assert_eq!(error.hint(), "install a supported runtime: pip install 'onnxruntime>=1.24,<1.33'");
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    let path = scratch("text").join("libonnxruntime.so");
    fs::write(&path, "not a library").unwrap();
    let text = refusal(&path).to_string();
    let start = format!("`{}` is not a shared library of this platform: ", path.display());
    assert!(text.starts_with(&start) && text.len() > start.len() && !text.contains('\n'), "{text}");
}

#[test]
fn another_library_is_refused() {
    let Some(path) = compile("other", "int answer(void) { return 42; }\n") else { return };
    assert_eq!(refusal(&path), SessionError::NotARuntime(path));
}

/// A runtime that ends the process when anything but its version is asked for.
fn impostor(version: &str) -> String {
    format!(
        "#include <stdlib.h>\n\
         static const void *get_api(unsigned v) {{ (void)v; abort(); }}\n\
         static const char *get_version(void) {{ return \"{version}\"; }}\n\
         static const void *table[2] = {{ (void *)get_api, (void *)get_version }};\n\
         const void *OrtGetApiBase(void) {{ return table; }}\n"
    )
}

#[test]
fn too_old_and_too_new_runtimes_are_refused_before_anything_else_is_asked() {
    for version in ["1.23.2", "1.33.0", "nonsense"] {
        let Some(path) = compile(&format!("version-{version}"), &impostor(version)) else { return };
        assert_eq!(
            refusal(&path).to_string(),
            format!(
                "ONNX Runtime `{version}` at `{}` is not supported, needed is 1.24 to 1.32",
                path.display()
            )
        );
    }
}
