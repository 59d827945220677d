//! Reviews one request with the rules and checks of its resource.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::faults::{CheckResult, FaultCheck};
use super::review::{AdmissionRequest, Verdict};
use super::rules::{self, Denial};
use crate::crds::names::{GROUP, VERSION};
use crate::crds::{Agent, AgentClassification, CustomResource, InfraEnv, Kind, NMStateConfig};
use crate::object::ObjectKey;

/// A resource for which a webhook exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewedResource {
    InfraEnvs,
    Agents,
    NMStateConfigs,
    AgentClassifications,
}

impl ReviewedResource {
    /// All resources for which a webhook exists.
    pub(crate) const ALL: [Self; 4] =
        [Self::InfraEnvs, Self::Agents, Self::NMStateConfigs, Self::AgentClassifications];

    /// Returns the name of the resource in URLs.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::InfraEnvs => "infraenvs",
            Self::Agents => "agents",
            Self::NMStateConfigs => "nmstateconfigs",
            Self::AgentClassifications => "agentclassifications",
        }
    }
}

/// A reviewer of admission requests.
#[derive(Clone, Debug)]
pub(crate) struct Reviewer {
    check: FaultCheck,
}

/// The object of a request, and its previous state if the request is an update.
struct Objects<S: Kind> {
    new: CustomResource<S>,
    old: Option<CustomResource<S>>,
}

impl<S: Kind> Objects<S> {
    /// Applies the rule for creations or the rule for updates.
    fn obey<E>(
        &self,
        creation: impl FnOnce(&CustomResource<S>) -> Result<(), E>,
        update: impl FnOnce(&CustomResource<S>, &CustomResource<S>) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.old {
            Some(old) => update(old, &self.new),
            None => creation(&self.new),
        }
    }

    /// Returns `true` if the object is being deleted. Then only its finalizers matter.
    fn is_deleted(&self) -> bool {
        self.new.metadata.deletion_timestamp.is_some()
    }
}

impl Reviewer {
    pub(crate) fn new(check: FaultCheck) -> Self {
        Self { check }
    }

    /// Reviews a request received at the path of a resource. A review never writes anything, so dry runs need no
    /// special handling.
    pub(crate) async fn review(&self, path: ReviewedResource, request: &mut AdmissionRequest) -> Verdict {
        let resource = &request.resource;
        let is_known = (resource.group.as_str(), resource.version.as_str()) == (GROUP, VERSION)
            && resource.resource == path.plural()
            && request.sub_resource.as_deref().unwrap_or_default().is_empty();
        if !is_known || !["CREATE", "UPDATE"].contains(&request.operation.as_str()) {
            return Verdict::allowed();
        }
        let verdict = match path {
            ReviewedResource::InfraEnvs => self.infra_env(request).await,
            ReviewedResource::Agents => agent(request),
            ReviewedResource::NMStateConfigs => self.nmstate_config(request).await,
            ReviewedResource::AgentClassifications => agent_classification(request),
        };
        verdict.unwrap_or_else(Verdict::from)
    }

    async fn infra_env(&self, request: &mut AdmissionRequest) -> Result<Verdict, Denial> {
        let mut objects = objects(request)?;
        objects.obey(
            |new| rules::infra_env::creation(&new.spec),
            |old, new| rules::infra_env::update(&old.spec, &new.spec),
        )?;
        if objects.is_deleted() {
            return Ok(Verdict::allowed());
        }
        let new: &mut InfraEnv = &mut objects.new;
        new.metadata.namespace.clone_from(&request.namespace);
        Ok(verdict(self.check.infra_env(&objects.new, objects.old.as_ref()).await))
    }

    async fn nmstate_config(&self, request: &mut AdmissionRequest) -> Result<Verdict, Denial> {
        let objects = objects(request)?;
        if objects.is_deleted() {
            return Ok(Verdict::allowed());
        }
        let new: &NMStateConfig = &objects.new;
        let key = ObjectKey::new(request.namespace.clone().unwrap_or_default(), request.name.clone());
        Ok(verdict(self.check.nmstate_config(&key, new, objects.old.as_ref()).await))
    }
}

fn agent(request: &mut AdmissionRequest) -> Result<Verdict, Denial> {
    let objects = objects(request)?;
    // New Agents are not checked, because upstream checks only updates.
    objects.obey(|_: &Agent| Ok(()), rules::agent::update)?;
    Ok(Verdict::allowed())
}

fn agent_classification(request: &mut AdmissionRequest) -> Result<Verdict, Denial> {
    let objects = objects(request)?;
    let creation = |new: &AgentClassification| rules::agent_classification::creation(new);
    objects.obey(creation, rules::agent_classification::update)?;
    Ok(Verdict::allowed())
}

fn verdict(CheckResult { faults, warnings }: CheckResult) -> Verdict {
    Verdict { denial: Denial::from_faults(faults), warnings }
}

fn objects<S: Kind>(request: &mut AdmissionRequest) -> Result<Objects<S>, Denial> {
    let new = object("object", request.object.take())?;
    let old = match request.operation.as_str() {
        "UPDATE" => Some(object("oldObject", request.old_object.take())?),
        _ => None,
    };
    Ok(Objects { new, old })
}

fn object<T: DeserializeOwned>(member: &str, value: Option<Value>) -> Result<T, Denial> {
    let value = value.filter(Value::is_object);
    let value = value.ok_or_else(|| Denial::bad_request(format!("the request has no {member}"), &[]))?;
    serde_json::from_value(value)
        .map_err(|error| Denial::bad_request(format!("cannot decode {member} of the request: {error}"), &[]))
}
