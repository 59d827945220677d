//! Schemathesis: generates requests from the API document and checks that each response has a documented status, which
//! is not 5xx, and a documented body.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use crate::skip::report_missing;

/// Checks the operations that `selection` selects. `configuration` contains values of parameters, so that requests
/// reach existing resources.
pub(crate) async fn check_responses(document: &str, base: &str, configuration: &str, selection: &[&str]) {
    let Some(program) = program_path() else { return };
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("schemathesis.toml");
    fs::write(&file, configuration).unwrap();
    let mut command = Command::new(&program);
    command
        .arg("--config-file")
        .arg(&file)
        .args(["run", document, "--url", base])
        .args(selection)
        .args(["--max-examples", "10", "--seed", "7", "--workers", "1", "--no-color"])
        .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance"])
        .args(["--checks", "response_schema_conformance,unsupported_method"])
        .current_dir(directory.path());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn program_path() -> Option<PathBuf> {
    let program = env::split_paths(&env::var_os("PATH").unwrap_or_default())
        .map(|directory| directory.join("schemathesis"))
        .find(|path| path.is_file());
    if program.is_none() {
        report_missing("schemathesis is not installed");
    }
    program
}
