//! The policy `local`: the access that each kind of token grants, with tokens from the service.

use std::sync::Arc;

use chrono::Utc;
use kindling::inventory::Inventory;
use kindling::inventory::auth::{KeyTexts, LocalKeys, Policy};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::service::{PULL_SECRET, ServiceAnswer, TestService, on_each_database_with_policy, send_request};

/// Creates a policy, and a user token for it.
fn local_policy_and_token() -> (Policy, String) {
    let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
    let user = keys.user_token(Utc::now(), None).unwrap().reveal().to_owned();
    (Policy::local(keys), user)
}

/// The requests of one user.
struct UserRequests<'a> {
    service: &'a TestService,
    token: &'a str,
}

impl UserRequests<'_> {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.service.request(method, path).bearer_auth(self.token)
    }

    async fn create(&self, path: &str, more: Value) -> Value {
        let mut body = json!({"name": "demo", "pull_secret": PULL_SECRET});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        send_request(self.request(Method::POST, path).json(&body)).await.json_with_status(201)
    }
}

fn id_of(record: &Value) -> &str {
    record["id"].as_str().unwrap()
}

/// Returns the token in the URL of an image.
fn url_token(infra_env: &Value) -> String {
    let url = infra_env["download_url"].as_str().unwrap();
    url.split("/byapikey/").nth(1).unwrap_or_else(|| panic!("{url}")).split('/').next().unwrap().to_owned()
}

async fn send_as_agent(service: &TestService, path: &str, token: &str) -> ServiceAnswer {
    send_request(service.request(Method::GET, path).header("X-Secret-Key", token)).await
}

/// Opens the same records with another policy.
fn inventory_with_policy(policy: Policy, service: &TestService) -> Inventory {
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
fn urls_change_with_the_auth_key() {
    let (policy, token) = local_policy_and_token();
    on_each_database_with_policy(policy.clone(), async |service| {
        let person = UserRequests { service, token: &token };
        let infra_env = person.create("/v2/infra-envs", json!({})).await;
        let path = format!("/v2/infra-envs/{}", id_of(&infra_env));
        let get = async || send_request(person.request(Method::GET, &path)).await.json_with_status(200);
        assert_eq!(service.inventory.renew_url_tokens().await.unwrap(), 0);
        assert_eq!(get().await["download_url"], infra_env["download_url"]);
        let (other, _) = local_policy_and_token();
        assert_eq!(inventory_with_policy(other.clone(), service).renew_url_tokens().await.unwrap(), 1);
        assert_eq!(inventory_with_policy(other, service).renew_url_tokens().await.unwrap(), 0);
        let renewed = get().await;
        assert_ne!(url_token(&renewed), url_token(&infra_env));
        assert_ne!(renewed["updated_at"], infra_env["updated_at"]);
        assert_eq!(inventory_with_policy(Policy::Open, service).renew_url_tokens().await.unwrap(), 1);
        assert_eq!(inventory_with_policy(Policy::Open, service).renew_url_tokens().await.unwrap(), 0);
        assert!(!get().await["download_url"].as_str().unwrap().contains("byapikey"));
        assert_eq!(service.inventory.renew_url_tokens().await.unwrap(), 1);
        url_token(&get().await);
    });
}

/// Every operation requires a token.
#[test]
fn every_operation_requires_a_token() {
    let document = serde_json::to_value(kindling::http::openapi()).unwrap();
    let (policy, _) = local_policy_and_token();
    on_each_database_with_policy(policy, async |service| {
        let mut request_count = 0;
        let paths = document["paths"].as_object().unwrap().iter();
        for (path, operations) in paths.filter(|(path, _)| path.starts_with("/v2/")) {
            let path = path.split('{').enumerate().map(|(index, part)| match part.split_once('}') {
                Some((_, rest)) if index > 0 => format!("6ba7b810-9dad-11d1-80b4-00c04fd430c8{rest}"),
                _ => part.to_owned(),
            });
            let path: String = path.collect();
            for method in operations.as_object().unwrap().keys().map(|name| name.to_uppercase()) {
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                for path in [path.clone(), format!("{path}?api_key=&image_token=")] {
                    let answer = send_request(service.request(method.clone(), &path)).await;
                    assert_eq!(
                        answer.refusal_reason(401),
                        "unauthenticated for invalid credentials",
                        "{method} {path}"
                    );
                }
                let path = format!("{path}?api_key=a&image_token=b");
                let request = service.request(method.clone(), &path).bearer_auth("c");
                send_request(request.header("X-Secret-Key", "d")).await.refusal_reason(401);
                request_count += 1;
            }
        }
        assert!(request_count > 15, "{request_count}");
    });
}

#[test]
fn url_token_grants_only_its_infra_env() {
    let (policy, user) = local_policy_and_token();
    on_each_database_with_policy(policy, async |service| {
        let person = UserRequests { service, token: &user };
        let own = person.create("/v2/infra-envs", json!({})).await;
        let other = person.create("/v2/infra-envs", json!({})).await;
        let token = url_token(&own);
        let path = format!("/v2/infra-envs/{}", id_of(&own));
        for request in [path.clone(), format!("{path}/downloads/files?file_name=discovery.ign")] {
            let joint = if request.contains('?') { '&' } else { '?' };
            let answer = service.get(&format!("{request}{joint}api_key={token}")).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            assert_eq!(send_as_agent(service, &request, &token).await.status, 200);
            let other = request.replace(id_of(&own), id_of(&other));
            let hidden = service.get(&format!("{other}{joint}api_key={token}")).await;
            assert_eq!(hidden.refusal_reason(404), "Object Not Found");
            assert_eq!(hidden.json()["code"], "404");
            assert_eq!(send_as_agent(service, &other, &token).await.refusal_reason(404), "Object Not Found");
        }
        let initrd = service.get(&format!("{path}/downloads/minimal-initrd?api_key={token}")).await;
        assert_eq!(initrd.status, 204, "{}", initrd.text);
        // Only users may list and change infra-envs.
        send_as_agent(service, "/v2/infra-envs", &token).await.refusal_reason(401);
        send_as_agent(service, &format!("/v2/infra-envs?cluster_id={}", id_of(&own)), &token)
            .await
            .refusal_reason(401);
        send_request(service.request(Method::DELETE, &path).header("X-Secret-Key", &token))
            .await
            .refusal_reason(401);
        send_request(person.request(Method::GET, "/v2/infra-envs")).await.json_with_status(200);
    });
}

#[test]
fn presigned_url_needs_no_token() {
    let (policy, user) = local_policy_and_token();
    on_each_database_with_policy(policy, async |service| {
        let person = UserRequests { service, token: &user };
        let infra_env = person.create("/v2/infra-envs", json!({})).await;
        let path =
            format!("/v2/infra-envs/{}/downloads/files-presigned?file_name=ipxe-script", id_of(&infra_env));
        service.get(&path).await.refusal_reason(401);
        let presigned = send_request(person.request(Method::GET, &path)).await.json_with_status(200);
        let url = presigned["url"].as_str().unwrap();
        let path = url.split_once("/api/assisted-install").unwrap().1;
        let script = service.get(path).await;
        assert_eq!(script.status, 200, "{}", script.text);
        assert!(script.text.starts_with("#!ipxe"), "{}", script.text);
    });
}

#[test]
fn token_expires_with_its_infra_env() {
    let (policy, user) = local_policy_and_token();
    on_each_database_with_policy(policy, async |service| {
        let person = UserRequests { service, token: &user };
        let infra_env = person.create("/v2/infra-envs", json!({})).await;
        let (path, token) = (format!("/v2/infra-envs/{}", id_of(&infra_env)), url_token(&infra_env));
        send_as_agent(service, &path, &token).await.json_with_status(200);
        assert_eq!(send_request(person.request(Method::DELETE, &path)).await.status, 204);
        let reason = send_as_agent(service, &path, &token).await.refusal_reason(401);
        assert_eq!(reason, format!("infra-env {} does not exist", id_of(&infra_env)));
        assert_eq!(service.get(&format!("{path}?api_key={token}")).await.status, 401);
    });
}

#[test]
fn infra_env_token_lists_only_its_hosts() {
    let (policy, user) = local_policy_and_token();
    on_each_database_with_policy(policy, async |service| {
        let person = UserRequests { service, token: &user };
        let cluster = json!({"openshift_version": "4.18", "base_dns_domain": "example.com"});
        let mut infra_envs = Vec::new();
        for _ in 0..2 {
            let cluster = person.create("/v2/clusters", cluster.clone()).await;
            let infra_env = person.create("/v2/infra-envs", json!({"cluster_id": id_of(&cluster)})).await;
            let host = Uuid::new_v4().to_string();
            let path = format!("/v2/infra-envs/{}/hosts", id_of(&infra_env));
            let token = url_token(&infra_env);
            let agent = service.request(Method::POST, &path).header("X-Secret-Key", &token);
            send_request(agent.json(&json!({"host_id": host}))).await.json_with_status(201);
            infra_envs.push((path, format!("/v2/clusters/{}/hosts", id_of(&cluster)), host, token));
        }
        let [(own, own_cluster, host, token), (other, other_cluster, ..)] = &infra_envs[..] else {
            panic!("two")
        };
        for range in ["", "?offset=0", "?limit=100", "?offset=0&limit=1"] {
            for path in [own, own_cluster] {
                let list =
                    send_as_agent(service, &format!("{path}{range}"), token).await.json_with_status(200);
                assert_eq!(list.as_array().unwrap().len(), 1, "{path}{range}");
                assert_eq!(list[0]["id"], **host, "{path}{range}");
            }
            for path in [other, other_cluster] {
                let refused = send_as_agent(service, &format!("{path}{range}"), token).await;
                assert_eq!(refused.refusal_reason(404), "Object Not Found", "{path}{range}");
            }
            for path in ["/v2/clusters", "/v2/infra-envs"] {
                send_as_agent(service, &format!("{path}{range}"), token).await.refusal_reason(401);
                let list = send_request(person.request(Method::GET, &format!("{path}{range}"))).await;
                let expected = if range.contains("limit=1") && !range.contains("100") { 1 } else { 2 };
                assert_eq!(list.json_with_status(200).as_array().unwrap().len(), expected, "{path}{range}");
            }
        }
        let past = send_as_agent(service, &format!("{own}?offset=1"), token).await;
        assert_eq!(past.text, "[]\n");
    });
}

#[test]
fn infra_env_token_reads_its_cluster() {
    let (policy, user) = local_policy_and_token();
    on_each_database_with_policy(policy, async |service| {
        let person = UserRequests { service, token: &user };
        let cluster = json!({"openshift_version": "4.18", "base_dns_domain": "example.com"});
        let own = person.create("/v2/clusters", cluster.clone()).await;
        let other = person.create("/v2/clusters", cluster).await;
        let infra_env = person.create("/v2/infra-envs", json!({"cluster_id": id_of(&own)})).await;
        let token = url_token(&infra_env);
        let path = |cluster: &Value| format!("/v2/clusters/{}", id_of(cluster));
        send_as_agent(service, &path(&own), &token).await.json_with_status(200);
        assert_eq!(
            send_as_agent(service, &path(&other), &token).await.refusal_reason(404),
            "Object Not Found"
        );
        send_as_agent(service, "/v2/clusters", &token).await.refusal_reason(401);
        // In the query of a URL, the token of the agent grants no access.
        service.get(&format!("{}?api_key={token}", path(&own))).await.refusal_reason(401);
    });
}

#[test]
fn request_bodies_are_limited() {
    let (policy, user) = local_policy_and_token();
    on_each_database_with_policy(policy, async |service| {
        let person = UserRequests { service, token: &user };
        let body =
            json!({"name": "demo", "pull_secret": PULL_SECRET, "ssh_authorized_key": "A".repeat(33 << 20)});
        // An unauthorised request is refused before its body is read.
        let refused = send_request(service.request(Method::POST, "/v2/infra-envs").json(&body)).await;
        refused.refusal_reason(401);
        let refused = send_request(person.request(Method::POST, "/v2/infra-envs").json(&body)).await;
        refused.refusal_reason(413);
        assert_eq!(refused.json()["code"], 413);
    });
}

async fn post_event(service: &TestService, token: &str, more: &Value) -> ServiceAnswer {
    let mut body = json!({"severity": "info", "message": "told", "event_time": "2026-08-21T10:00:00Z"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    send_request(service.request(Method::POST, "/v2/events").header("X-Secret-Key", token).json(&body)).await
}

#[test]
fn rejects_event_for_a_host_of_another_infra_env() {
    let (policy, user) = local_policy_and_token();
    on_each_database_with_policy(policy, async |service| {
        let person = UserRequests { service, token: &user };
        let cluster = json!({"openshift_version": "4.18", "base_dns_domain": "example.com"});
        let cluster = person.create("/v2/clusters", cluster).await;
        let own = person.create("/v2/infra-envs", json!({"cluster_id": id_of(&cluster)})).await;
        let other = person.create("/v2/infra-envs", json!({})).await;
        let mut hosts = Vec::new();
        for infra_env in [&own, &other] {
            let host = uuid::Uuid::new_v4().to_string();
            let request =
                service.request(Method::POST, &format!("/v2/infra-envs/{}/hosts", id_of(infra_env)));
            let request = request.header("X-Secret-Key", url_token(infra_env));
            send_request(request.json(&json!({"host_id": host}))).await.json_with_status(201);
            hosts.push(host);
        }
        let [own_host, foreign] = hosts.try_into().unwrap();
        let token = url_token(&own);
        for (status, more) in [
            (201, json!({"infra_env_id": id_of(&own)})),
            (201, json!({"infra_env_id": id_of(&own), "host_id": own_host})),
            (201, json!({"infra_env_id": id_of(&own), "host_id": own_host, "cluster_id": id_of(&cluster)})),
            (201, json!({"cluster_id": id_of(&cluster)})),
            (201, json!({"cluster_id": id_of(&cluster), "host_id": own_host})),
            (404, json!({"infra_env_id": id_of(&own), "host_id": foreign})),
            (404, json!({"infra_env_id": id_of(&own), "host_id": uuid::Uuid::new_v4()})),
            (404, json!({"infra_env_id": id_of(&own), "host_id": foreign, "cluster_id": id_of(&cluster)})),
            (404, json!({"cluster_id": id_of(&cluster), "host_id": foreign})),
            (404, json!({"host_id": own_host})),
        ] {
            let answer = post_event(service, &token, &more).await;
            assert_eq!(answer.status, status, "{more}: {}", answer.text);
            if status == 404 {
                assert_eq!(answer.refusal_reason(404), "Object Not Found");
            }
        }
        let path = format!("/v2/events?host_ids={foreign}");
        let events = send_request(person.request(Method::GET, &path)).await.json_with_status(200);
        assert!(events.as_array().unwrap().iter().all(|event| event["message"] != "told"), "{events}");
    });
}

#[test]
fn agents_cannot_access_the_deleted_cluster_of_their_infra_env() {
    let (policy, user) = local_policy_and_token();
    on_each_database_with_policy(policy, async |service| {
        let person = UserRequests { service, token: &user };
        let options = json!({"openshift_version": "4.14", "high_availability_mode": "Full"});
        let cluster = person.create("/v2/clusters", options).await;
        let infra_env = person.create("/v2/infra-envs", json!({"cluster_id": id_of(&cluster)})).await;
        let token = url_token(&infra_env);
        let path = format!("/v2/clusters/{}", id_of(&cluster));
        for path in [path.clone(), format!("{path}/hosts")] {
            assert_eq!(send_as_agent(service, &path, &token).await.status, 200);
        }
        assert_eq!(send_request(person.request(Method::DELETE, &path)).await.status, 204);
        for path in [path.clone(), format!("{path}/hosts")] {
            let request = service.request(Method::GET, &path).header("X-Secret-Key", &token);
            let answer = send_request(request.header("get_unregistered_clusters", "true")).await;
            assert_eq!(answer.refusal_reason(404), "Object Not Found", "{path}");
        }
    });
}
