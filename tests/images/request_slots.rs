//! Tests the limit of concurrent image requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use discovery::RenderedConfig;
use ignition::network::MacAddr;
use kindling::http::images::{
    Artifact, Currency, EmbeddedInputs, ImageCredentials, ImageInputs, InfraEnvSnapshot, SnapshotState,
    SourceError,
};
use kindling::inventory::auth::Policy;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::{ImageTestServer, run};

/// Inputs that wait until the gate opens.
#[derive(Debug)]
pub(crate) struct GatedInputs {
    pub(crate) gate: Arc<InputsGate>,
    pub(crate) embedded: EmbeddedInputs,
}

#[derive(Debug)]
pub(crate) struct InputsGate {
    open: Semaphore,
    asked: AtomicUsize,
}

impl InputsGate {
    /// Creates a gate that admits `most` requests at a time.
    pub(crate) fn with_permits(most: usize) -> Arc<Self> {
        Arc::new(Self { open: Semaphore::new(most), asked: AtomicUsize::new(0) })
    }

    /// Returns the number of requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl ImageInputs for GatedInputs {
    async fn current_snapshot(
        &self,
        id: Uuid,
        artifact: Artifact,
        access: &ImageCredentials,
    ) -> Result<InfraEnvSnapshot, SourceError> {
        self.gate.asked.fetch_add(1, Ordering::SeqCst);
        let _open = self.gate.open.acquire().await.unwrap();
        self.embedded.current_snapshot(id, artifact, access).await
    }

    async fn render_config(
        &self,
        current: &InfraEnvSnapshot,
        artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, SourceError> {
        self.embedded.render_config(current, artifact, machine).await
    }

    fn currency(&self, state: &SnapshotState) -> Currency {
        self.embedded.currency(state)
    }

    async fn ipxe_script(&self, id: Uuid, access: &ImageCredentials) -> Result<Option<String>, SourceError> {
        self.embedded.ipxe_script(id, access).await
    }
}

#[test]
fn request_slot_is_held_until_the_response_starts() {
    run(async {
        let gate = InputsGate::with_permits(0);
        let server =
            Arc::new(ImageTestServer::start_gated(Policy::Open, None, Some(Arc::clone(&gate))).await);
        let (_, id) = server.create_infra_env().await;
        let path = format!("/byid/{id}/4.14/x86_64/full.iso");
        let requests: Vec<_> = (0..6)
            .map(|_| {
                let (server, path) = (Arc::clone(&server), path.clone());
                tokio::spawn(async move { server.get(&path).await })
            })
            .collect();
        while gate.asked() < 2 {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(gate.asked(), 2, "other requests did not wait");
        gate.open.add_permits(1);
        // All response heads arrive while no client reads a body.
        let mut responses = Vec::new();
        for request in requests {
            responses.push(request.await.unwrap());
        }
        assert!(responses.iter().all(|response| response.status() == 200));
        assert_eq!(gate.asked(), 6);
    });
}
