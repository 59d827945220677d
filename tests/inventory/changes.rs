//! The stream of changes, as a client reads it.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use kindling::inventory::auth::{KeyTexts, LocalKeys, Policy};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::agent::FakeAgent;
use crate::service::{
    PULL_SECRET, TestService, on_each_database, on_each_database_with_policy, send_request,
};

/// Maximum time until a change is in the stream.
const PATIENCE: Duration = Duration::from_secs(30);
const STREAM: &str = "/v2/events/stream";

struct StreamClient {
    response: Response,
    text: String,
}

#[derive(Debug)]
struct Message {
    id: String,
    event: String,
    data: Value,
}

impl StreamClient {
    async fn open(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// Returns the next message; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some((message, rest)) = self.text.split_once("\n\n") {
                let fields: BTreeMap<_, _> =
                    message.lines().filter_map(|line| line.split_once(": ")).collect();
                let message = fields.get("event").map(|event| Message {
                    id: fields["id"].to_owned(),
                    event: (*event).to_owned(),
                    data: serde_json::from_str(fields["data"]).unwrap(),
                });
                self.text = rest.to_owned();
                if message.is_some() {
                    return message;
                }
                continue;
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("a message");
            self.text.push_str(str::from_utf8(&chunk.unwrap()?).unwrap());
        }
    }

    /// Returns the next message about a record.
    async fn next_about(&mut self, id: &Value) -> Message {
        loop {
            let message = self.next().await.expect("the stream continues");
            if message.data["id"] == *id {
                return message;
            }
        }
    }
}

async fn create_infra_env(service: &TestService, name: &str) -> Value {
    let body = json!({"name": name, "pull_secret": PULL_SECRET});
    service.post("/v2/infra-envs", &body).await.json_with_status(201)
}

#[test]
fn stream_has_changes_of_records_and_ends_with_its_infra_env() {
    on_each_database(async |service| {
        let [own, other] = [create_infra_env(service, "own").await, create_infra_env(service, "other").await];
        let path = format!("{STREAM}?infra_env_id={}", own["id"].as_str().unwrap());
        let mut of_own = StreamClient::open(service.request(Method::GET, &path)).await;
        let mut of_all = StreamClient::open(service.request(Method::GET, STREAM)).await;
        for stream in [&mut of_own, &mut of_all] {
            assert_eq!(stream.next().await.unwrap().event, "resync");
        }
        let [agent, stranger] = [&own, &other].map(|it| FakeAgent::new(service, it["id"].as_str().unwrap()));
        stranger.register().await.json_with_status(201);
        agent.register().await.json_with_status(201);
        let [agent_id, stranger_id] = [&agent, &stranger].map(|agent| json!(agent.id));
        let message = of_own.next().await.unwrap();
        assert_eq!(message.event, "change");
        let expected = json!({
            "resource": "host", "id": agent_id, "infra_env_id": own["id"], "generation": message.data["generation"],
            "change": "written",
        });
        assert_eq!(message.data, expected);
        assert_eq!(of_all.next_about(&stranger_id).await.data["infra_env_id"], other["id"]);
        of_all.next_about(&agent_id).await;
        let cluster = json!({"name": "c", "pull_secret": PULL_SECRET, "openshift_version": "4.18"});
        let cluster = service.post("/v2/clusters", &cluster).await.json_with_status(201);
        let message = of_all.next_about(&cluster["id"]).await;
        assert_eq!(
            (&message.data["resource"], &message.data["change"]),
            (&json!("cluster"), &json!("written"))
        );
        for record in [&other, &own] {
            let path = format!("/v2/infra-envs/{}", record["id"].as_str().unwrap());
            for host in service.get(&format!("{path}/hosts")).await.json().as_array().unwrap() {
                service
                    .delete(&format!("{path}/hosts/{}", host["id"].as_str().unwrap()))
                    .await
                    .json_with_status(204);
            }
            service.delete(&path).await.json_with_status(204);
        }
        let mut last = None;
        while let Some(message) = of_own.next().await {
            assert!([&own["id"], &agent_id].contains(&&message.data["id"]), "{message:?}");
            last = Some(message.data);
        }
        let last = last.unwrap();
        assert_eq!((&last["id"], &last["change"]), (&own["id"], &json!("removed")));
        let answer = send_request(service.request(Method::GET, &path)).await;
        answer.json_with_status(404);
    });
}

#[test]
fn stream_continues_after_the_last_event() {
    on_each_database(async |service| {
        let mut first = StreamClient::open(service.request(Method::GET, STREAM)).await;
        first.next().await.unwrap();
        let infra_env = create_infra_env(service, "first").await;
        let last = first.next_about(&infra_env["id"]).await.id;
        drop(first);
        let missed = create_infra_env(service, "missed").await;
        let with_header = service.request(Method::GET, STREAM).header("Last-Event-ID", &last);
        let with_parameter = service.request(Method::GET, &format!("{STREAM}?last_event_id={last}"));
        let with_both = service
            .request(Method::GET, &format!("{STREAM}?last_event_id=ffffffffffffffff-1"))
            .header("Last-Event-ID", &last);
        for request in [with_header, with_parameter, with_both] {
            let mut stream = StreamClient::open(request).await;
            let message = stream.next().await.unwrap();
            assert_eq!((&message.event[..], &message.data["id"]), ("change", &missed["id"]));
        }
        // Positions of another process, or of the future.
        let (origin, number) = last.split_once('-').unwrap();
        let future = format!("{origin}-{}", number.parse::<u64>().unwrap() + 1000);
        for unknown in ["0123456789abcdef-1", &future, "1", "-", "\u{fffd}"] {
            let request = service.request(Method::GET, STREAM).query(&[("last_event_id", unknown)]);
            let mut stream = StreamClient::open(request).await;
            assert_eq!(stream.next().await.unwrap().event, "resync", "{unknown}");
        }
    });
}

#[test]
fn ticket_opens_only_the_stream_and_expires() {
    let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
    let user = keys.user_token(Utc::now(), None).unwrap();
    let expired = keys.ticket(Utc::now(), Utc::now() - TimeDelta::seconds(1)).unwrap();
    on_each_database_with_policy(Policy::local(keys), async |service| {
        let as_user = |method, path: &str| service.request(method, path).bearer_auth(user.reveal());
        let create = |name| {
            as_user(Method::POST, "/v2/infra-envs").json(&json!({"name": name, "pull_secret": PULL_SECRET}))
        };
        let own = send_request(create("own")).await.json_with_status(201);
        let other = send_request(create("other")).await.json_with_status(201);
        let ticket_response =
            send_request(as_user(Method::POST, "/v2/events/tickets")).await.json_with_status(201);
        let ticket = ticket_response["ticket"].as_str().unwrap();
        let of_own = format!("infra_env_id={}", own["id"].as_str().unwrap());
        let of_other = format!("infra_env_id={}", other["id"].as_str().unwrap());

        for query in [format!("ticket={ticket}"), format!("ticket={ticket}&{of_own}")] {
            StreamClient::open(service.request(Method::GET, &format!("{STREAM}?{query}"))).await;
        }
        StreamClient::open(as_user(Method::GET, STREAM)).await;
        let url = own["download_url"].as_str().unwrap();
        let token = url.split("/byapikey/").nth(1).unwrap().split('/').next().unwrap();
        StreamClient::open(service.request(Method::GET, &format!("{STREAM}?api_key={token}&{of_own}"))).await;

        let status = async |path: String| send_request(service.request(Method::GET, &path)).await.status;
        for query in [String::new(), format!("ticket={}", expired.reveal()), format!("ticket={token}")] {
            assert_eq!(status(format!("{STREAM}?{query}")).await, 401, "{query}");
        }
        for query in [String::new(), format!("&{of_other}")] {
            assert_eq!(status(format!("{STREAM}?api_key={token}{query}")).await, 404, "{query}");
        }
        for path in ["/v2/infra-envs", "/v2/events"] {
            assert_eq!(status(format!("{path}?ticket={ticket}&api_key={ticket}")).await, 401, "{path}");
            let with_header = service.request(Method::GET, path).bearer_auth(ticket);
            assert_eq!(send_request(with_header).await.status, 401, "{path}");
        }
        let by_url = format!("/v2/events/tickets?api_key={token}&ticket={ticket}");
        assert_eq!(send_request(service.request(Method::POST, &by_url)).await.status, 401);
    });
}
