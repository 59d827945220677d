//! The options for the controllers of custom resources.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use operator::kube::config::{KubeConfigOptions, Kubeconfig};
use operator::kube::{Client, Config};
use operator::{Operator, Settings};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::value::parse_switch;
use super::webhooks::WebhookOptions;
use crate::http::TlsRules;
use crate::inventory::Inventory;

#[derive(Debug, Args)]
#[command(next_help_heading = "Kubernetes")]
pub(super) struct KubeOptions {
    /// Reconcile the custom resources of the Assisted Installer. `kindling crd` prints their definitions
    #[arg(
        long,
        env = "ENABLE_KUBE_API",
        value_name = "BOOL",
        num_args = 0..=1,
        default_value_t = false,
        default_missing_value = "true",
        value_parser = parse_switch
    )]
    kube_api: bool,
    /// Kubeconfig file [default: the service account of the pod]
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespaces whose resources are reconciled, separated by commas [default: all]
    #[arg(
        long,
        env = "KINDLING_KUBE_NAMESPACES",
        value_name = "NAMESPACES",
        value_delimiter = ',',
        value_parser = parse_namespace
    )]
    kube_namespaces: Vec<String>,
    /// Namespace of the lease that decides which replica writes [default: the namespace of the pod or the kubeconfig]
    #[arg(long, env = "NAMESPACE", value_name = "NAMESPACE")]
    kube_lease_namespace: Option<String>,
    /// Maximum number of requests to the Kubernetes API per second
    #[arg(
        long,
        env = "KINDLING_KUBE_REQUESTS_PER_SECOND",
        value_name = "NUMBER",
        default_value_t = Settings::REQUESTS_PER_SECOND,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    kube_requests_per_second: u32,
    #[command(flatten)]
    webhooks: WebhookOptions,
}

/// Parses the name of a namespace. Rejects an empty name, which would stand for all namespaces.
fn parse_namespace(name: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match !name.is_empty() && name.len() <= 63 && name.chars().all(is_allowed) {
        true => Ok(name.to_owned()),
        false => Err(format!("{name:?}: expected the name of a namespace")),
    }
}

impl KubeOptions {
    /// Checks all options that can be checked without a request to the Kubernetes API.
    ///
    /// # Errors
    ///
    /// Returns an error that contains the contradictory options or the path of an unusable file.
    pub(super) fn check(&self, rules: &TlsRules) -> Result<()> {
        self.webhooks.check(self.kube_api, rules)
    }

    /// Returns the operator, if it is enabled.
    ///
    /// # Errors
    ///
    /// Returns an error if the access to the Kubernetes API is not configured. The API may still be unavailable.
    pub(super) async fn operator(&self, inventory: &Inventory, rules: &TlsRules) -> Result<Option<Operator>> {
        if !self.kube_api {
            return Ok(None);
        }
        let config = self.config().await?;
        let lease_namespace =
            self.kube_lease_namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let url = config.cluster_url.to_string();
        let client =
            Client::try_from(config).context("cannot use the configured access to the Kubernetes API")?;
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "kindling".to_owned());
        let webhooks = self.webhooks.settings(&lease_namespace, rules).await?;
        let mut settings = Settings::new(lease_namespace, format!("{host}_{}", Uuid::new_v4()));
        settings.namespaces.clone_from(&self.kube_namespaces);
        settings.requests_per_second = self.kube_requests_per_second;
        tracing::info!(%url, namespaces = ?settings.namespaces, "reconciling custom resources");
        let operator = Operator::new(client, inventory.clone(), settings);
        Ok(Some(match webhooks {
            Some(webhooks) => operator.with_webhooks(webhooks),
            None => operator,
        }))
    }

    async fn config(&self) -> Result<Config> {
        let mut config = match &self.kubeconfig {
            Some(file) => {
                let kubeconfig = Kubeconfig::read_from(file)
                    .with_context(|| format!("cannot read the kubeconfig {}", file.display()))?;
                Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                    .await
                    .with_context(|| format!("cannot use the kubeconfig {}", file.display()))?
            }
            None => Config::incluster().context(
                "cannot find the Kubernetes API: set --kubeconfig (KUBECONFIG), or run in a pod with a service account",
            )?,
        };
        // The controllers retry failed requests themselves.
        config.default_retry = false;
        Ok(config)
    }
}

/// Runs the operator until `serve` completes. Then waits until the operator has released its lease.
pub(super) async fn with_operator(
    operator: Option<Operator>,
    serve: impl Future<Output = Result<()>>,
) -> Result<()> {
    let Some(operator) = operator else { return serve.await };
    let (end, ended) = oneshot::channel::<()>();
    let running = tokio::spawn(operator.run(async {
        // Completes when the sender is dropped.
        let _ = ended.await;
    }));
    let served = serve.await;
    drop(end);
    served.and(running.await.context("the controllers of custom resources failed"))
}
