//! How many requests for images are answered at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ignition::network::MacAddr;
use kindling::api_error::ApiError;
use kindling::discovery::RenderedConfig;
use kindling::http::images::{Access, Artifact, Current, Embedded, ImageInputs};
use kindling::images::CpuArchitecture;
use kindling::inventory::auth::Policy;
use kindling::inventory::id::InfraEnvId;
use tokio::sync::Semaphore;

use crate::{Server, run};

/// Inputs that wait until they are told not to.
#[derive(Debug)]
pub(crate) struct Gated {
    pub(crate) gate: Arc<Gate>,
    pub(crate) embedded: Embedded,
}

#[derive(Debug)]
pub(crate) struct Gate {
    open: Semaphore,
    asked: AtomicUsize,
}

impl Gate {
    /// A gate through which so many go at a time.
    pub(crate) fn open(most: usize) -> Arc<Self> {
        Arc::new(Self { open: Semaphore::new(most), asked: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl ImageInputs for Gated {
    async fn current(
        &self,
        id: InfraEnvId,
        artifact: Artifact,
        access: &Access,
    ) -> Result<Current, ApiError> {
        self.gate.asked.fetch_add(1, Ordering::SeqCst);
        let _open = self.gate.open.acquire().await.unwrap();
        self.embedded.current(id, artifact, access).await
    }

    async fn rendered(
        &self,
        current: &Current,
        artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, ApiError> {
        self.embedded.rendered(current, artifact, machine).await
    }

    fn is_current(&self, current: &Current) -> bool {
        self.embedded.is_current(current)
    }

    async fn live_image(
        &self,
        id: InfraEnvId,
        access: &Access,
    ) -> Result<(String, CpuArchitecture), ApiError> {
        self.embedded.live_image(id, access).await
    }

    async fn ipxe_script(&self, id: InfraEnvId, access: &Access) -> Result<String, ApiError> {
        self.embedded.ipxe_script(id, access).await
    }
}

#[test]
fn requests_take_turns_until_their_images_begin() {
    run(async {
        let gate = Gate::open(0);
        let server = Arc::new(Server::start_gated(Policy::Open, None, Some(Arc::clone(&gate))).await);
        let (_, id) = server.infra_env().await;
        let path = format!("/byid/{id}/4.14/x86_64/full.iso");
        let requests: Vec<_> = (0..6)
            .map(|_| {
                let (server, path) = (Arc::clone(&server), path.clone());
                tokio::spawn(async move { server.get(&path).await })
            })
            .collect();
        while gate.asked.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(gate.asked.load(Ordering::SeqCst), 2, "others wait");
        gate.open.add_permits(1);
        // All heads come while nobody reads a body.
        let mut responses = Vec::new();
        for request in requests {
            responses.push(request.await.unwrap());
        }
        assert!(responses.iter().all(|response| response.status() == 200));
        assert_eq!(gate.asked.load(Ordering::SeqCst), 6);
    });
}
