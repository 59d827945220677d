//! Errors of the definitions of custom resources.

/// An error while the definitions are generated: a defect of this crate, not of its input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The generated schema is not a schema of a custom resource definition.
    #[error("cannot generate the schema of {kind}")]
    Schema {
        /// The kind with the schema.
        kind: &'static str,
        /// The cause.
        source: serde_json::Error,
    },
    /// The definitions cannot be written as YAML.
    #[error("cannot write custom resource definitions as YAML")]
    Yaml(#[from] serde_yaml_ng::Error),
}
