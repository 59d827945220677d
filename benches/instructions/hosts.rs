//! Requests of an agent: for steps, and with an inventory report of 43 KiB.

use std::path::Path;
use std::sync::Arc;

use agent::simulated::SimulatedSite;
use axum::http::Method;
use serde_json::{Value, json};

use super::operations::Ready;
use super::service::{INFRA_ENVS, Service, id};

/// The usable memory in the report of a new host. Other reports contain another number with the same number of digits.
const MEMORY: u64 = 300_000_000_000;

/// A host that has sent its report.
struct ReadyHost {
    service: Service,
    /// API path of the host's steps.
    steps: String,
    /// The reply with the report, before and after the usable memory.
    reply: (String, String),
}

impl ReadyHost {
    fn register(folder: &Path) -> Self {
        let service = Service::open(folder);
        let disks: Vec<Value> =
            (0..92).map(|number| json!({"name": format!("sd{number}"), "size_gb": 480})).collect();
        let interfaces: Vec<Value> = (1..=16).map(|number| json!({"name": format!("eno{number}")})).collect();
        let profile = json!({"groups": [{"name": "large", "disks": disks, "interfaces": interfaces}]});
        let site = Arc::new(SimulatedSite::new(serde_json::from_value(profile).unwrap(), 1, 1).unwrap());
        let machine = site.machines().next().unwrap();
        let hosts = format!("{INFRA_ENVS}/{}/hosts", id(folder));
        let body = json!({"host_id": machine.id().to_string(), "discovery_agent_version": "agent:1"});
        service.ask(Method::POST, &hosts, Some(&body.to_string()), 201);
        let mut report = serde_json::to_value(machine.inventory_report()).unwrap();
        report["memory"]["usable_bytes"] = MEMORY.into();
        let report = report.to_string();
        assert!((43_000..46_000).contains(&report.len()), "{}", report.len());
        let reply = json!({
            "step_type": "inventory", "step_id": "inventory-1", "exit_code": 0, "output": report,
        });
        let reply = reply.to_string();
        let (before, after) = reply.split_once(&MEMORY.to_string()).unwrap();
        let reply = (before.to_owned(), after.to_owned());
        let host = Self { service, steps: format!("{hosts}/{}/instructions", machine.id()), reply };
        host.report(MEMORY);
        host
    }

    fn report(&self, memory: u64) {
        let (before, after) = &self.reply;
        self.service.ask(Method::POST, &self.steps, Some(&format!("{before}{memory}{after}")), 204);
    }
}

pub(crate) fn steps(folder: &Path) -> Ready {
    let host = ReadyHost::register(folder);
    Box::new(move || assert!(!host.service.get(&host.steps, 200).is_empty()))
}

pub(crate) fn unchanged_report(folder: &Path) -> Ready {
    let host = ReadyHost::register(folder);
    Box::new(move || host.report(MEMORY))
}

pub(crate) fn changed_report(folder: &Path) -> Ready {
    let host = ReadyHost::register(folder);
    let mut memory = MEMORY;
    Box::new(move || {
        memory += 1;
        host.report(memory);
    })
}
