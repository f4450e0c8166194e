//! Runs the load of one `load.json` without Python: `cargo run --release --example run -- load.json`.

fn main() {
    let code = match std::env::args_os().nth(1) {
        Some(path) => seatrial_loadgen::run_from_file(path.as_ref()),
        None => 2,
    };
    std::process::exit(code);
}
