//! Checks the definitions of the custom resources with a real API server.

use std::fs;
use std::path::Path;

use crate::site::hub;

async fn outcomes(folder: &str) -> Option<Vec<(String, String, String)>> {
    let hub = hub().await?;
    let namespace = hub.namespace("manifests").await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut outcomes = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let output = hub.run_kubectl(&["create", "-n", &namespace, "-f", "-"], text.as_bytes()).await;
        let error = if output.status.success() {
            String::new()
        } else {
            format!("refused: {}", String::from_utf8_lossy(&output.stderr))
        };
        outcomes.push((file.file_name().unwrap().to_string_lossy().into_owned(), text, error));
    }
    assert!(!outcomes.is_empty());
    Some(outcomes)
}

/// Compares `crds.yaml` with the generated definitions. With `UPDATE_GOLDEN=1`, writes the file first.
#[test]
fn kustomization_has_the_definitions() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/kubernetes-hub/crds.yaml");
    let definitions = operator::crds::to_yaml().unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &definitions).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), definitions);
}

#[tokio::test]
async fn kustomization_is_accepted() {
    let Some(hub) = hub().await else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/kubernetes-hub");
    let manifests = hub.kubectl(&["kustomize", &folder.to_string_lossy()]).await;
    let output = hub.run_kubectl(&["create", "--dry-run=client", "-f", "-"], manifests.as_bytes()).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn valid_manifests_are_accepted() {
    let Some(outcomes) = outcomes("accepted").await else { return };
    for (file, _, error) in outcomes {
        assert_eq!(error, "", "{file}");
    }
}

#[tokio::test]
async fn invalid_manifests_are_refused() {
    let Some(outcomes) = outcomes("refused").await else { return };
    for (file, text, error) in outcomes {
        let expected = text.lines().next().unwrap().trim_start_matches('#').trim();
        assert!(error.starts_with("refused: ") && error.contains(expected), "{file}: {error}");
    }
}
