//! Simulated hosts and the requests of their agents: registration, check-ins, replies to steps.
//!
//! An agent replies to every step that it receives. A real agent omits a reply that it has sent within the last hour,
//! so these agents cost the server more.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::hardware::{ReportSize, ReportTemplate};
use crate::client::{Connection, Target, begin_get, write_post};
use crate::exchange::ExpectedResponse;
use crate::infra_env::API;
use crate::random::Random;

#[derive(Debug, Clone)]
pub(crate) struct SimulatedHost {
    /// API path of the host.
    path: String,
    id: String,
    infra_env: String,
    /// Number of the host. Its hardware addresses and serial numbers are derived from this number.
    number: u32,
}

impl SimulatedHost {
    pub(crate) fn new(infra_env: &str, number: u32) -> Self {
        let id = uuid(u64::from(number));
        Self { path: format!("{API}/{infra_env}/hosts/{id}"), id, infra_env: infra_env.to_owned(), number }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

fn uuid(number: u64) -> String {
    let mut random = Random::new(number);
    let (high, low) = (random.next(), random.next());
    let [first, second, third] = [high >> 32, high >> 16 & 0xffff, high & 0xfff];
    let [fourth, fifth] = [low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff];
    format!("{first:08x}-{second:04x}-4{third:03x}-{fourth:04x}-{fifth:012x}")
}

/// Hosts with reports of one length. Several servers may have these hosts in their inventories.
#[derive(Debug, Clone)]
pub(crate) struct AgentFleet {
    pub(crate) hosts: Vec<SimulatedHost>,
    report: ReportTemplate,
    /// The agent container image that the service expects.
    version: String,
}

#[derive(Debug, Deserialize)]
struct HandedOutSteps {
    post_step_action: String,
    instructions: Option<Vec<HandedOutStep>>,
}

#[derive(Debug, Deserialize)]
struct HandedOutStep {
    step_type: String,
    step_id: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CheckInResult {
    /// Number of replies sent.
    pub(crate) replies: u64,
    /// Type of a step to which these agents have no reply.
    pub(crate) unanswered: Option<String>,
}

impl AgentFleet {
    /// Prepares hosts without registering them.
    ///
    /// # Errors
    ///
    /// Returns an error if no report has that length.
    pub(crate) fn new(hosts: Vec<SimulatedHost>, report: ReportSize) -> Result<Self> {
        Ok(Self { hosts, report: ReportTemplate::new(report)?, version: String::new() })
    }

    /// Registers the first host, and takes over the container image that its agent should have.
    ///
    /// # Errors
    ///
    /// Returns an error if the server refuses.
    pub(crate) fn learn_version(&mut self, connection: &mut Connection, target: &Target) -> Result<()> {
        let host = self.hosts.first().context("the fleet has no hosts")?;
        let answer = self.register(connection, target, host)?;
        let answer: Value = serde_json::from_slice(&answer).context("the response to a registration")?;
        let command = answer.pointer("/next_step_runner_command/args/0").and_then(Value::as_str);
        let command: Value = serde_json::from_str(command.context("a registration without a command")?)?;
        let version = command.get("agent_version").and_then(Value::as_str);
        version.context("a command without agent_version")?.clone_into(&mut self.version);
        Ok(())
    }

    /// # Errors
    ///
    /// Returns an error if the server refuses.
    pub(crate) fn register(
        &self,
        connection: &mut Connection,
        target: &Target,
        host: &SimulatedHost,
    ) -> Result<Vec<u8>> {
        let body = json!({"host_id": host.id, "discovery_agent_version": self.version}).to_string();
        let target = target.at(&format!("{API}/{}/hosts", host.infra_env));
        let mut request = Vec::new();
        write_post(&mut request, &target, &self.header(), body.as_bytes());
        connection.fetch(&request, ExpectedResponse::Status(201)).context("registering a host")
    }

    /// Requests the steps of a host and replies to each.
    ///
    /// # Errors
    ///
    /// Returns an error if the server refuses.
    pub(crate) fn check_in(
        &self,
        connection: &mut Connection,
        target: &Target,
        host: &SimulatedHost,
    ) -> Result<CheckInResult> {
        let mut done = CheckInResult::default();
        for step in self.steps(connection, target, host)? {
            let HandedOutStep { step_type, step_id } = step;
            if step_type == "inventory" {
                self.report(connection, target, (host, 0, &step_id))?;
            } else if let Some(output) = output(&step_type) {
                let body =
                    json!({"step_type": step_type, "step_id": step_id, "exit_code": 0, "output": output});
                self.reply(connection, target, (host, &body.to_string()))?;
            } else {
                done.unanswered = Some(step_type);
                continue;
            }
            done.replies += 1;
        }
        Ok(done)
    }

    /// Requests the steps of a host without replying, and returns the number of steps.
    ///
    /// # Errors
    ///
    /// Returns an error if the server refuses.
    pub(crate) fn ask(
        &self,
        connection: &mut Connection,
        target: &Target,
        host: &SimulatedHost,
    ) -> Result<usize> {
        Ok(self.steps(connection, target, host)?.len())
    }

    fn steps(
        &self,
        connection: &mut Connection,
        target: &Target,
        host: &SimulatedHost,
    ) -> Result<Vec<HandedOutStep>> {
        let now = chrono::Utc::now().timestamp();
        let mut request = Vec::new();
        begin_get(&mut request, &target.at(&format!("{}/instructions?timestamp={now}", host.path)));
        request.extend_from_slice(self.header().as_bytes());
        request.extend_from_slice(b"\r\n");
        let answer = connection.fetch(&request, ExpectedResponse::Status(200)).context("asking for steps")?;
        let steps: HandedOutSteps = serde_json::from_slice(&answer).context("the steps of a host")?;
        ensure!(steps.post_step_action == "continue", "the agent must {}", steps.post_step_action);
        Ok(steps.instructions.unwrap_or_default())
    }

    /// Sends a version of the host's inventory report.
    ///
    /// # Errors
    ///
    /// Returns an error if the server refuses.
    pub(crate) fn report(
        &self,
        connection: &mut Connection,
        target: &Target,
        (host, version, step_id): (&SimulatedHost, u64, &str),
    ) -> Result<()> {
        let mut body = format!(r#"{{"step_type":"inventory","step_id":{},"output":"#, Value::from(step_id));
        self.report.write(&mut body, host.number, version)?;
        body.push_str(r#","exit_code":0}"#);
        self.reply(connection, target, (host, &body))
    }

    fn reply(
        &self,
        connection: &mut Connection,
        target: &Target,
        (host, body): (&SimulatedHost, &str),
    ) -> Result<()> {
        let mut request = Vec::new();
        let target = target.at(&format!("{}/instructions", host.path));
        write_post(&mut request, &target, &self.header(), body.as_bytes());
        connection.fetch(&request, ExpectedResponse::Status(204)).context("replying to a step")?;
        Ok(())
    }

    fn header(&self) -> String {
        format!("discovery_agent_version: {}\r\n", self.version)
    }
}

/// Returns the usual output of a step, which is the same at each check-in; `None` if it depends on other hosts.
fn output(step_type: &str) -> Option<String> {
    let output = match step_type {
        "ntp-synchronizer" => json!({"ntp_sources": [
            {"source_name": "ntp.example.com", "source_state": "synced"},
            {"source_name": "10.0.0.1", "source_state": "combined"},
        ]}),
        "tang-connectivity-check" => json!({"is_success": true, "tang_server_response": null}),
        "free-network-addresses" => {
            json!([{"network": "11.0.0.0/8", "free_addresses": ["11.0.0.5", "11.0.0.6"]}])
        }
        _ => return None,
    };
    Some(output.to_string())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn host_ids_are_distinct_uuids() {
        let ids: BTreeSet<String> = (0..10_000).map(uuid).collect();
        assert_eq!(ids.len(), 10_000);
        for id in ids {
            let lengths: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
            assert!(id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-')), "{id}");
            assert_eq!(id.as_bytes()[14], b'4');
        }
    }

    #[test]
    fn simulated_agents_reply_only_to_implemented_steps() {
        assert!(output("ntp-synchronizer").unwrap().contains("synced"));
        assert_eq!(output("connectivity-check"), None);
    }
}
