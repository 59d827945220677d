//! `kindling serve` as a process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use reqwest::Client;
use serde_json::Value;

use crate::server::{get_image, get_response};
use crate::support::{Scratch, private_memory};

/// A server in its own scratch folder.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) base: String,
    pub(crate) client: Client,
    log: Arc<Mutex<String>>,
}

impl ServerProcess {
    /// Starts a server with environment variables, and waits until it listens.
    pub(crate) fn start(scratch: &Scratch, address: &str, variables: &[(&str, &str)]) -> Self {
        let run = scratch.command(["serve", "--listen", address]);
        let run = variables.iter().fold(run, |run, (name, value)| run.env(name, value));
        let mut child =
            run.command().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::<Mutex<String>>::default();
        let (stderr, lines) = (child.stderr.take().unwrap(), Arc::clone(&log));
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                let mut log = lines.lock().unwrap();
                log.push_str(&line.unwrap());
                log.push('\n');
            }
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let base = line.trim().strip_prefix("listening on ").map(str::to_owned);
        let base = base.unwrap_or_else(|| panic!("{}", log.lock().unwrap()));
        Self { child, base: base.replace("0.0.0.0", "127.0.0.1"), client: Client::new(), log }
    }

    pub(crate) fn private_memory(&self) -> u64 {
        private_memory(self.child.id())
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        get_response(&self.client, &format!("{}{path}", self.base), &[]).await
    }

    pub(crate) async fn image(&self, path: &str) -> (Vec<u8>, String) {
        get_image(&self.client, &format!("{}{path}", self.base)).await
    }

    /// Returns the status and the body of the health check.
    pub(crate) async fn health(&self) -> (u16, Value) {
        let response = self.get("/health").await;
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Waits until the health check fulfils a condition.
    pub(crate) async fn wait_for_health(&self, is_wanted: impl Fn(u16, &Value) -> bool) -> Value {
        for _ in 0..3000 {
            let (status, report) = self.health().await;
            if is_wanted(status, &report) {
                return report;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}\n{}", self.health().await, self.log());
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
