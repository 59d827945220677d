//! Events: queries and permissions.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::{FakeAgent, create_infra_env, inventory_report};
use crate::service::{PULL_SECRET, ServiceAnswer, TestService, on_each_database, send_request};

async fn create_cluster(service: &TestService) -> String {
    let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
    service.post("/v2/clusters", &body).await.json_with_status(201)["id"].as_str().unwrap().to_owned()
}

fn event_body(more: &Value) -> Value {
    let mut event = json!({"name": "test", "severity": "info", "message": "It works", "event_time": "2026-01-01T00:00:00Z"});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

async fn post_event(service: &TestService, more: &Value) {
    let answer = service.post("/v2/events", &event_body(more)).await;
    assert_eq!((answer.status, answer.text.as_str()), (201, ""));
}

async fn get_events(service: &TestService, query: &str) -> ServiceAnswer {
    service.get(&format!("/v2/events?{query}")).await
}

/// Returns the messages of the events that a query selects, in order.
async fn event_messages(service: &TestService, query: &str) -> Vec<String> {
    let events = get_events(service, query).await.json_with_status(200);
    events.as_array().unwrap().iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

fn severity_counts(answer: &ServiceAnswer) -> [&str; 5] {
    [
        "event-count",
        "severity-count-info",
        "severity-count-warning",
        "severity-count-error",
        "severity-count-critical",
    ]
    .map(|name| answer.header(name).unwrap())
}

#[test]
fn posted_event_is_returned_without_internal_fields() {
    on_each_database(async |service| {
        let cluster = Uuid::new_v4();
        let host = Uuid::new_v4();
        post_event(
            service,
            &json!({"cluster_id": cluster, "host_id": host, "severity": "warning", "category": "user",
                    "request_id": Uuid::new_v4(), "props": r#"["a", 1, "b", "x"]"#}),
        )
        .await;
        let mut events = get_events(service, &format!("cluster_id={cluster}")).await.json_with_status(200);
        let time = events[0].as_object_mut().unwrap().remove("event_time").unwrap();
        assert!(
            !time.as_str().unwrap().starts_with("2026-01-01T00:00:00"),
            "the time is set by the server: {time}"
        );
        assert_eq!(
            events,
            json!([{"name": "test", "cluster_id": cluster, "host_id": host, "severity": "warning", "message": "It works",
                    "props": r#"{"a":1,"b":"x"}"#}])
        );
    });
}

#[test]
fn invalid_events_are_refused_or_dropped() {
    on_each_database(async |service| {
        for (body, reason) in [
            (
                json!({"severity": "info", "event_time": "2026-01-01T00:00:00Z"}),
                "message in body is required",
            ),
            (json!({"severity": "info", "message": "a"}), "event_time in body is required"),
            (json!({"message": "a", "event_time": "2026-01-01T00:00:00Z"}), "severity in body is required"),
            (
                event_body(&json!({"severity": "bad"})),
                "severity in body should be one of [info warning error critical]",
            ),
            (event_body(&json!({"category": "other"})), "category in body should be one of [user metrics]"),
            (
                event_body(&json!({"event_time": "noon"})),
                "event_time in body must be of type date-time: \"noon\"",
            ),
        ] {
            assert_eq!(service.post("/v2/events", &body).await.refusal_reason(400), reason);
        }
        let cluster = Uuid::new_v4();
        post_event(service, &json!({"cluster_id": cluster, "message": "x".repeat(4097)})).await;
        post_event(service, &json!({"cluster_id": cluster, "name": "x".repeat(256)})).await;
        assert_eq!(
            get_events(service, &format!("cluster_id={cluster}")).await.json_with_status(200),
            json!([])
        );
        post_event(service, &json!({"cluster_id": cluster, "message": "ä".repeat(4096), "props": "no JSON"}))
            .await;
        for key in ["message", "name", "props"] {
            let body = event_body(&json!({key: "a\u{0}b"}));
            let reason = service.post("/v2/events", &body).await.refusal_reason(400);
            assert_eq!(reason, format!("{key} in body must not contain a NUL character"));
        }
        let events = get_events(service, &format!("cluster_id={cluster}")).await.json_with_status(200);
        assert_eq!(events.as_array().unwrap().len(), 1);
        assert!(events[0].get("props").is_none());
    });
}

#[test]
fn events_are_paged() {
    on_each_database(async |service| {
        let cluster = Uuid::new_v4();
        for index in 0..4 {
            let severity = ["info", "info", "error", "warning"][index];
            post_event(
                service,
                &json!({"cluster_id": cluster, "message": format!("{index}"), "severity": severity}),
            )
            .await;
        }
        post_event(service, &json!({"cluster_id": cluster, "message": "count", "category": "metrics"})).await;
        let of = |rest: &str| format!("cluster_id={cluster}{rest}");
        assert_eq!(event_messages(service, &of("")).await, ["0", "1", "2", "3"]);
        assert_eq!(event_messages(service, &of("&order=descending")).await, ["3", "2", "1", "0"]);
        assert_eq!(event_messages(service, &of("&limit=2&offset=1")).await, ["1", "2"]);
        assert_eq!(event_messages(service, &of("&limit=-1&offset=-5")).await, ["0", "1", "2", "3"]);
        assert_eq!(event_messages(service, &of("&limit=-7")).await.len(), 4);
        assert_eq!(event_messages(service, &of("&offset=9")).await, [""; 0]);
        assert_eq!(event_messages(service, &of("&severities=error,warning")).await, ["2", "3"]);
        assert_eq!(event_messages(service, &of("&categories=metrics")).await, ["count"]);
        assert_eq!(event_messages(service, &of("&categories=metrics,user")).await.len(), 5);
        assert_eq!(event_messages(service, &of("&message=COUN&categories=metrics")).await, ["count"]);
        assert_eq!(event_messages(service, &of("&message=%25")).await, [""; 0]);
        assert_eq!(event_messages(service, &of("&message=%00")).await, [""; 0]);

        let answer = get_events(service, &of("&limit=0&severities=error")).await;
        assert_eq!(answer.json_with_status(200), json!([]));
        assert_eq!(severity_counts(&answer), ["1", "2", "1", "1", "0"]);
        let answer = get_events(service, &of("&limit=1")).await;
        assert_eq!(severity_counts(&answer), ["4", "2", "1", "1", "0"]);
        for query in ["&order=sideways", "&severities=bad", "&categories=other", "&limit=all", "&offset=x"] {
            get_events(service, &of(query)).await.refusal_reason(400);
        }
        for query in ["cluster_id=x", "host_id=x", "host_ids=x", "infra_env_id=x"] {
            let reason = get_events(service, query).await.refusal_reason(400);
            assert!(reason.ends_with("in query must be of type uuid: \"x\""), "{reason}");
        }
    });
}

#[test]
fn event_filters_prefer_cluster_then_hosts_then_infra_env() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let agent =
            FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": cluster})).await);
        agent.register().await.json_with_status(201);
        let other = FakeAgent::new(service, &agent.infra_env);
        other.register().await.json_with_status(201);
        post_event(service, &json!({"cluster_id": cluster, "message": "of the cluster"})).await;
        let registered = |agent: &FakeAgent<'_>| format!("Host {}: Successfully registered", agent.id);
        let of_host = registered(&agent);
        let of_infra_env = event_messages(service, &format!("infra_env_id={}", agent.infra_env)).await;
        assert!(of_infra_env.contains(&"Registered infra env".to_owned()), "{of_infra_env:?}");
        assert!(of_infra_env.contains(&of_host) && !of_infra_env.contains(&"of the cluster".to_owned()));
        let query = format!("infra_env_id={}&host_ids={}", agent.infra_env, agent.id);
        assert_eq!(event_messages(service, &query).await, std::slice::from_ref(&of_host));
        assert_eq!(
            event_messages(service, &format!("host_id={}", agent.id)).await,
            std::slice::from_ref(&of_host)
        );
        let both = event_messages(service, &format!("host_id={}&host_ids={}", agent.id, other.id)).await;
        assert_eq!(both, [of_host.clone(), registered(&other)]);
        let query = format!("cluster_id={cluster}&host_ids={}", agent.id);
        assert_eq!(event_messages(service, &query).await, std::slice::from_ref(&of_host));
        let of_cluster =
            event_messages(service, &format!("cluster_id={cluster}&infra_env_id={}", Uuid::new_v4())).await;
        assert!(of_cluster.contains(&"of the cluster".to_owned()) && of_cluster.contains(&of_host));

        let query = format!("cluster_id={cluster}&cluster_level=true");
        let at_level = event_messages(service, &query).await;
        assert!(
            at_level.contains(&"of the cluster".to_owned()) && !at_level.contains(&of_host),
            "{at_level:?}"
        );
        let at_level = event_messages(service, &format!("{query}&host_ids={}", agent.id)).await;
        assert!(at_level.contains(&of_host) && !at_level.contains(&registered(&other)), "{at_level:?}");

        // Without a cluster, severities are not counted and messages are not searched.
        let answer = get_events(service, &format!("host_ids={}&message=nowhere", agent.id)).await;
        assert_eq!(severity_counts(&answer), ["1", "0", "0", "0", "0"]);
        for query in ["cluster_id", "host_ids", "infra_env_id"] {
            assert_eq!(
                get_events(service, &format!("{query}={}", Uuid::new_v4())).await.json_with_status(200),
                json!([])
            );
        }
        assert!(event_messages(service, "").await.len() > 3, "a query without filters returns everything");
    });
}

#[test]
fn events_of_deleted_resources_are_kept() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let agent =
            FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": cluster})).await);
        agent.register().await.json_with_status(201);
        let other = FakeAgent::new(service, &agent.infra_env);
        other.register().await.json_with_status(201);
        let of_deleted = format!("cluster_id={cluster}&deleted_hosts=true");
        let answer = get_events(service, &of_deleted).await;
        assert_eq!(answer.json_with_status(200), json!([]));
        assert_eq!(severity_counts(&answer), ["0", "0", "0", "0", "0"]);
        service.delete(&agent.path()).await.json_with_status(204);
        let deregistration = format!("Host {} deregistered", agent.id);
        let messages = event_messages(service, &of_deleted).await;
        assert_eq!(messages, [format!("Host {}: Successfully registered", agent.id), deregistration.clone()]);
        let with_other = event_messages(service, &format!("{of_deleted}&host_ids={}", other.id)).await;
        assert_eq!(with_other.len(), 3);
        assert_eq!(event_messages(service, &format!("host_ids={}", agent.id)).await, [""; 0]);
        assert_eq!(event_messages(service, &format!("host_ids={},{}", agent.id, other.id)).await.len(), 1);
        let of_infra_env = format!("infra_env_id={}", agent.infra_env);
        assert!(event_messages(service, &of_infra_env).await.contains(&deregistration));
        service.delete(&other.path()).await.json_with_status(204);
        service.delete(&format!("/v2/infra-envs/{}", agent.infra_env)).await.json_with_status(204);
        assert_eq!(event_messages(service, &of_infra_env).await, [""; 0]);
    });
}

#[test]
fn events_keep_the_id_of_their_request() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let id = Uuid::new_v4();
        let reply = json!({"step_type": "inventory", "output": inventory_report("node-1").to_string()});
        let request = service.request(Method::POST, &format!("{}/instructions", agent.path()));
        let answer = send_request(request.header("X-Request-ID", id.to_string()).json(&reply)).await;
        assert_eq!(answer.status, 204);
        assert!(answer.header("x-request-id").is_none());
        let odd = service.request(Method::DELETE, &agent.path()).header("X-Request-ID", "no uuid");
        assert_eq!(send_request(odd).await.status, 204);
        let query = kindling::inventory::event::EventQuery {
            infra_env: Some(agent.infra_env.parse().unwrap()),
            ..Default::default()
        };
        let page = service.inventory.records().store().events(&query).await.unwrap();
        let moved = page.events.iter().find(|event| event.name == "host_status_updated").unwrap();
        assert_eq!(moved.request, Some(id));
        let deregistration = page.events.iter().find(|event| event.name == "host_deregistered").unwrap();
        assert!(deregistration.request.is_some_and(|request| request != id));
    });
}

#[test]
fn events_of_clusters_and_infra_envs_keep_the_id_of_their_request() {
    on_each_database(async |service| {
        let send = async |method, path: &str, body: Value| {
            let id = Uuid::new_v4();
            let request = service.request(method, path).header("X-Request-ID", id.to_string()).json(&body);
            (id, send_request(request).await)
        };
        let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let (registration, answer) = send(Method::POST, "/v2/clusters", body).await;
        let cluster = answer.json_with_status(201)["id"].as_str().unwrap().to_owned();
        let body = json!({"name": "demo", "cluster_id": cluster, "pull_secret": PULL_SECRET});
        let (infra_env_registration, answer) = send(Method::POST, "/v2/infra-envs", body).await;
        let infra_env = answer.json_with_status(201)["id"].as_str().unwrap().to_owned();
        let agent = FakeAgent::new(service, &infra_env);
        agent.register().await.json_with_status(201);
        let (refusal, answer) = send(Method::DELETE, &format!("/v2/infra-envs/{infra_env}"), json!({})).await;
        answer.json_with_status(400);
        let (deletion, answer) = send(Method::DELETE, &format!("/v2/clusters/{cluster}"), json!({})).await;
        answer.json_with_status(204);
        let query = kindling::inventory::event::EventQuery::default();
        let page = service.inventory.records().store().events(&query).await.unwrap();
        for (name, request) in [
            ("cluster_registration_succeeded", registration),
            ("infra_env_registered", infra_env_registration),
            ("infra_env_deregister_failed", refusal),
            ("cluster_deregistered", deletion),
            ("host_deregistered", deletion),
        ] {
            let event = page.events.iter().find(|event| event.name == name);
            assert_eq!(event.and_then(|event| event.request), Some(request), "{name} in {:?}", page.events);
        }
    });
}
