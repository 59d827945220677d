//! Explains the statuses of hosts and clusters: lists the validations that do not pass, and what a user can do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;

use assisted::client::{ApiClient, ClientError, ClusterHosts};
use assisted::host::{Validation, ValidationStatus};
use assisted::{ClusterId, HostId, InfraEnvId};
use rules::validation::{remedy_of_cluster, remedy_of_host};
use serde::{Deserialize, Serialize};

use super::figures::error_text;

/// Maximum number of hosts to list individually for a status or a validation. More hosts form a group.
const MAX_LISTED: usize = 20;
/// Maximum number of host names to show for a group.
const GROUP_NAMES: usize = 5;
/// Maximum number of clusters to read. Each one takes a request.
const MAX_CLUSTERS: usize = 20;

/// An explanation of the statuses of an infra-env's hosts and their clusters.
///
/// More than 20 hosts with the same status or the same failing validation form a group. `hosts` contains only hosts
/// with a status or failing validation that does not form a group, so it remains short even for many hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Clusters, sorted by id.
    pub clusters: Vec<ClusterExplanation>,
    /// Clusters that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable_clusters: Vec<UnreadableCluster>,
    /// Number of clusters that were not read, because there are more than 20.
    pub more_clusters: usize,
    /// Number of hosts of the infra-env.
    pub host_count: usize,
    /// Number of hosts for which the service returns no validations.
    pub hosts_without_validations: usize,
    /// Statuses that more than 20 hosts have.
    pub statuses: Vec<StatusGroup>,
    /// Validations that fail for more than 20 hosts.
    pub validations: Vec<ValidationGroup>,
    /// Hosts that are not completely described by groups, sorted by name.
    pub hosts: Vec<HostExplanation>,
}

/// A cluster with its failing validations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClusterExplanation {
    /// Id of the cluster in the service.
    pub id: ClusterId,
    /// Name of the cluster.
    pub name: String,
    /// Status of the cluster, such as `insufficient`.
    pub status: String,
    /// Reason for the status, from the service.
    pub status_info: String,
    /// Whether the service returns validations of the cluster.
    pub has_validations: bool,
    /// Failing validations of the cluster itself, in the order of the service.
    pub validations: Vec<FailingValidation>,
}

/// A cluster that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnreadableCluster {
    /// Id of the cluster in the service.
    pub id: ClusterId,
    /// Text of the error.
    pub error: String,
}

/// A host with its failing validations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostExplanation {
    /// Id of the host in the service.
    pub id: HostId,
    /// Requested name of the host, or the id if no name is set.
    pub name: String,
    /// Id of the cluster. Absent if the host does not belong to one.
    pub cluster_id: Option<ClusterId>,
    /// Status of the host, such as `insufficient`.
    pub status: String,
    /// Reason for the status, from the service.
    pub status_info: String,
    /// Failing validations that do not form a group, sorted by id.
    pub validations: Vec<FailingValidation>,
}

/// A validation that does not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailingValidation {
    /// Id of the validation, such as `has-min-memory`.
    pub id: String,
    /// Status of the validation: `failure`, `error`, `pending`, or a status unknown to this version.
    pub status: String,
    /// Message of the service about the validation.
    pub message: String,
    /// Advice for the user. Absent if this version does not know the validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<&'static str>,
}

/// A status that more than 20 hosts have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StatusGroup {
    /// The common status of the hosts.
    pub status: String,
    /// Reason for the status of one of the hosts.
    pub status_info: String,
    /// The hosts with this status.
    #[serde(flatten)]
    pub hosts: HostGroup,
}

/// A validation that fails for more than 20 hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ValidationGroup {
    /// The validation, with the message for one of the hosts.
    #[serde(flatten)]
    pub validation: FailingValidation,
    /// The hosts for which the validation fails.
    #[serde(flatten)]
    pub hosts: HostGroup,
}

/// A group of more than 20 hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostGroup {
    /// Number of hosts in the group.
    pub host_count: usize,
    /// Names of up to five of the hosts.
    pub first_hosts: Vec<String>,
}

/// The reason why an explanation could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplanationError {
    /// The infra-env or its hosts cannot be read.
    #[error("cannot read the hosts of infra-env {infra_env}")]
    Hosts {
        /// Id of the infra-env.
        infra_env: InfraEnvId,
        /// The error of the request.
        source: ClientError,
    },
    /// The `validations_info` of a host is not valid JSON of the expected form.
    #[error("invalid validations_info of host {host}")]
    HostValidations {
        /// Id of the host.
        host: HostId,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
}

/// Reads the hosts of an infra-env and their clusters, and explains their statuses. Works with any Assisted Service.
///
/// # Errors
///
/// Returns an error if the hosts cannot be read. An unreadable cluster is not an error, but a part of the result.
pub async fn explain(client: &ApiClient, infra_env: InfraEnvId) -> Result<Explanation, ExplanationError> {
    let failed = |source| ExplanationError::Hosts { infra_env, source };
    let own_cluster = client.get_infra_env(infra_env).await.map_err(failed)?.cluster_id;
    let mut hosts = HostCollector::default();
    hosts.clusters.extend(own_cluster);
    let mut invalid = None;
    let visit = |host: ListedHost| match hosts.add(host) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            invalid = Some(error);
            ControlFlow::Break(())
        }
    };
    client.visit_hosts(infra_env, visit).await.map_err(failed)?;
    match invalid {
        Some(error) => Err(error),
        None => Ok(hosts.into_explanation(client).await),
    }
}

/// The fields of a host that an explanation needs.
#[derive(Deserialize)]
struct ListedHost {
    id: HostId,
    #[serde(default)]
    requested_hostname: Option<String>,
    #[serde(default)]
    cluster_id: Option<ClusterId>,
    status: String,
    #[serde(default)]
    status_info: Option<String>,
    #[serde(default)]
    validations_info: Option<String>,
}

/// Hosts with the same status or failing validation. Keeps the ids and messages of the first hosts only.
#[derive(Default)]
struct CommonHosts {
    count: usize,
    first: Vec<(HostId, String)>,
}

impl CommonHosts {
    /// Adds a host. Returns `true` if the host is one of the first [`MAX_LISTED`].
    fn add(&mut self, host: HostId, text: &str) -> bool {
        self.count += 1;
        let is_first = self.count <= MAX_LISTED;
        if is_first {
            self.first.push((host, text.to_owned()));
        }
        is_first
    }

    fn is_group(&self) -> bool {
        self.count > MAX_LISTED
    }

    /// Returns the message of the first host.
    fn text(&self) -> String {
        self.first.first().map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

/// Collects hosts while their list is read. Memory grows with the number of statuses, validations and clusters, not
/// with the number of hosts.
#[derive(Default)]
struct HostCollector {
    count: usize,
    without_validations: usize,
    clusters: BTreeSet<ClusterId>,
    /// Hosts by status, with the reasons for the status.
    statuses: BTreeMap<String, CommonHosts>,
    /// Hosts by the id and status of a failing validation, with the messages and the parsed status.
    validations: BTreeMap<(String, String), (Option<ValidationStatus>, CommonHosts)>,
    /// The first hosts of each status and validation.
    hosts: BTreeMap<HostId, HostExplanation>,
}

impl HostCollector {
    fn add(&mut self, host: ListedHost) -> Result<(), ExplanationError> {
        let id = host.id;
        let all = parse_validations(host.validations_info.as_deref().unwrap_or_default())
            .map_err(|source| ExplanationError::HostValidations { host: id, source })?;
        self.count += 1;
        self.without_validations += usize::from(all.is_empty());
        self.clusters.extend(host.cluster_id);
        let status_info = host.status_info.unwrap_or_default();
        let mut is_first = self.statuses.entry(host.status.clone()).or_default().add(id, &status_info);
        for validation in all.into_iter().filter(is_failing) {
            let status = validation.status;
            let (_, hosts) = self
                .validations
                .entry((validation.id, status.to_string()))
                .or_insert_with(|| (status.known(), CommonHosts::default()));
            is_first |= hosts.add(id, &validation.message);
        }
        if is_first {
            let name = host.requested_hostname.filter(|name| !name.is_empty());
            let explanation = HostExplanation {
                id,
                name: name.unwrap_or_else(|| id.to_string()),
                cluster_id: host.cluster_id,
                status: host.status,
                status_info,
                validations: Vec::new(),
            };
            self.hosts.insert(id, explanation);
        }
        Ok(())
    }

    async fn into_explanation(self, client: &ApiClient) -> Explanation {
        let mut explanation = Explanation {
            more_clusters: self.clusters.len().saturating_sub(MAX_CLUSTERS),
            host_count: self.count,
            hosts_without_validations: self.without_validations,
            ..Explanation::default()
        };
        for id in self.clusters.iter().take(MAX_CLUSTERS) {
            match read_cluster(client, *id).await {
                Ok(cluster) => explanation.clusters.push(cluster),
                Err(error) => explanation.unreadable_clusters.push(UnreadableCluster { id: *id, error }),
            }
        }
        self.sort_hosts(&mut explanation);
        explanation
    }

    /// Adds the groups of hosts, and the hosts that are not completely described by groups.
    fn sort_hosts(mut self, explanation: &mut Explanation) {
        let mut listed = BTreeSet::new();
        for (status, hosts) in &self.statuses {
            if hosts.is_group() {
                let (status, status_info) = (status.clone(), hosts.text());
                explanation.statuses.push(StatusGroup { status, status_info, hosts: self.group(hosts) });
            } else {
                listed.extend(hosts.first.iter().map(|(id, _)| *id));
            }
        }
        for ((id, status), (parsed_status, hosts)) in std::mem::take(&mut self.validations) {
            let failing = |message: &str| FailingValidation {
                remedy: parsed_status.and_then(|parsed_status| remedy_of_host(&id, parsed_status, message)),
                id: id.clone(),
                status: status.clone(),
                message: message.to_owned(),
            };
            if hosts.is_group() {
                let validation = failing(&hosts.text());
                explanation.validations.push(ValidationGroup { validation, hosts: self.group(&hosts) });
                continue;
            }
            for (host, message) in &hosts.first {
                listed.insert(*host);
                if let Some(host) = self.hosts.get_mut(host) {
                    host.validations.push(failing(message));
                }
            }
        }
        explanation.hosts = self.hosts.into_values().filter(|host| listed.contains(&host.id)).collect();
        explanation.hosts.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
    }

    fn group(&self, hosts: &CommonHosts) -> HostGroup {
        let names = hosts.first.iter().filter_map(|(id, _)| self.hosts.get(id)).map(|host| host.name.clone());
        let mut first_hosts: Vec<_> = names.collect();
        first_hosts.sort_unstable();
        first_hosts.truncate(GROUP_NAMES);
        HostGroup { host_count: hosts.count, first_hosts }
    }
}

/// Reads a cluster and its failing validations. The error is a text for the explanation.
async fn read_cluster(client: &ApiClient, id: ClusterId) -> Result<ClusterExplanation, String> {
    let cluster = client.get_cluster(id, ClusterHosts::Excluded).await;
    let cluster = cluster.map_err(|error| error_text(&error))?;
    let all = parse_validations(&cluster.validations_info);
    let all = all.map_err(|error| format!("invalid validations_info: {error}"))?;
    let has_validations = !all.is_empty();
    let failing = |Validation { id, status, message }: Validation| FailingValidation {
        remedy: status.known().and_then(|status| remedy_of_cluster(&id, status, &message)),
        id,
        status: status.to_string(),
        message,
    };
    Ok(ClusterExplanation {
        id,
        name: cluster.name,
        status: cluster.status.to_string(),
        status_info: cluster.status_info,
        has_validations,
        validations: all.into_iter().filter(is_failing).map(failing).collect(),
    })
}

/// Parses a `validations_info`, which maps categories to lists of validations. An empty text contains no validations.
fn parse_validations(text: &str) -> Result<Vec<Validation>, serde_json::Error> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    // The list of a category may be null.
    let categories: BTreeMap<String, Option<Vec<Validation>>> = serde_json::from_str(text)?;
    Ok(categories.into_values().flatten().flatten().collect())
}

/// Returns `true` if a validation does not pass. This includes statuses that this version does not know.
fn is_failing(validation: &Validation) -> bool {
    use ValidationStatus::{Disabled, Success};
    !matches!(validation.status.known(), Some(Success | Disabled))
}

impl Explanation {
    /// Returns `true` if the service returns validations, and all of them pass.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        let shows_validations = self.hosts_without_validations < self.host_count
            || self.clusters.iter().any(|it| it.has_validations);
        shows_validations
            && self.unreadable_clusters.is_empty()
            && self.more_clusters == 0
            && self.validations.is_empty()
            && self.hosts.iter().all(|host| host.validations.is_empty())
            && self.clusters.iter().all(|cluster| cluster.validations.is_empty())
    }

    /// Formats the explanation as lines of text. The caller must escape control characters, because the lines contain
    /// texts from agents.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.add_clusters(&mut lines);
        for StatusGroup { status, status_info, hosts } in &self.statuses {
            lines.push(format!("{hosts}: {}", with_reason(status, status_info)));
        }
        for host in &self.hosts {
            lines.push(format!(
                "host {}: {}",
                self.host_name(host),
                with_reason(&host.status, &host.status_info)
            ));
            host.validations.iter().for_each(|validation| validation.add_to(&mut lines));
        }
        for ValidationGroup { validation: FailingValidation { id, status, message, remedy }, hosts } in
            &self.validations
        {
            lines.push(format!("{id} ({status}) of {hosts}: {message}"));
            lines.extend(remedy.map(|remedy| format!("  remedy: {remedy}")));
        }
        if self.host_count == 0 {
            lines.push("the infra-env has no hosts".to_owned());
        }
        if self.hosts_without_validations > 0 {
            lines.push(format!("hosts without validations: {}", self.hosts_without_validations));
        }
        if self.is_passing() {
            lines.push("all validations pass".to_owned());
        }
        lines
    }

    fn add_clusters(&self, lines: &mut Vec<String>) {
        for cluster in &self.clusters {
            let ClusterExplanation { id, name, status, status_info, .. } = cluster;
            lines.push(format!("cluster {name} ({id}): {}", with_reason(status, status_info)));
            if !cluster.has_validations {
                lines.push("  the server shows no validations of the cluster".to_owned());
            }
            cluster.validations.iter().for_each(|validation| validation.add_to(lines));
        }
        for UnreadableCluster { id, error } in &self.unreadable_clusters {
            lines.push(format!("cluster {id}: cannot be read: {error}"));
        }
        if self.more_clusters > 0 {
            lines.push(format!("and {} more clusters", self.more_clusters));
        }
    }

    /// Formats the name of a host and the name of the cluster.
    fn host_name(&self, host: &HostExplanation) -> String {
        let Some(id) = host.cluster_id else { return format!("{} (no cluster)", host.name) };
        let cluster = self.clusters.iter().find(|cluster| cluster.id == id);
        let cluster = cluster.map_or_else(|| id.to_string(), |cluster| cluster.name.clone());
        format!("{} (cluster {cluster})", host.name)
    }
}

impl FailingValidation {
    fn add_to(&self, lines: &mut Vec<String>) {
        let Self { id, status, message, remedy } = self;
        lines.push(format!("  {id} ({status}): {message}"));
        lines.extend(remedy.map(|remedy| format!("    remedy: {remedy}")));
    }
}

/// Formats the number of hosts and some names.
impl fmt::Display for HostGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hosts ({}, ...)", self.host_count, self.first_hosts.join(", "))
    }
}

fn with_reason(status: &str, reason: &str) -> String {
    if reason.is_empty() { status.to_owned() } else { format!("{status}: {reason}") }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::Json;
    use axum::routing::get;
    use axum::{Router, extract::Path};
    use serde_json::{Value, json};

    use super::*;

    const INFRA_ENV: &str = "4f630ba3-0297-4d99-a7c7-f62e7bca1332";
    const CLUSTER: &str = "b5b8d2d1-6f4b-4f29-8d0a-0e9f5c1f2a33";
    const API: &str = "/api/assisted-install/v2";
    const READY: &str = "Host is ready to be installed";

    fn validation(id: &str, status: &str, message: &str) -> Value {
        json!({"id": id, "status": status, "message": message})
    }

    fn passing() -> Value {
        json!({"hardware": [validation("has-inventory", "success", "Valid inventory exists for the host")]})
    }

    fn host(name: &str, status: &str, status_info: &str, validations: &Value) -> Value {
        json!({
            "id": HostId::fresh(), "requested_hostname": name, "status": status, "status_info": status_info,
            "validations_info": validations.to_string(),
        })
    }

    fn cluster(validations: &Value) -> Value {
        json!({
            "kind": "Cluster", "id": CLUSTER, "name": "edge", "status": "insufficient",
            "status_info": "Cluster is not ready for install", "validations_info": validations.to_string(),
        })
    }

    /// Returns the explanation for a service with these hosts and clusters. The service refuses requests for other
    /// clusters.
    async fn explained(hosts: Vec<Value>, clusters: Vec<Value>) -> Result<Explanation, ExplanationError> {
        let infra_env =
            json!({"id": INFRA_ENV, "kind": "InfraEnv", "href": "", "name": "x", "type": "full-iso"});
        let read = async move |Path(id): Path<String>| {
            let cluster = clusters.into_iter().find(|cluster| cluster["id"] == id);
            cluster.map(Json).ok_or((StatusCode::FORBIDDEN, "no access"))
        };
        let service = Router::new()
            .route(&format!("{API}/infra-envs/{INFRA_ENV}"), get(async move || Json(infra_env)))
            .route(&format!("{API}/infra-envs/{INFRA_ENV}/hosts"), get(async move || Json(hosts)))
            .route(&format!("{API}/clusters/{{id}}"), get(read));
        explain(&ApiClient::over(None, service).unwrap(), INFRA_ENV.parse().unwrap()).await
    }

    #[tokio::test]
    async fn failing_validations_are_listed_with_messages_and_remedies() {
        let message = "Require at least 8.00 GiB RAM for at least one role, found only 4.00 GiB";
        let validations = json!({
            "hardware": [
                validation("has-min-memory", "failure", message),
                validation("has-min-cpu-cores", "success", "Sufficient CPU cores"),
            ],
            "network": [
                validation("mtu-valid", "pending", "Missing inventory"),
                validation("ntp-synced", "disabled", "Validation disabled by configuration"),
            ],
            "operators": null,
        });
        let hosts = vec![
            host(
                "worker-1",
                "insufficient",
                "Host does not meet the minimum hardware requirements",
                &validations,
            ),
            host("master-1", "known-unbound", READY, &passing()),
        ];
        let explanation = explained(hosts, vec![]).await.unwrap();
        let expected = [
            "host master-1 (no cluster): known-unbound: Host is ready to be installed",
            "host worker-1 (no cluster): insufficient: Host does not meet the minimum hardware requirements",
            &format!("  has-min-memory (failure): {message}"),
            "    remedy: Use a machine with more memory, or add memory to the virtual machine.",
            // A validation that this version does not know, so there is no remedy.
            "  mtu-valid (pending): Missing inventory",
        ];
        assert_eq!(explanation.lines(), expected);
        assert!(!explanation.is_passing());
        let json = json!(explanation.hosts[1].validations);
        assert_eq!((&json[0]["id"], &json[0]["status"]), (&json!("has-min-memory"), &json!("failure")));
        assert!(json[0]["remedy"].is_string() && json[1].get("remedy").is_none(), "{json}");
    }

    #[tokio::test]
    async fn cluster_of_hosts_is_listed_with_its_validations() {
        let mut bound = host("master-1", "known", READY, &passing());
        bound["cluster_id"] = json!(CLUSTER);
        let message = "API virtual IPs are undefined and must be provided.";
        let validations = json!({
            "configuration": [validation("pull-secret-set", "success", "The pull secret is set.")],
            "network": [validation("api-vips-defined", "failure", message)],
        });
        let explanation = explained(vec![bound], vec![cluster(&validations)]).await.unwrap();
        let expected = [
            &format!("cluster edge ({CLUSTER}): insufficient: Cluster is not ready for install"),
            &format!("  api-vips-defined (failure): {message}"),
            "    remedy: Set a virtual IP address: an unused one in a network of the hosts.",
            "host master-1 (cluster edge): known: Host is ready to be installed",
        ];
        assert_eq!(explanation.lines(), expected);
    }

    #[tokio::test]
    async fn passing_validations_are_one_line() {
        let hosts = vec![host("", "known-unbound", READY, &passing())];
        let id = hosts[0]["id"].as_str().unwrap().to_owned();
        let explanation = explained(hosts, vec![]).await.unwrap();
        let expected = [&format!("host {id} (no cluster): known-unbound: {READY}"), "all validations pass"];
        assert_eq!(explanation.lines(), expected);
    }

    #[tokio::test]
    async fn hosts_without_validations_do_not_pass() {
        let hosts = vec![host("a", "discovering-unbound", "Waiting", &json!({}))];
        let explanation = explained(hosts, vec![]).await.unwrap();
        let expected = ["host a (no cluster): discovering-unbound: Waiting", "hosts without validations: 1"];
        assert_eq!(explanation.lines(), expected);
        assert_eq!(explained(vec![], vec![]).await.unwrap().lines(), ["the infra-env has no hosts"]);
    }

    #[tokio::test]
    async fn refused_cluster_is_reported_and_hosts_are_explained() {
        let mut bound = host("a", "known", READY, &passing());
        bound["cluster_id"] = json!(CLUSTER);
        let explanation = explained(vec![bound], vec![]).await.unwrap();
        let lines = explanation.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with(&format!("cluster {CLUSTER}: cannot be read: ")), "{lines:?}");
        assert!(lines[0].contains("403"), "{lines:?}");
        assert!(!explanation.is_passing());
    }

    #[tokio::test]
    async fn many_hosts_with_the_same_failure_are_one_group() {
        let failing = |message: &str| json!({"hardware": [validation("has-min-memory", "failure", message)]});
        let number = MAX_LISTED + 80;
        let mut hosts: Vec<_> = (0..number)
            .map(|number| {
                let message = format!("Require at least 8.00 GiB, found only {number} GiB");
                host(&format!("worker-{number:03}"), "insufficient", "Too small", &failing(&message))
            })
            .collect();
        let unnamed = json!({"hardware": [validation("hostname-valid", "failure", "The host name localhost is forbidden")]});
        hosts.push(host("localhost", "insufficient", "Too small", &unnamed));
        let explanation = explained(hosts, vec![]).await.unwrap();
        let names = "worker-000, worker-001, worker-002, worker-003, worker-004, ...";
        let expected = [
            &format!("{} hosts ({names}): insufficient: Too small", number + 1),
            "host localhost (no cluster): insufficient: Too small",
            "  hostname-valid (failure): The host name localhost is forbidden",
            "    remedy: Set another name of the host: lower-case letters, digits, hyphens and dots.",
            &format!(
                "has-min-memory (failure) of {number} hosts ({names}): Require at least 8.00 GiB, found only 0 GiB"
            ),
            "  remedy: Use a machine with more memory, or add memory to the virtual machine.",
        ];
        assert_eq!(explanation.lines(), expected);
        let json = json!(explanation);
        assert_eq!(
            (&json["validations"][0]["id"], &json["validations"][0]["host_count"]),
            (&json!("has-min-memory"), &json!(number))
        );
    }

    #[tokio::test]
    async fn invalid_validations_are_an_error() {
        let error = explained(vec![host("a", "known", READY, &json!("x"))], vec![]).await.unwrap_err();
        assert!(error.to_string().starts_with("invalid validations_info of host "), "{error}");
        let lines = explained(vec![], vec![cluster(&json!({}))]).await.unwrap().lines();
        assert_eq!(lines, ["the infra-env has no hosts"]);
    }
}
