//! The policy `local`: who reaches what, with tokens as the service itself hands them out.

use std::sync::Arc;

use kindling::inventory::Inventory;
use kindling::inventory::auth::{KeyTexts, LocalKeys, Policy};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::service::{Answer, PULL_SECRET, Service, on_each_database_under, send};

/// A policy, and a token of a person for it.
fn local() -> (Policy, String) {
    let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
    let user = keys.user_token(None).reveal().to_owned();
    (Policy::local(keys), user)
}

/// Requests of one person.
struct Person<'a> {
    service: &'a Service,
    token: &'a str,
}

impl Person<'_> {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.service.request(method, path).bearer_auth(self.token)
    }

    async fn register(&self, path: &str, more: Value) -> Value {
        let mut body = json!({"name": "demo", "pull_secret": PULL_SECRET});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        send(self.request(Method::POST, path).json(&body)).await.expect(201)
    }
}

fn id(record: &Value) -> &str {
    record["id"].as_str().unwrap()
}

/// The token in the URL of an image.
fn url_token(infra_env: &Value) -> String {
    let url = infra_env["download_url"].as_str().unwrap();
    url.split("/byapikey/").nth(1).unwrap_or_else(|| panic!("{url}")).split('/').next().unwrap().to_owned()
}

async fn as_agent(service: &Service, path: &str, token: &str) -> Answer {
    send(service.request(Method::GET, path).header("X-Secret-Key", token)).await
}

/// The same records, under another policy.
fn under(policy: Policy, service: &Service) -> Inventory {
    let inventory = &service.inventory;
    Inventory::new(
        Arc::clone(inventory.records().store()),
        inventory.files().clone(),
        inventory.catalogue().clone(),
        inventory.settings().clone(),
        policy,
    )
}

#[test]
fn urls_follow_the_key_of_the_policy() {
    let (policy, token) = local();
    on_each_database_under(policy.clone(), async |service| {
        let person = Person { service, token: &token };
        let made = person.register("/v2/infra-envs", json!({})).await;
        let path = format!("/v2/infra-envs/{}", id(&made));
        let get = async || send(person.request(Method::GET, &path)).await.expect(200);
        assert_eq!(service.inventory.renew_url_tokens().await.unwrap(), 0);
        assert_eq!(get().await["download_url"], made["download_url"]);
        let (other, _) = local();
        assert_eq!(under(other.clone(), service).renew_url_tokens().await.unwrap(), 1);
        assert_eq!(under(other, service).renew_url_tokens().await.unwrap(), 0);
        let renewed = get().await;
        assert_ne!(url_token(&renewed), url_token(&made));
        assert_ne!(renewed["updated_at"], made["updated_at"]);
        assert_eq!(under(Policy::Open, service).renew_url_tokens().await.unwrap(), 1);
        assert_eq!(under(Policy::Open, service).renew_url_tokens().await.unwrap(), 0);
        assert!(!get().await["download_url"].as_str().unwrap().contains("byapikey"));
        assert_eq!(service.inventory.renew_url_tokens().await.unwrap(), 1);
        url_token(&get().await);
    });
}

/// Whatever an operation is: nobody comes to it without a token.
#[test]
fn no_operation_is_open() {
    let document = serde_json::to_value(Inventory::openapi()).unwrap();
    let (policy, _) = local();
    on_each_database_under(policy, async |service| {
        let mut asked = 0;
        for (path, operations) in document["paths"].as_object().unwrap() {
            let path = path.split('{').enumerate().map(|(index, part)| match part.split_once('}') {
                Some((_, rest)) if index > 0 => format!("6ba7b810-9dad-11d1-80b4-00c04fd430c8{rest}"),
                _ => part.to_owned(),
            });
            let path: String = path.collect();
            for method in operations.as_object().unwrap().keys().map(|name| name.to_uppercase()) {
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                for path in [path.clone(), format!("{path}?api_key=&image_token=")] {
                    let answer = send(service.request(method.clone(), &path)).await;
                    assert_eq!(
                        answer.refused(401),
                        "unauthenticated for invalid credentials",
                        "{method} {path}"
                    );
                }
                let path = format!("{path}?api_key=a&image_token=b");
                let request = service.request(method.clone(), &path).bearer_auth("c");
                send(request.header("X-Secret-Key", "d")).await.refused(401);
                asked += 1;
            }
        }
        assert!(asked > 15, "{asked}");
    });
}

#[test]
fn the_token_in_a_url_opens_its_infra_env_alone() {
    let (policy, user) = local();
    on_each_database_under(policy, async |service| {
        let person = Person { service, token: &user };
        let own = person.register("/v2/infra-envs", json!({})).await;
        let other = person.register("/v2/infra-envs", json!({})).await;
        let token = url_token(&own);
        let path = format!("/v2/infra-envs/{}", id(&own));
        for request in [path.clone(), format!("{path}/downloads/files?file_name=discovery.ign")] {
            let joint = if request.contains('?') { '&' } else { '?' };
            let answer = service.get(&format!("{request}{joint}api_key={token}")).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            assert_eq!(as_agent(service, &request, &token).await.status, 200);
            let other = request.replace(id(&own), id(&other));
            let hidden = service.get(&format!("{other}{joint}api_key={token}")).await;
            assert_eq!(hidden.refused(404), "Object Not Found");
            assert_eq!(hidden.json()["code"], "404");
            assert_eq!(as_agent(service, &other, &token).await.refused(404), "Object Not Found");
        }
        let initrd = service.get(&format!("{path}/downloads/minimal-initrd?api_key={token}")).await;
        assert_eq!(initrd.status, 204, "{}", initrd.text);
        // Lists and changes are for people.
        as_agent(service, "/v2/infra-envs", &token).await.refused(401);
        as_agent(service, &format!("/v2/infra-envs?cluster_id={}", id(&own)), &token).await.refused(401);
        send(service.request(Method::DELETE, &path).header("X-Secret-Key", &token)).await.refused(401);
        send(person.request(Method::GET, "/v2/infra-envs")).await.expect(200);
    });
}

#[test]
fn a_presigned_url_needs_nothing_else() {
    let (policy, user) = local();
    on_each_database_under(policy, async |service| {
        let person = Person { service, token: &user };
        let infra_env = person.register("/v2/infra-envs", json!({})).await;
        let path =
            format!("/v2/infra-envs/{}/downloads/files-presigned?file_name=ipxe-script", id(&infra_env));
        service.get(&path).await.refused(401);
        let presigned = send(person.request(Method::GET, &path)).await.expect(200);
        let url = presigned["url"].as_str().unwrap();
        let path = url.split_once("/api/assisted-install").unwrap().1;
        let script = service.get(path).await;
        assert_eq!(script.status, 200, "{}", script.text);
        assert!(script.text.starts_with("#!ipxe"), "{}", script.text);
    });
}

#[test]
fn a_token_ends_with_its_infra_env() {
    let (policy, user) = local();
    on_each_database_under(policy, async |service| {
        let person = Person { service, token: &user };
        let infra_env = person.register("/v2/infra-envs", json!({})).await;
        let (path, token) = (format!("/v2/infra-envs/{}", id(&infra_env)), url_token(&infra_env));
        as_agent(service, &path, &token).await.expect(200);
        assert_eq!(send(person.request(Method::DELETE, &path)).await.status, 204);
        let reason = as_agent(service, &path, &token).await.refused(401);
        assert_eq!(reason, format!("infra-env {} does not exist", id(&infra_env)));
        assert_eq!(service.get(&format!("{path}?api_key={token}")).await.status, 401);
    });
}

#[test]
fn a_machine_reaches_the_cluster_of_its_infra_env() {
    let (policy, user) = local();
    on_each_database_under(policy, async |service| {
        let person = Person { service, token: &user };
        let cluster = json!({"openshift_version": "4.18", "base_dns_domain": "example.com"});
        let own = person.register("/v2/clusters", cluster.clone()).await;
        let other = person.register("/v2/clusters", cluster).await;
        let infra_env = person.register("/v2/infra-envs", json!({"cluster_id": id(&own)})).await;
        let token = url_token(&infra_env);
        let path = |cluster: &Value| format!("/v2/clusters/{}", id(cluster));
        as_agent(service, &path(&own), &token).await.expect(200);
        assert_eq!(as_agent(service, &path(&other), &token).await.refused(404), "Object Not Found");
        as_agent(service, "/v2/clusters", &token).await.refused(401);
        // In a URL, the same token does not.
        service.get(&format!("{}?api_key={token}", path(&own))).await.refused(401);
    });
}

#[test]
fn a_body_has_an_end() {
    let (policy, user) = local();
    on_each_database_under(policy, async |service| {
        let person = Person { service, token: &user };
        let body =
            json!({"name": "demo", "pull_secret": PULL_SECRET, "ssh_authorized_key": "A".repeat(33 << 20)});
        // Who may not do it does not get as far as the body.
        let refused = send(service.request(Method::POST, "/v2/infra-envs").json(&body)).await;
        refused.refused(401);
        let refused = send(person.request(Method::POST, "/v2/infra-envs").json(&body)).await;
        refused.refused(413);
        assert_eq!(refused.json()["code"], 413);
    });
}

async fn tell(service: &Service, token: &str, more: &Value) -> Answer {
    let mut body = json!({"severity": "info", "message": "told", "event_time": "2026-08-21T10:00:00Z"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    send(service.request(Method::POST, "/v2/events").header("X-Secret-Key", token).json(&body)).await
}

#[test]
fn an_event_is_of_hosts_that_are_where_it_says() {
    let (policy, user) = local();
    on_each_database_under(policy, async |service| {
        let person = Person { service, token: &user };
        let cluster = json!({"openshift_version": "4.18", "base_dns_domain": "example.com"});
        let cluster = person.register("/v2/clusters", cluster).await;
        let own = person.register("/v2/infra-envs", json!({"cluster_id": id(&cluster)})).await;
        let other = person.register("/v2/infra-envs", json!({})).await;
        let mut hosts = Vec::new();
        for infra_env in [&own, &other] {
            let host = uuid::Uuid::new_v4().to_string();
            let request = service.request(Method::POST, &format!("/v2/infra-envs/{}/hosts", id(infra_env)));
            let request = request.header("X-Secret-Key", url_token(infra_env));
            send(request.json(&json!({"host_id": host}))).await.expect(201);
            hosts.push(host);
        }
        let [own_host, foreign] = hosts.try_into().unwrap();
        let token = url_token(&own);
        for (status, more) in [
            (201, json!({"infra_env_id": id(&own)})),
            (201, json!({"infra_env_id": id(&own), "host_id": own_host})),
            (201, json!({"infra_env_id": id(&own), "host_id": own_host, "cluster_id": id(&cluster)})),
            (201, json!({"cluster_id": id(&cluster)})),
            (201, json!({"cluster_id": id(&cluster), "host_id": own_host})),
            (404, json!({"infra_env_id": id(&own), "host_id": foreign})),
            (404, json!({"infra_env_id": id(&own), "host_id": uuid::Uuid::new_v4()})),
            (404, json!({"infra_env_id": id(&own), "host_id": foreign, "cluster_id": id(&cluster)})),
            (404, json!({"cluster_id": id(&cluster), "host_id": foreign})),
            (404, json!({"host_id": own_host})),
        ] {
            let answer = tell(service, &token, &more).await;
            assert_eq!(answer.status, status, "{more}: {}", answer.text);
            if status == 404 {
                assert_eq!(answer.refused(404), "Object Not Found");
            }
        }
        let path = format!("/v2/events?host_ids={foreign}");
        let told = send(person.request(Method::GET, &path)).await.expect(200);
        assert!(told.as_array().unwrap().iter().all(|event| event["message"] != "told"), "{told}");
    });
}
