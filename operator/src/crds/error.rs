//! Errors that occur while the custom resource definitions are generated.

/// An error in the generation of a definition. It is a defect of this crate, because there is no other input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The generated schema cannot be used in a custom resource definition.
    #[error("cannot generate the schema of {kind}")]
    Schema {
        /// The kind with the schema.
        kind: &'static str,
        /// The error from converting the schema.
        source: serde_json::Error,
    },
    /// The definitions cannot be serialized as YAML.
    #[error("cannot write custom resource definitions as YAML")]
    Yaml(#[from] serde_yaml_ng::Error),
}
