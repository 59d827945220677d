//! A simulated machine that talks to the inventory like an agent.

#![allow(dead_code, reason = "no test program needs all of it")]

use axum::body::{Body, to_bytes};
use http::{Method, Request, StatusCode};
use inventory::Inventory;
use inventory::id::{HostId, HostKey, InfraEnvId};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// A machine that has booted the image of an infra-env.
pub(crate) struct Machine {
    pub(crate) key: HostKey,
    pub(crate) inventory: Inventory,
}

impl Machine {
    /// Boots a machine and registers it.
    pub(crate) async fn boot(inventory: &Inventory, infra_env_id: InfraEnvId, host_id: HostId) -> Self {
        let machine = Self { key: HostKey { infra_env_id, host_id }, inventory: inventory.clone() };
        let body = json!({"host_id": host_id, "discovery_agent_version": "agent:1"});
        let status = machine.send(Method::POST, "hosts", &body).await;
        assert_eq!(status, StatusCode::CREATED);
        machine
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> StatusCode {
        let uri = format!("/api/assisted-install/v2/infra-envs/{}/{path}", self.key.infra_env_id);
        let request = Request::builder().method(method).uri(uri).header("Content-Type", "application/json");
        let request = request.body(Body::from(body.to_string())).unwrap();
        let response = self.inventory.router().oneshot(request).await.unwrap();
        let status = response.status();
        to_bytes(response.into_body(), usize::MAX).await.unwrap();
        status
    }

    pub(crate) async fn reply(&self, step: &str, output: &Value) {
        let path = format!("hosts/{}/instructions", self.key.host_id);
        let body = json!({"step_type": step, "step_id": format!("{step}-1"), "exit_code": 0,
            "output": output.to_string()});
        let status = self.send(Method::POST, &path, &body).await;
        assert!(status.is_success(), "{step}: {status}");
    }

    /// Polls for steps.
    pub(crate) async fn poll(&self) -> StatusCode {
        self.send(Method::GET, &format!("hosts/{}/instructions", self.key.host_id), &json!({})).await
    }

    /// Sends an inventory report. On real machines, `usable_memory` differs between reports.
    pub(crate) async fn report(&self, usable_memory: u64) {
        let number = self.key.host_id.to_string();
        let mac = format!("52:54:00:{}:{}:{}", &number[0..2], &number[2..4], &number[4..6]);
        let report = json!({
            "hostname": format!("node-{}", &number[0..8]),
            "cpu": {"count": 8, "architecture": "x86_64", "flags": ["vmx"], "frequency": 2400.5, "model_name": "CPU"},
            "memory": {"physical_bytes": 34_359_738_368_u64, "usable_bytes": usable_memory},
            "disks": [
                {"id": "disk-a", "by_path": "/dev/disk/by-path/a", "path": "/dev/sda", "name": "sda",
                    "drive_type": "SSD", "size_bytes": 128_849_018_880_u64, "hctl": "0:0:0:0"},
                {"id": "disk-b", "by_path": "/dev/disk/by-path/b", "path": "/dev/sdb", "name": "sdb",
                    "drive_type": "HDD", "size_bytes": 128_849_018_880_u64, "hctl": "0:0:0:1"},
            ],
            "interfaces": [{"name": "eth0", "type": "physical", "mac_address": mac,
                "ipv4_addresses": ["192.0.2.11/24"]}],
            "routes": [{"interface": "eth0", "gateway": "192.0.2.1", "destination": "0.0.0.0", "family": 2}],
            "system_vendor": {"manufacturer": "Red Hat", "product_name": "KVM", "serial_number": "1", "virtual": true},
            "boot": {"current_boot_mode": "uefi"},
        });
        self.reply("inventory", &report).await;
    }

    /// Reports that the clock is synchronized.
    pub(crate) async fn synchronize_clock(&self) {
        let sources = json!({"ntp_sources": [{"source_name": "ntp.example.com", "source_state": "synced"}]});
        self.reply("ntp-synchronizer", &sources).await;
    }
}
