//! The ValidatingWebhookConfigurations, which define the requests that the API server sends to the webhooks.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    RuleWithOperations, ServiceReference, ValidatingWebhook, ValidatingWebhookConfiguration,
    WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use super::reviewer::ReviewedResource;
use super::server::BASE_PATH;
use super::settings::WebhookEndpoint;
use crate::crds::names::{GROUP, VERSION};
use crate::errors::RequestError;
use crate::requests::Verb;
use crate::writer::Writer;

/// Time that the API server waits for a response, in seconds.
const TIMEOUT: i32 = 10;

/// The configurations of all webhooks of this operator.
#[derive(Clone, Debug)]
pub(super) struct Configurations {
    pub(super) endpoint: WebhookEndpoint,
    /// Suffix of the configuration names.
    pub(super) name_suffix: String,
    /// The namespaces whose objects are reviewed. Empty means all namespaces.
    pub(super) namespaces: Vec<String>,
}

impl Configurations {
    /// Creates or updates the configurations that differ. If `bundle` is `None`, the stored CA bundle stays.
    ///
    /// # Errors
    ///
    /// Returns an error if a request fails.
    pub(super) async fn ensure(
        &self,
        client: &Client,
        writer: &Writer,
        bundle: Option<&str>,
    ) -> Result<(), RequestError> {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        for resource in ReviewedResource::ALL {
            self.ensure_one(&api, writer, (resource, bundle)).await?;
        }
        Ok(())
    }

    async fn ensure_one(
        &self,
        api: &Api<ValidatingWebhookConfiguration>,
        writer: &Writer,
        (resource, bundle): (ReviewedResource, Option<&str>),
    ) -> Result<(), RequestError> {
        type Object = ValidatingWebhookConfiguration;
        let name = format!("{}{}", name(resource), self.name_suffix);
        let mut webhook = self.webhook(resource, bundle);
        let stored = match writer.send::<Object, _>(Verb::Get, api.get(&name)).await {
            Ok(stored) => stored,
            Err(RequestError::Gone) => {
                let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
                let object = Object { metadata, webhooks: Some(vec![webhook]) };
                writer.send::<Object, _>(Verb::Create, api.create(&PostParams::default(), &object)).await?;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let stored = stored.webhooks.unwrap_or_default();
        if bundle.is_none() {
            // Keep the stored CA bundle, because another program may have injected it.
            let injected = stored.iter().find_map(|it| it.client_config.ca_bundle.clone());
            webhook.client_config.ca_bundle = injected;
        }
        if stored == [webhook.clone()] {
            return Ok(());
        }
        let patch = json!({"webhooks": [webhook]});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        writer.send::<Object, _>(Verb::Patch, api.patch(&name, &params, &patch)).await?;
        Ok(())
    }

    /// Returns a webhook with explicit values for all members that the API server would otherwise default. So it can be
    /// compared with the stored webhook.
    fn webhook(&self, resource: ReviewedResource, bundle: Option<&str>) -> ValidatingWebhook {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let operations = match resource {
            ReviewedResource::Agents => texts(&["UPDATE"]),
            _ => texts(&["CREATE", "UPDATE"]),
        };
        let rule = RuleWithOperations {
            api_groups: Some(texts(&[GROUP])),
            api_versions: Some(texts(&[VERSION])),
            operations: Some(operations),
            resources: Some(texts(&[resource.plural()])),
            scope: Some("*".to_owned()),
        };
        ValidatingWebhook {
            admission_review_versions: texts(&["v1"]),
            client_config: self.client_config(resource, bundle),
            failure_policy: Some("Fail".to_owned()),
            match_conditions: None,
            match_policy: Some("Equivalent".to_owned()),
            name: name(resource),
            namespace_selector: Some(self.namespace_selector()),
            object_selector: Some(LabelSelector::default()),
            rules: Some(vec![rule]),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(TIMEOUT),
        }
    }

    fn client_config(&self, resource: ReviewedResource, bundle: Option<&str>) -> WebhookClientConfig {
        let path = format!("{BASE_PATH}{}", resource.plural());
        let ca_bundle = bundle.map(|bundle| ByteString(bundle.as_bytes().to_vec()));
        match &self.endpoint {
            WebhookEndpoint::Service { namespace, name, port } => WebhookClientConfig {
                ca_bundle,
                service: Some(ServiceReference {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    path: Some(path),
                    port: Some(i32::from(*port)),
                }),
                url: None,
            },
            WebhookEndpoint::Address { host, port } => WebhookClientConfig {
                ca_bundle,
                service: None,
                url: Some(format!("https://{host}:{port}{path}")),
            },
        }
    }

    fn namespace_selector(&self) -> LabelSelector {
        if self.namespaces.is_empty() {
            return LabelSelector::default();
        }
        let requirement = LabelSelectorRequirement {
            key: "kubernetes.io/metadata.name".to_owned(),
            operator: "In".to_owned(),
            values: Some(self.namespaces.clone()),
        };
        LabelSelector { match_expressions: Some(vec![requirement]), match_labels: None }
    }
}

/// Returns the name of a webhook. If the upstream service has the same webhook, the name equals its name in that
/// service.
fn name(resource: ReviewedResource) -> String {
    let kind = match resource {
        ReviewedResource::InfraEnvs => "infraenv",
        ReviewedResource::Agents => "agent",
        ReviewedResource::NMStateConfigs => "nmstateconfig",
        ReviewedResource::AgentClassifications => "agentclassification",
    };
    format!("{kind}validators.admission.agentinstall.openshift.io")
}
