//! Logs: what is sent, and what is fetched.

use bytes::Bytes;
use futures_util::stream;
use kindling::inventory::files::FilePath;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uuid::Uuid;

use crate::agent::{Agent, infra_env};
use crate::service::{Answer, PULL_SECRET, Service, on_each_database, send};

/// What logs may have.
const MOST: usize = 262_144_000;

async fn cluster(service: &Service) -> String {
    let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
    service.post("/v2/clusters", &body).await.expect(201)["id"].as_str().unwrap().to_owned()
}

/// A cluster with a host of an infra-env of its own.
async fn with_host(service: &Service) -> (String, Agent<'_>) {
    let cluster = cluster(service).await;
    let agent = Agent::of(service, &infra_env(service, &json!({"cluster_id": cluster})).await);
    agent.register().await.expect(201);
    (cluster, agent)
}

async fn upload(service: &Service, cluster: &str, query: &str, form: Form) -> Answer {
    let request = service.request(Method::POST, &format!("/v2/clusters/{cluster}/logs?{query}"));
    send(request.multipart(form)).await
}

fn file(content: &[u8]) -> Form {
    Form::new().part("upfile", Part::bytes(content.to_vec()).file_name("logs.tar.gz"))
}

/// A form with a file of some length that is nowhere as a whole.
fn long(len: usize) -> Form {
    const PIECE: usize = 1 << 20;
    let pieces = (0..len.div_ceil(PIECE)).map(move |index| {
        let len = PIECE.min(len - index * PIECE);
        Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; len]))
    });
    Form::new().part("upfile", Part::stream(Body::wrap_stream(stream::iter(pieces))).file_name("logs.tar.gz"))
}

async fn fetch(service: &Service, cluster: &str, query: &str) -> Answer {
    service.get(&format!("/v2/clusters/{cluster}/logs?{query}")).await
}

/// The files of an archive: names and contents.
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
fn logs_of_a_host_are_kept_and_fetched() {
    on_each_database(async |service| {
        let (cluster, agent) = with_host(service).await;
        let of_host = format!("logs_type=host&infra_env_id={}&host_id={}", agent.infra_env, agent.id);
        fetch(service, &cluster, &of_host).await.refused(409);
        let answer = upload(service, &cluster, &of_host, file(b"first\x1f\x8b\0")).await;
        assert_eq!((answer.status, answer.text.as_str()), (204, ""));
        let collected = agent.host().await["logs_collected_at"].clone();
        assert!(collected.as_str().unwrap().starts_with("20"), "{collected}");
        for query in [of_host.as_str(), &format!("host_id={}", agent.id)] {
            let answer = fetch(service, &cluster, query).await;
            assert_eq!((answer.status, answer.text.as_str()), (200, "first\x1f\u{fffd}\0"));
            assert_eq!(answer.header("content-length"), Some("8"));
            assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
            let name = format!("attachment; filename=\"demo_{0}_{0}.tar.gz\"", agent.id);
            assert_eq!(answer.header("content-disposition"), Some(name.as_str()));
        }
        let without = format!("logs_type=host&host_id={}", agent.id);
        upload(service, &cluster, &without, file(b"second")).await.expect(204);
        assert_eq!(fetch(service, &cluster, &of_host).await.text, "second");
        let events = service.get(&format!("/v2/events?host_ids={}", agent.id)).await.expect(200);
        let told: Vec<_> =
            events.as_array().unwrap().iter().filter(|it| it["name"] == "host_logs_uploaded").collect();
        assert_eq!(told.len(), 2);
        assert_eq!(told[0]["message"], format!("Uploaded logs for host {} cluster {cluster}", agent.id));
    });
}

#[test]
fn all_logs_of_a_cluster_are_an_archive() {
    on_each_database(async |service| {
        let (cluster, one) = with_host(service).await;
        fetch(service, &cluster, "").await.refused(409);
        fetch(service, &cluster, "logs_type=controller").await.refused(409);
        let other = Agent::of(service, &one.infra_env);
        let silent = Agent::of(service, &one.infra_env);
        other.register().await.expect(201);
        silent.register().await.expect(201);
        service.patch(&other.path(), &json!({"host_name": "a.example.com"})).await.expect(201);
        let long = "x".repeat(5000);
        for (agent, content) in [(&one, ""), (&other, long.as_str())] {
            let query = format!("logs_type=host&infra_env_id={}&host_id={}", agent.infra_env, agent.id);
            upload(service, &cluster, &query, file(content.as_bytes())).await.expect(204);
        }
        upload(service, &cluster, "logs_type=controller", file(b"c")).await.expect(204);
        let shown = service.get(&format!("/v2/clusters/{cluster}")).await.expect(200);
        assert!(shown["controller_logs_collected_at"].as_str().unwrap().starts_with("20"));
        assert_eq!(fetch(service, &cluster, "logs_type=controller").await.text, "c");
        for query in ["", "logs_type=all"] {
            let answer = fetch(service, &cluster, query).await;
            assert_eq!(answer.status, 200);
            let name = format!("attachment; filename=\"demo_{cluster}.tar\"");
            assert_eq!(answer.header("content-disposition"), Some(name.as_str()));
            let mut files = untar(answer.text.as_bytes());
            files.sort();
            let mut expected = vec![
                ("controller.tar.gz".to_owned(), b"c".to_vec()),
                (format!("{0}_{0}.tar.gz", one.id), Vec::new()),
                (format!("a.example.com_{}.tar.gz", other.id), long.clone().into_bytes()),
            ];
            expected.sort();
            assert_eq!(files, expected);
        }
        let events =
            service.get(&format!("/v2/events?cluster_id={cluster}&cluster_level=true")).await.expect(200);
        assert!(
            events.as_array().unwrap().iter().any(|it| it["name"] == "cluster_logs_uploaded"),
            "{events}"
        );
    });
}

#[test]
fn logs_that_belong_nowhere_are_refused() {
    on_each_database(async |service| {
        let (cluster, agent) = with_host(service).await;
        let free = Agent::booted(service).await;
        let of = |agent: &Agent<'_>| {
            format!("logs_type=host&infra_env_id={}&host_id={}", agent.infra_env, agent.id)
        };
        let unknown = Uuid::new_v4().to_string();
        upload(service, &unknown, "logs_type=controller", file(b"x")).await.refused(404);
        let reason = upload(service, &cluster, "", file(b"x")).await.refused(400);
        assert_eq!(reason, "logs_type in query is required");
        upload(service, &cluster, "logs_type=all", file(b"x")).await.refused(400);
        let reason = upload(service, &cluster, "logs_type=host", file(b"x")).await.refused(400);
        assert_eq!(reason, "host_id is required for the logs of a host");
        let reason = upload(service, &cluster, &of(&free), file(b"x")).await.refused(409);
        assert_eq!(reason, format!("Host {} is not part of cluster {cluster}", free.id));
        let query = format!("logs_type=host&host_id={unknown}");
        upload(service, &cluster, &query, file(b"x")).await.refused(404);
        let query = format!("logs_type=host&infra_env_id={}&host_id={unknown}", agent.infra_env);
        upload(service, &cluster, &query, file(b"x")).await.refused(404);

        let form = Form::new().text("other", "x".repeat(1000)).text("comment", "y");
        let reason = upload(service, &cluster, &of(&agent), form).await.refused(400);
        assert_eq!(reason, "upfile in formData is required");
        let path = format!("/v2/clusters/{cluster}/logs?{}", of(&agent));
        service.post(&path, &json!({"upfile": "x"})).await.refused(400);
        let request = service.request(Method::POST, &path);
        let cut = "--b\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"a\"\r\n\r\nhalf";
        let request = request.header("Content-Type", "multipart/form-data; boundary=b").body(cut);
        send(request).await.refused(400);
        fetch(service, &cluster, &of(&agent)).await.refused(409);
        assert_eq!(agent.host().await["logs_collected_at"], "0001-01-01T00:00:00.000Z");

        for (path, status) in [
            (unknown.as_str(), 404),
            (&format!("{cluster}/logs?logs_type=host"), 400),
            (&format!("{cluster}/logs?logs_type=other"), 400),
            (&format!("{cluster}/logs?host_id={unknown}"), 404),
        ] {
            let path = if path == unknown { format!("{unknown}/logs") } else { path.to_owned() };
            service.get(&format!("/v2/clusters/{path}")).await.refused(status);
        }
    });
}

#[test]
fn logs_may_have_so_much_and_not_more() {
    on_each_database(async |service| {
        let (cluster, _) = with_host(service).await;
        let controller = "logs_type=controller";
        upload(service, &cluster, controller, file(b"before")).await.expect(204);
        let reason = upload(service, &cluster, controller, long(MOST + 1)).await.refused(413);
        assert_eq!(reason, format!("logs may have {MOST} bytes, and these have more"));
        assert_eq!(fetch(service, &cluster, controller).await.text, "before", "nothing half is kept");
        upload(service, &cluster, controller, long(MOST)).await.expect(204);
        let head = service.request(Method::HEAD, &format!("/v2/clusters/{cluster}/logs?{controller}"));
        let answer = send(head).await;
        assert_eq!(answer.header("content-length"), Some("262144000"));
    });
}

#[test]
fn names_of_hosts_cannot_break_out_of_headers_and_archives() {
    on_each_database(async |service| {
        let (cluster, agent) = with_host(service).await;
        let name = format!("../../{}\r\nX-Evil: 1\"", "x".repeat(200));
        let output = json!({"hostname": name}).to_string();
        agent.say(&json!({"step_type": "inventory", "output": output})).await.expect(204);
        let query = format!("logs_type=host&host_id={}", agent.id);
        upload(service, &cluster, &query, file(b"x")).await.expect(204);
        let answer = fetch(service, &cluster, &query).await;
        assert!(answer.header("x-evil").is_none());
        let shown = answer.header("content-disposition").unwrap();
        assert!(shown.starts_with("attachment; filename=\"demo_.._.._xxx"), "{shown}");
        let files = untar(fetch(service, &cluster, "").await.text.as_bytes());
        assert!(files[0].0.len() <= 100 && !files[0].0.contains('/'), "{files:?}");
        let _: Value = agent.host().await;
    });
}

#[test]
fn logs_that_break_off_are_the_fault_of_who_sends_them() {
    on_each_database(async |service| {
        let (cluster, _) = with_host(service).await;
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
        assert!(answer.contains("the logs broke off"), "{answer}");
        fetch(service, &cluster, "logs_type=controller").await.refused(409);
    });
}

/// How many files there are of a cluster.
async fn files(service: &Service, cluster: &str) -> usize {
    let folder = FilePath::of(["clusters", cluster]).unwrap();
    service.inventory.files().list(&folder).await.unwrap().len()
}

#[test]
fn logs_go_with_their_host_and_with_their_cluster() {
    on_each_database(async |service| {
        let (cluster, one) = with_host(service).await;
        let (other, _) = with_host(service).await;
        let two = Agent::of(service, &one.infra_env);
        two.register().await.expect(201);
        for agent in [&one, &two] {
            let query = format!("logs_type=host&host_id={}", agent.id);
            upload(service, &cluster, &query, file(b"x")).await.expect(204);
        }
        for cluster in [&cluster, &other] {
            upload(service, cluster, "logs_type=controller", file(b"x")).await.expect(204);
        }
        assert_eq!(files(service, &cluster).await, 3);
        service.delete(&two.path()).await.expect(204);
        assert_eq!(files(service, &cluster).await, 2);
        service.delete(&format!("/v2/clusters/{cluster}")).await.expect(204);
        assert_eq!((files(service, &cluster).await, files(service, &other).await), (0, 1));
    });
}

/// Sends logs to a cluster; something happens after they are asked for. Gives the beginning of the answer.
async fn upload_around(
    service: &Service,
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
    // The body is asked for once the cluster was found.
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    happens.await;
    stream.write_all(form.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[test]
fn logs_that_come_while_their_cluster_goes_are_not_kept() {
    on_each_database(async |service| {
        for of_host in [false, true] {
            let (cluster, agent) = with_host(service).await;
            let query = if of_host { format!("host&host_id={}", agent.id) } else { "controller".to_owned() };
            let goes = async {
                service.delete(&format!("/v2/clusters/{cluster}")).await.expect(204);
            };
            let answer = upload_around(service, &cluster, &query, goes).await;
            assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
            assert_eq!(files(service, &cluster).await, 0);
        }
    });
}

#[test]
fn logs_of_a_host_stay_with_no_cluster_that_it_left() {
    on_each_database(async |service| {
        let cluster = cluster(service).await;
        let agent = Agent::known(service, "node-1").await;
        let bind = format!("{}/actions/bind", agent.path());
        let unbind = format!("{}/actions/unbind", agent.path());
        let query = format!("host&host_id={}&infra_env_id={}", agent.id, agent.infra_env);
        let join = async || {
            service.post(&bind, &json!({"cluster_id": cluster})).await.expect(200);
            agent.register().await.expect(201);
        };
        let leave = async {
            service.post(&unbind, &Value::Null).await.expect(200);
        };
        join().await;
        upload(service, &cluster, &format!("logs_type={query}"), file(b"x")).await.expect(204);
        service.post(&unbind, &Value::Null).await.expect(200);
        assert_eq!(files(service, &cluster).await, 0);

        agent.register().await.expect(201);
        agent.reply("inventory", &crate::agent::machine("node-1")).await.expect(204);
        join().await;
        fetch(service, &cluster, &format!("logs_type={query}")).await.refused(409);
        let answer = upload_around(service, &cluster, &query, leave).await;
        assert!(answer.starts_with("HTTP/1.1 409 "), "{answer}");
        assert_eq!(files(service, &cluster).await, 0);
        assert_eq!(agent.host().await["logs_collected_at"], "0001-01-01T00:00:00.000Z");
    });
}
