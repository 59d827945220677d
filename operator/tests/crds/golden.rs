//! Compares the YAML of each definition with a golden file.
//!
//! `UPDATE_GOLDEN=1 cargo test -p operator --test crds` writes the golden files.

use std::path::Path;
use std::{env, fs};

use kube::ResourceExt;
use operator::crds;

#[test]
fn definitions_equal_their_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/crds");
    for definition in crds::all().unwrap() {
        let path = folder.join(format!("{}.yaml", definition.spec.names.plural));
        let text = crds::documents(std::slice::from_ref(&definition)).unwrap();
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert!(text == golden, "{} differs; UPDATE_GOLDEN=1 rewrites it", definition.name_any());
    }
}

#[test]
fn all_definitions_are_one_stream_of_documents() {
    let each: String = crds::all()
        .unwrap()
        .iter()
        .map(|definition| crds::documents(std::slice::from_ref(definition)).unwrap())
        .collect();
    assert_eq!(crds::to_yaml().unwrap(), each);
}

#[test]
fn documents_remove_the_conversion_webhook() {
    let text = crds::to_yaml().unwrap();
    assert_eq!(text.matches("  conversion:\n    strategy: None\n    webhook: null\n").count(), 4);
}
