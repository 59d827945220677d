//! Starts the programs of the hub, and waits until they are ready.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::Api;
use tokio::time::{Instant, sleep};

use super::certificates::Certificates;
use super::connection::Connection;
use super::processes::{Program, free_ports};
use super::users;

/// Maximum duration of the start. It takes three seconds on an idle machine.
const START_LIMIT: Duration = Duration::from_secs(180);
/// Maximum number of attempts. Each attempt uses new ports, because another process may have taken a port.
const ATTEMPTS: usize = 5;

/// The audit policy. Requests by Kubernetes components are not logged. A request has one entry: after its response, or
/// at the start of a watch.
const AUDIT_POLICY: &str = r#"{
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver", "system:kube-controller-manager", "hub-probe"]},
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata"}
    ]
}"#;

/// The running programs of a hub.
#[derive(Debug)]
pub(super) struct RunningHub {
    pub(super) folder: PathBuf,
    pub(super) address: SocketAddr,
    pub(super) certificates: Certificates,
    pub(super) programs: Vec<Program>,
}

/// Starts the programs in the folder `programs`. Waits until they are ready.
pub(super) async fn start(programs: &Path) -> RunningHub {
    for _ in 1..ATTEMPTS {
        match try_start(programs).await {
            Ok(hub) => return hub,
            Err(log) if log.contains("address already in use") => {}
            Err(log) => panic!("the hub does not start: {log}"),
        }
    }
    try_start(programs).await.unwrap_or_else(|log| panic!("the hub does not start: {log}"))
}

/// Starts the hub once. If that fails, returns the log of a program that has exited.
async fn try_start(programs: &Path) -> Result<RunningHub, String> {
    // The guards of the programs remove this folder.
    let folder = tempfile::Builder::new().prefix("kindling-hub-").tempdir().unwrap().keep();
    let [client_port, peer_port, port] = free_ports();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let certificates = Certificates::create(&folder);
    fs::write(folder.join("tokens.csv"), users::token_file()).unwrap();
    fs::write(folder.join("audit.json"), AUDIT_POLICY).unwrap();
    let connection = |user: &str| Connection {
        server: format!("https://{address}"),
        authority: certificates.authority.clone(),
        token: users::token_of(user),
    };
    let manager = connection("system:kube-controller-manager").kubeconfig(&folder.join("ca.pem"), "default");
    fs::write(folder.join("manager.kubeconfig"), manager).unwrap();

    let mut started = vec![
        Program::start("etcd", programs, &folder, &etcd_arguments(&folder, client_port, peer_port)),
        Program::start("kube-apiserver", programs, &folder, &server_arguments(&folder, client_port, port)),
    ];
    let probe = connection("hub-probe").client();
    let deadline = Instant::now() + START_LIMIT;
    while !is_ready(&probe).await {
        check_progress(&mut started, deadline)?;
        sleep(Duration::from_millis(50)).await;
    }
    // kube-controller-manager exits if the server is not ready within a few seconds, so it starts last.
    started.push(Program::start("kube-controller-manager", programs, &folder, &manager_arguments(&folder)));
    let accounts: Api<ServiceAccount> = Api::namespaced(probe, "default");
    while !matches!(accounts.get_opt("default").await, Ok(Some(_))) {
        check_progress(&mut started, deadline)?;
        sleep(Duration::from_millis(50)).await;
    }
    Ok(RunningHub { folder, address, certificates, programs: started })
}

async fn is_ready(probe: &kube::Client) -> bool {
    let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
    probe.request_text(request).await.is_ok()
}

fn check_progress(programs: &mut [Program], deadline: Instant) -> Result<(), String> {
    if let Some(log) = programs.iter_mut().find_map(Program::log_of_ended) {
        return Err(log);
    }
    if Instant::now() < deadline {
        return Ok(());
    }
    Err(programs.iter().map(Program::log_tail).collect())
}

fn etcd_arguments(folder: &Path, client_port: u16, peer_port: u16) -> Vec<String> {
    let client = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".to_owned(),
    ]
}

fn server_arguments(folder: &Path, etcd_port: u16, port: u16) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        // Without these two flags, the server requires a machine address other than loopback.
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--cert-dir={}", folder.display()),
        format!("--tls-cert-file={}", file("server.pem")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file("ca.pem")),
        format!("--token-auth-file={}", file("tokens.csv")),
        format!("--service-account-key-file={}", file("service-accounts.pub")),
        format!("--service-account-signing-key-file={}", file("service-accounts.key")),
        "--service-account-issuer=https://hub.test".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        // OpenShift enables this plugin too.
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".to_owned(),
        format!("--audit-policy-file={}", file("audit.json")),
        format!("--audit-log-path={}", file("audit.log")),
        // The maximum size of the audit log in megabytes. It is large, so that the log is never split into several
        // files.
        "--audit-log-maxsize=10000".to_owned(),
    ]
}

fn manager_arguments(folder: &Path) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--kubeconfig={}", file("manager.kubeconfig")),
        format!("--service-account-private-key-file={}", file("service-accounts.key")),
        format!("--root-ca-file={}", file("ca.pem")),
        format!("--cluster-signing-cert-file={}", file("ca.pem")),
        format!("--cluster-signing-key-file={}", file("ca.key")),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ]
}
