//! Logs: upload and download.

use bytes::Bytes;
use futures_util::stream;
use kindling::inventory::files::FilePath;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uuid::Uuid;

use crate::agent::{FakeAgent, create_infra_env, inventory_report};
use crate::service::{PULL_SECRET, ServiceAnswer, TestService, on_each_database, send_request};

/// Maximum size of logs.
const MAX_LOGS: usize = 262_144_000;

async fn create_cluster(service: &TestService) -> String {
    let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
    service.post("/v2/clusters", &body).await.json_with_status(201)["id"].as_str().unwrap().to_owned()
}

/// Creates a cluster, and registers a host in a new infra-env of the cluster.
async fn cluster_with_host(service: &TestService) -> (String, FakeAgent<'_>) {
    let cluster = create_cluster(service).await;
    let agent = FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": cluster})).await);
    agent.register().await.json_with_status(201);
    (cluster, agent)
}

async fn upload_logs(service: &TestService, cluster: &str, query: &str, form: Form) -> ServiceAnswer {
    let request = service.request(Method::POST, &format!("/v2/clusters/{cluster}/logs?{query}"));
    send_request(request.multipart(form)).await
}

fn log_form(content: &[u8]) -> Form {
    Form::new().part("upfile", Part::bytes(content.to_vec()).file_name("logs.tar.gz"))
}

/// Returns a form with a file of `len` bytes, which is generated while it is sent.
fn generated_log_form(len: usize) -> Form {
    const PIECE: usize = 1 << 20;
    let pieces = (0..len.div_ceil(PIECE)).map(move |index| {
        let len = PIECE.min(len - index * PIECE);
        Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; len]))
    });
    Form::new().part("upfile", Part::stream(Body::wrap_stream(stream::iter(pieces))).file_name("logs.tar.gz"))
}

async fn download_logs(service: &TestService, cluster: &str, query: &str) -> ServiceAnswer {
    service.get(&format!("/v2/clusters/{cluster}/logs?{query}")).await
}

/// Returns the files of an archive: names and contents.
fn untar(mut archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    while archive[0] != 0 {
        let (header, rest) = archive.split_at(512);
        let text = |range: std::ops::Range<usize>| {
            String::from_utf8(header[range].iter().copied().take_while(|byte| *byte != 0).collect()).unwrap()
        };
        let stored = u32::from_str_radix(text(148..156).trim(), 8).unwrap();
        let sum: u32 = header
            .iter()
            .enumerate()
            .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) })
            .sum();
        assert_eq!(stored, sum);
        let len = usize::from_str_radix(&text(124..136), 8).unwrap();
        files.push((text(0..100), rest[..len].to_vec()));
        archive = &rest[len.next_multiple_of(512)..];
    }
    assert_eq!(archive, [0; 1024]);
    files
}

#[test]
fn host_logs_are_stored_and_downloaded() {
    on_each_database(async |service| {
        let (cluster, agent) = cluster_with_host(service).await;
        let of_host = format!("logs_type=host&infra_env_id={}&host_id={}", agent.infra_env, agent.id);
        download_logs(service, &cluster, &of_host).await.refusal_reason(409);
        let answer = upload_logs(service, &cluster, &of_host, log_form(b"first\x1f\x8b\0")).await;
        assert_eq!((answer.status, answer.text.as_str()), (204, ""));
        let collected = agent.get_host().await["logs_collected_at"].clone();
        assert!(collected.as_str().unwrap().starts_with("20"), "{collected}");
        for query in [of_host.as_str(), &format!("host_id={}", agent.id)] {
            let answer = download_logs(service, &cluster, query).await;
            assert_eq!((answer.status, answer.text.as_str()), (200, "first\x1f\u{fffd}\0"));
            assert_eq!(answer.header("content-length"), Some("8"));
            assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
            let name = format!("attachment; filename=\"demo_{0}_{0}.tar.gz\"", agent.id);
            assert_eq!(answer.header("content-disposition"), Some(name.as_str()));
        }
        let without = format!("logs_type=host&host_id={}", agent.id);
        upload_logs(service, &cluster, &without, log_form(b"second")).await.json_with_status(204);
        assert_eq!(download_logs(service, &cluster, &of_host).await.text, "second");
        let events = service.get(&format!("/v2/events?host_ids={}", agent.id)).await.json_with_status(200);
        let uploads: Vec<_> =
            events.as_array().unwrap().iter().filter(|it| it["name"] == "host_logs_uploaded").collect();
        assert_eq!(uploads.len(), 2);
        assert_eq!(uploads[0]["message"], format!("Uploaded logs for host {} cluster {cluster}", agent.id));
    });
}

#[test]
fn cluster_logs_are_downloaded_as_an_archive() {
    on_each_database(async |service| {
        let (cluster, one) = cluster_with_host(service).await;
        download_logs(service, &cluster, "").await.refusal_reason(409);
        download_logs(service, &cluster, "logs_type=controller").await.refusal_reason(409);
        let other = FakeAgent::new(service, &one.infra_env);
        let silent = FakeAgent::new(service, &one.infra_env);
        other.register().await.json_with_status(201);
        silent.register().await.json_with_status(201);
        service.patch(&other.path(), &json!({"host_name": "a.example.com"})).await.json_with_status(201);
        let long = "x".repeat(5000);
        for (agent, content) in [(&one, ""), (&other, long.as_str())] {
            let query = format!("logs_type=host&infra_env_id={}&host_id={}", agent.infra_env, agent.id);
            upload_logs(service, &cluster, &query, log_form(content.as_bytes())).await.json_with_status(204);
        }
        upload_logs(service, &cluster, "logs_type=controller", log_form(b"c")).await.json_with_status(204);
        let response = service.get(&format!("/v2/clusters/{cluster}")).await.json_with_status(200);
        assert!(response["controller_logs_collected_at"].as_str().unwrap().starts_with("20"));
        assert_eq!(download_logs(service, &cluster, "logs_type=controller").await.text, "c");
        for query in ["", "logs_type=all"] {
            let answer = download_logs(service, &cluster, query).await;
            assert_eq!(answer.status, 200);
            let name = format!("attachment; filename=\"demo_{cluster}.tar\"");
            assert_eq!(answer.header("content-disposition"), Some(name.as_str()));
            let mut files = untar(answer.text.as_bytes());
            files.sort();
            let path = format!("/v2/clusters/{cluster}/logs?{query}");
            let head = send_request(service.request(Method::HEAD, &path)).await;
            assert_eq!((head.status, head.header("content-length")), (200, None), "the length is unknown");
            let mut expected = vec![
                ("controller.tar.gz".to_owned(), b"c".to_vec()),
                (format!("{0}_{0}.tar.gz", one.id), Vec::new()),
                (format!("a.example.com_{}.tar.gz", other.id), long.clone().into_bytes()),
            ];
            expected.sort();
            assert_eq!(files, expected);
        }
        let events = service
            .get(&format!("/v2/events?cluster_id={cluster}&cluster_level=true"))
            .await
            .json_with_status(200);
        assert!(
            events.as_array().unwrap().iter().any(|it| it["name"] == "cluster_logs_uploaded"),
            "{events}"
        );
    });
}

#[test]
fn rejects_logs_of_unknown_owners() {
    on_each_database(async |service| {
        let (cluster, agent) = cluster_with_host(service).await;
        let free = FakeAgent::register_in_new_infra_env(service).await;
        let of = |agent: &FakeAgent<'_>| {
            format!("logs_type=host&infra_env_id={}&host_id={}", agent.infra_env, agent.id)
        };
        let unknown = Uuid::new_v4().to_string();
        upload_logs(service, &unknown, "logs_type=controller", log_form(b"x")).await.refusal_reason(404);
        let reason = upload_logs(service, &cluster, "", log_form(b"x")).await.refusal_reason(400);
        assert_eq!(reason, "logs_type in query is required");
        upload_logs(service, &cluster, "logs_type=all", log_form(b"x")).await.refusal_reason(400);
        let reason =
            upload_logs(service, &cluster, "logs_type=host", log_form(b"x")).await.refusal_reason(400);
        assert_eq!(reason, "host_id is required for the logs of a host");
        let reason = upload_logs(service, &cluster, &of(&free), log_form(b"x")).await.refusal_reason(409);
        assert_eq!(reason, format!("Host {} is not part of cluster {cluster}", free.id));
        let query = format!("logs_type=host&host_id={unknown}");
        upload_logs(service, &cluster, &query, log_form(b"x")).await.refusal_reason(404);
        let query = format!("logs_type=host&infra_env_id={}&host_id={unknown}", agent.infra_env);
        upload_logs(service, &cluster, &query, log_form(b"x")).await.refusal_reason(404);

        let form = Form::new().text("other", "x".repeat(1000)).text("comment", "y");
        let reason = upload_logs(service, &cluster, &of(&agent), form).await.refusal_reason(400);
        assert_eq!(reason, "upfile in formData is required");
        let path = format!("/v2/clusters/{cluster}/logs?{}", of(&agent));
        service.post(&path, &json!({"upfile": "x"})).await.refusal_reason(400);
        let request = service.request(Method::POST, &path);
        let cut = "--b\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"a\"\r\n\r\nhalf";
        let request = request.header("Content-Type", "multipart/form-data; boundary=b").body(cut);
        send_request(request).await.refusal_reason(400);
        download_logs(service, &cluster, &of(&agent)).await.refusal_reason(409);
        assert_eq!(agent.get_host().await["logs_collected_at"], "0001-01-01T00:00:00.000Z");

        for (path, status) in [
            (unknown.as_str(), 404),
            (&format!("{cluster}/logs?logs_type=host"), 400),
            (&format!("{cluster}/logs?logs_type=other"), 400),
            (&format!("{cluster}/logs?host_id={unknown}"), 404),
        ] {
            let path = if path == unknown { format!("{unknown}/logs") } else { path.to_owned() };
            service.get(&format!("/v2/clusters/{path}")).await.refusal_reason(status);
        }
    });
}

#[test]
fn log_size_is_limited() {
    on_each_database(async |service| {
        let (cluster, _) = cluster_with_host(service).await;
        let controller = "logs_type=controller";
        upload_logs(service, &cluster, controller, log_form(b"before")).await.json_with_status(204);
        let reason = upload_logs(service, &cluster, controller, generated_log_form(MAX_LOGS + 1))
            .await
            .refusal_reason(413);
        assert_eq!(reason, format!("logs are too large (limit {MAX_LOGS} bytes)"));
        assert_eq!(
            download_logs(service, &cluster, controller).await.text,
            "before",
            "no partial upload is kept"
        );
        upload_logs(service, &cluster, controller, generated_log_form(MAX_LOGS)).await.json_with_status(204);
        let head = service.request(Method::HEAD, &format!("/v2/clusters/{cluster}/logs?{controller}"));
        let answer = send_request(head).await;
        assert_eq!(answer.header("content-length"), Some("262144000"));
    });
}

#[test]
fn host_names_are_escaped_in_headers_and_archives() {
    on_each_database(async |service| {
        let (cluster, agent) = cluster_with_host(service).await;
        let name = format!("../../{}\r\nX-Evil: 1\"", "x".repeat(200));
        let output = json!({"hostname": name}).to_string();
        agent.send_reply(&json!({"step_type": "inventory", "output": output})).await.json_with_status(204);
        let query = format!("logs_type=host&host_id={}", agent.id);
        upload_logs(service, &cluster, &query, log_form(b"x")).await.json_with_status(204);
        let answer = download_logs(service, &cluster, &query).await;
        assert!(answer.header("x-evil").is_none());
        let disposition = answer.header("content-disposition").unwrap();
        assert!(disposition.starts_with("attachment; filename=\"demo_.._.._xxx"), "{disposition}");
        let files = untar(download_logs(service, &cluster, "").await.text.as_bytes());
        assert!(files[0].0.len() <= 100 && !files[0].0.contains('/'), "{files:?}");
        let _: Value = agent.get_host().await;
    });
}

#[test]
fn interrupted_log_upload_is_a_client_error() {
    on_each_database(async |service| {
        let (cluster, _) = cluster_with_host(service).await;
        let url = service.url("");
        let address = url.strip_prefix("http://").unwrap();
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let part = "--b\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"a\"\r\n\r\nhalf";
        let request = format!(
            "POST {}/v2/clusters/{cluster}/logs?logs_type=controller HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{part}\r\nno length\r\n",
            kindling::inventory::Settings::API,
            part.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("the upload of logs was interrupted"), "{answer}");
        download_logs(service, &cluster, "logs_type=controller").await.refusal_reason(409);
    });
}

async fn file_count(service: &TestService, cluster: &str) -> usize {
    let folder = FilePath::from_names(["clusters", cluster]).unwrap();
    service.inventory.files().list(&folder).await.unwrap().len()
}

#[test]
fn logs_are_deleted_with_their_host_or_cluster() {
    on_each_database(async |service| {
        let (cluster, one) = cluster_with_host(service).await;
        let (other, _) = cluster_with_host(service).await;
        let two = FakeAgent::new(service, &one.infra_env);
        two.register().await.json_with_status(201);
        for agent in [&one, &two] {
            let query = format!("logs_type=host&host_id={}", agent.id);
            upload_logs(service, &cluster, &query, log_form(b"x")).await.json_with_status(204);
        }
        for cluster in [&cluster, &other] {
            upload_logs(service, cluster, "logs_type=controller", log_form(b"x")).await.json_with_status(204);
        }
        assert_eq!(file_count(service, &cluster).await, 3);
        service.delete(&two.path()).await.json_with_status(204);
        service.inventory.run_due_jobs().await.unwrap();
        assert_eq!(file_count(service, &cluster).await, 2);
        service.delete(&format!("/v2/clusters/{cluster}")).await.json_with_status(204);
        service.inventory.run_due_jobs().await.unwrap();
        assert_eq!((file_count(service, &cluster).await, file_count(service, &other).await), (0, 1));
    });
}

/// Sends logs to a cluster, and runs `happens` after the server requests the body. Returns the start of the response.
async fn upload_around(
    service: &TestService,
    cluster: &str,
    query: &str,
    happens: impl Future<Output = ()>,
) -> String {
    let url = service.url("");
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let form = "--b\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"a\"\r\n\r\nx\r\n--b--\r\n";
    let head = format!(
        "POST {}/v2/clusters/{cluster}/logs?logs_type={query} HTTP/1.1\r\nHost: {address}\r\n\
                 Connection: close\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\
                 Expect: 100-continue\r\n\r\n",
        kindling::inventory::Settings::API,
        form.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server requests the body after it has found the cluster.
    let mut interim_response = [0; 25];
    stream.read_exact(&mut interim_response).await.unwrap();
    assert_eq!(&interim_response, b"HTTP/1.1 100 Continue\r\n\r\n");
    happens.await;
    stream.write_all(form.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[test]
fn logs_uploaded_during_cluster_deletion_are_dropped() {
    on_each_database(async |service| {
        for of_host in [false, true] {
            let (cluster, agent) = cluster_with_host(service).await;
            let query = if of_host { format!("host&host_id={}", agent.id) } else { "controller".to_owned() };
            let goes = async {
                service.delete(&format!("/v2/clusters/{cluster}")).await.json_with_status(204);
            };
            let answer = upload_around(service, &cluster, &query, goes).await;
            assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
            assert_eq!(file_count(service, &cluster).await, 0);
        }
    });
}

/// Binds a host to a cluster, and registers the host again.
async fn join(agent: &FakeAgent<'_>, cluster: &str) {
    let bind = format!("{}/actions/bind", agent.path());
    agent.service.post(&bind, &json!({"cluster_id": cluster})).await.json_with_status(200);
    agent.register().await.json_with_status(201);
}

/// Unbinds a host, which boots again and sends its inventory report.
async fn leave(agent: &FakeAgent<'_>) {
    let unbind = format!("{}/actions/unbind", agent.path());
    agent.service.post(&unbind, &Value::Null).await.json_with_status(200);
    agent.register().await.json_with_status(201);
    agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
}

#[test]
fn unbound_host_leaves_no_logs_in_its_former_cluster() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let query = format!("host&host_id={}&infra_env_id={}", agent.id, agent.infra_env);
        join(&agent, &cluster).await;
        upload_logs(service, &cluster, &format!("logs_type={query}"), log_form(b"x"))
            .await
            .json_with_status(204);
        leave(&agent).await;
        service.inventory.run_due_jobs().await.unwrap();
        assert_eq!(file_count(service, &cluster).await, 0);

        join(&agent, &cluster).await;
        download_logs(service, &cluster, &format!("logs_type={query}")).await.refusal_reason(409);
        let answer = upload_around(service, &cluster, &query, leave(&agent)).await;
        assert!(answer.starts_with("HTTP/1.1 409 "), "{answer}");
        assert_eq!(file_count(service, &cluster).await, 0);
        assert_eq!(agent.get_host().await["logs_collected_at"], "0001-01-01T00:00:00.000Z");
    });
}

#[test]
fn host_that_joins_its_cluster_again_keeps_its_logs() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let query = format!("logs_type=host&host_id={}&infra_env_id={}", agent.id, agent.infra_env);
        join(&agent, &cluster).await;
        leave(&agent).await;
        join(&agent, &cluster).await;
        upload_logs(service, &cluster, &query, log_form(b"later")).await.json_with_status(204);
        agent.register().await.json_with_status(201);
        service.inventory.run_due_jobs().await.unwrap();
        assert_eq!(file_count(service, &cluster).await, 1);
    });
}

#[test]
fn host_that_registers_again_after_a_deletion_keeps_its_logs() {
    on_each_database(async |service| {
        let (cluster, agent) = cluster_with_host(service).await;
        let query = format!("logs_type=host&host_id={}", agent.id);
        service.delete(&agent.path()).await.json_with_status(204);
        agent.register().await.json_with_status(201);
        upload_logs(service, &cluster, &query, log_form(b"later")).await.json_with_status(204);
        service.inventory.run_due_jobs().await.unwrap();
        assert_eq!(file_count(service, &cluster).await, 1);
    });
}
