//! The structure that all custom resources share: metadata, `spec`, `status` and the definition.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition,
    CustomResourceDefinitionNames, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion,
    CustomResourceSubresourceStatus, CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps,
};
use kube::api::ObjectMeta;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use super::error::Error;
use super::names::{GROUP, VERSION};
use super::schema;
use super::wire::nullable;

/// The `spec` of a kind, and the properties of the kind for its definition.
pub trait Kind: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// The type of the kind's `status`.
    type Status: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema;
    /// Name of the kind, in CamelCase.
    const KIND: &'static str;
    /// Plural name of the kind, in lower case, as used in URLs.
    const PLURAL: &'static str;
    /// Presence of `status` in the schema.
    const STATUS: StatusProperty = StatusProperty::Present;

    /// Returns the columns that `kubectl get` prints.
    #[must_use]
    fn columns() -> Vec<CustomResourceColumnDefinition> {
        Vec::new()
    }
}

/// The presence of `status` in the schema of a kind. The status subresource exists in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusProperty {
    /// The schema contains `status`, and the API server stores it.
    Present,
    /// The schema does not contain `status`, so the API server drops it.
    Absent,
}

/// A custom resource of the API group `agent-install.openshift.io`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(bound = "")]
pub struct CustomResource<S: Kind> {
    /// Name, namespace, labels and the rest of the metadata.
    #[serde(default, deserialize_with = "nullable")]
    pub metadata: ObjectMeta,
    /// Desired state. The API server accepts an object without one; it reads as the default value.
    #[serde(default, deserialize_with = "nullable")]
    pub spec: S,
    /// Observed state.
    #[serde(default)]
    pub status: Option<S::Status>,
}

impl<S: Kind> CustomResource<S> {
    /// Returns a resource with this name and `spec`, and without a namespace.
    #[must_use]
    pub fn new(name: &str, spec: S) -> Self {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        Self { metadata, spec, status: None }
    }

    /// Returns the definition of the kind.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema cannot be generated. No input can cause this.
    pub fn definition() -> Result<CustomResourceDefinition, Error> {
        let root = root_schema::<S>().map_err(|source| Error::Schema { kind: S::KIND, source })?;
        let name = Some(format!("{}.{GROUP}", S::PLURAL));
        Ok(CustomResourceDefinition {
            metadata: ObjectMeta { name, ..ObjectMeta::default() },
            spec: CustomResourceDefinitionSpec {
                // Upstream's deployment sets `Webhook`; an update without this member would keep it.
                conversion: Some(CustomResourceConversion { strategy: "None".to_owned(), webhook: None }),
                group: GROUP.to_owned(),
                names: kind_names::<S>(),
                preserve_unknown_fields: None,
                scope: "Namespaced".to_owned(),
                versions: vec![version::<S>(root)],
            },
            status: None,
        })
    }
}

fn kind_names<S: Kind>() -> CustomResourceDefinitionNames {
    CustomResourceDefinitionNames {
        kind: S::KIND.to_owned(),
        list_kind: Some(format!("{}List", S::KIND)),
        plural: S::PLURAL.to_owned(),
        singular: Some(S::KIND.to_lowercase()),
        ..CustomResourceDefinitionNames::default()
    }
}

fn version<S: Kind>(root: JSONSchemaProps) -> CustomResourceDefinitionVersion {
    let columns = S::columns();
    CustomResourceDefinitionVersion {
        name: VERSION.to_owned(),
        additional_printer_columns: (!columns.is_empty()).then_some(columns),
        schema: Some(CustomResourceValidation { open_api_v3_schema: Some(root) }),
        served: true,
        storage: true,
        subresources: Some(CustomResourceSubresources {
            scale: None,
            status: Some(CustomResourceSubresourceStatus(serde_json::json!({}))),
        }),
        ..CustomResourceDefinitionVersion::default()
    }
}

fn root_schema<S: Kind>() -> Result<JSONSchemaProps, serde_json::Error> {
    let plain = |name: &str| JSONSchemaProps { type_: Some(name.to_owned()), ..JSONSchemaProps::default() };
    let mut properties = BTreeMap::from([
        ("apiVersion".to_owned(), plain("string")),
        ("kind".to_owned(), plain("string")),
        ("metadata".to_owned(), plain("object")),
        ("spec".to_owned(), schema::of::<S>()?),
    ]);
    if S::STATUS == StatusProperty::Present {
        properties.insert("status".to_owned(), schema::of::<S::Status>()?);
    }
    Ok(JSONSchemaProps { properties: Some(properties), ..plain("object") })
}

/// Returns a column that `kubectl get` always prints.
pub(super) fn column(name: &str, type_: &str, json_path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: json_path.to_owned(),
        ..CustomResourceColumnDefinition::default()
    }
}

/// Returns a column that only `kubectl get -o wide` prints.
pub(super) fn wide_column(name: &str, type_: &str, json_path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition { priority: Some(1), ..column(name, type_, json_path) }
}

impl<S: Kind> Serialize for CustomResource<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let len = if self.status.is_some() { 5 } else { 4 };
        let mut object = serializer.serialize_struct(S::KIND, len)?;
        object.serialize_field("apiVersion", &format!("{GROUP}/{VERSION}"))?;
        object.serialize_field("kind", S::KIND)?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        match &self.status {
            Some(status) => object.serialize_field("status", status)?,
            None => object.skip_field("status")?,
        }
        object.end()
    }
}

impl<S: Kind> kube::Resource for CustomResource<S> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        S::KIND.into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        S::PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
