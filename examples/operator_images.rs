//! An operator that keeps its infra-envs as Kubernetes objects and serves their images: `cargo run --example
//! operator_images -- IMAGE.iso DIRECTORY`.
//!
//! This program has neither an inventory nor a database. The operator converts each watched `InfraEnv` into checked
//! inputs. The image server asks the operator for the current snapshot of an infra-env, and for the config of an image.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use assisted::architecture::{CpuArchitecture, ImageType};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use discovery::manifests::{IdSource, Manifests};
use discovery::{Checked, DiscoveryReport, Draft, Inputs, RenderedConfig, ServiceContext};
use ignition::discovery::{HttpUrl, ImageReference, InventoryService};
use ignition::network::{KeyfileCache, MacAddr};
use inventory::catalogue::OsImage;
use kindling::http::images::{
    Artifact, Currency, ImageCredentials, ImageInputs, ImageServer, InfraEnvSnapshot, SnapshotState,
    SourceError,
};
use kindling::http::{App, image_app};
use kindling::images::library::{Library, LibrarySettings};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use uuid::Uuid;

/// An infra-env of the operator.
#[derive(Debug)]
struct OwnInfraEnv {
    inputs: Inputs,
    /// The `resourceVersion`s of the objects. They are different after each change.
    revision: String,
    changed_at: DateTime<Utc>,
}

/// The infra-envs of the operator. Keys are the uids of their objects. Clones share the infra-envs.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    infra_envs: Arc<RwLock<HashMap<Uuid, Arc<OwnInfraEnv>>>>,
    keyfiles: Arc<KeyfileCache>,
    service: InventoryService,
}

impl Operator {
    /// Returns an operator for hosts that report to the given service.
    pub(crate) fn new(service: InventoryService) -> Self {
        Self { infra_envs: Arc::default(), keyfiles: Arc::new(KeyfileCache::new(64 << 20)), service }
    }

    /// Applies a watched `InfraEnv` and the objects that it refers to. Returns the warnings, or all findings if one is
    /// an error.
    pub(crate) fn apply(&self, objects: &[Value]) -> Result<DiscoveryReport, Box<dyn Error>> {
        let mut manifests = Manifests::default().with_ids_from(IdSource::Uid);
        for object in objects {
            manifests.add_object("", object.clone())?;
        }
        let (draft, mut findings) = manifests.draft(None, Draft::default())?;
        let context = ServiceContext { service: self.service.clone(), version: None };
        let Checked { value: inputs, warnings } = draft.inputs(&context, &self.keyfiles)?;
        findings.append(warnings);
        if findings.is_fatal() {
            return Err(findings.into());
        }
        let id = inputs.infra_env().id.as_str().parse()?;
        let revision = objects.iter().filter_map(|it| it.pointer("/metadata/resourceVersion")?.as_str());
        let revision = revision.collect::<Vec<_>>().join("-");
        let infra_env = Arc::new(OwnInfraEnv { inputs, revision, changed_at: Utc::now() });
        self.infra_envs.write().unwrap_or_else(PoisonError::into_inner).insert(id, infra_env);
        Ok(findings)
    }

    fn find(&self, id: Uuid) -> Result<Arc<OwnInfraEnv>, SourceError> {
        let infra_envs = self.infra_envs.read().unwrap_or_else(PoisonError::into_inner);
        let infra_env = infra_envs.get(&id).cloned();
        infra_env.ok_or_else(|| SourceError::not_found(format!("infra-env {id} does not exist")))
    }
}

#[async_trait]
impl ImageInputs for Operator {
    async fn current_snapshot(
        &self,
        id: Uuid,
        _artifact: Artifact,
        // An operator that serves several teams would check the credentials here.
        _access: &ImageCredentials,
    ) -> Result<InfraEnvSnapshot, SourceError> {
        let infra_env = self.find(id)?;
        let (revision, changed_at) = (infra_env.revision.as_str(), infra_env.changed_at);
        let version = infra_env.inputs.version().to_string();
        let snapshot = InfraEnvSnapshot::new(revision, changed_at, infra_env.clone());
        Ok(snapshot.with_live_image(version, CpuArchitecture::X86_64))
    }

    async fn render_config(
        &self,
        current: &InfraEnvSnapshot,
        artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, SourceError> {
        let infra_env = Arc::clone(&current.state).downcast::<OwnInfraEnv>();
        let infra_env = infra_env.map_err(|_| SourceError::internal("snapshot of another source"))?;
        let keyfiles = Arc::clone(&self.keyfiles);
        let render = move || artifact.render(&infra_env.inputs, machine, &keyfiles);
        tokio::task::spawn_blocking(render).await.map_err(|_| SourceError::internal("rendering panicked"))?
    }

    /// This method is optional. Without it, the server requests a snapshot for each range of an image.
    fn currency(&self, state: &SnapshotState) -> Currency {
        let Some(infra_env) = state.downcast_ref::<OwnInfraEnv>() else { return Currency::Outdated };
        let id = infra_env.inputs.infra_env().id.as_str().parse();
        match id.map(|id| self.find(id)) {
            Ok(Ok(latest)) if latest.revision == infra_env.revision => Currency::Current,
            Ok(Ok(_)) => Currency::Changed,
            _ => Currency::Outdated,
        }
    }
}

/// Returns an application that serves the images of the operator's infra-envs, from one base image for OpenShift 4.18.
pub(crate) fn application(
    operator: Operator,
    base: &str,
    directory: &Path,
    origin: &str,
) -> Result<App, Box<dyn Error>> {
    let base = Path::new(base).canonicalize()?;
    let images = [OsImage {
        openshift_version: "4.18".to_owned(),
        cpu_architecture: CpuArchitecture::X86_64,
        url: format!("file://{}", base.display()),
        version: "418.94.1".to_owned(),
        image_type: ImageType::Full,
        sha256: None,
    }];
    let library = Library::open(LibrarySettings::new(directory.join("images")), images.clone())?;
    let server = ImageServer::new(images, library, Arc::new(operator), HttpUrl::parse("origin", origin)?);
    Ok(image_app(&server, &[]))
}

/// Returns an infra-env, its pull secret and the network of one host, in the form that a Kubernetes watch returns.
pub(crate) fn watched_objects(uid: &str) -> [Value; 3] {
    let infra_env = json!({"namespace": "site", "name": "rack-1", "resourceVersion": "7", "uid": uid});
    let secret = json!({"namespace": "site", "name": "pull-secret", "resourceVersion": "5"});
    let labels = json!({"rack": "1"});
    let host = json!({"namespace": "site", "name": "node-0", "resourceVersion": "6", "labels": labels});
    [
        json!({"kind": "InfraEnv", "metadata": infra_env, "spec": {
            "pullSecretRef": {"name": "pull-secret"},
            "osImageVersion": "4.18",
            "nmStateConfigLabelSelector": {"matchLabels": labels},
        }}),
        json!({"kind": "Secret", "metadata": secret,
            "stringData": {".dockerconfigjson": r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#}}),
        json!({"kind": "NMStateConfig", "metadata": host, "spec": {
            "config": {"interfaces": [{"name": "eno1", "type": "ethernet", "state": "up"}]},
            "interfaces": [{"name": "eno1", "macAddress": "52:54:00:00:00:01"}],
        }}),
    ]
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, directory] = arguments.as_slice() else {
        return Err("usage: operator_images IMAGE.iso DIRECTORY".into());
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let agent = ImageReference::parse("agent", "quay.io/example/agent:v1")?;
    let operator = Operator::new(InventoryService::new(HttpUrl::parse("service", &origin)?, agent));
    let uid = Uuid::new_v4().to_string();
    for warning in operator.apply(&watched_objects(&uid))? {
        eprintln!("{warning}");
    }
    let application = application(operator, base, Path::new(directory), &origin)?;
    println!("{origin}/i/{uid}/full.iso");
    Ok(kindling::http::serve(listener, application, std::future::pending()).await?)
}
