//! The calls and credentials for images, against a service like the Assisted Service.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use futures_util::future::join_all;
use kindling::http::images::{Artifact, ExternalInputs, ExternalSettings, ImageCredentials, ImageInputs};
use serde_json::json;
use tokio::sync::watch;

use crate::go_service::GoService;
use crate::peer_service::{InjectedFault, ServiceCall, ServiceReply};
use crate::server::{ExternalImageServer, ID, assert_refused, header_text, strict_settings};

fn full_iso_path() -> String {
    format!("/byid/{ID}/4.14/x86_64/full.iso")
}

fn caller_token() -> String {
    let claims = URL_SAFE_NO_PAD.encode(json!({"infra_env_id": ID}).to_string());
    format!("eyJhbGciOiJFUzI1NiJ9.{claims}.c2ln")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_image_makes_the_same_calls_as_the_go_service() {
    let go = GoService::start().await;
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let config =
        |kind: &str| format!("{ID}/downloads/files?discovery_iso_type={kind}&file_name=discovery.ign");
    let early_boot = format!("{ID}/downloads/minimal-initrd");
    let without_kind = format!("{ID}/downloads/files?file_name=discovery.ign");
    for (path, operations) in [
        (full_iso_path(), vec![config("full-iso"), ID.to_owned()]),
        (
            format!("/byid/{ID}/4.14/x86_64/minimal.iso"),
            vec![config("minimal-iso"), early_boot.clone(), ID.to_owned()],
        ),
        (format!("/byid/{ID}/4.19/x86_64/disconnected.iso"), vec![config("disconnected-iso"), ID.to_owned()]),
        (format!("/images/{ID}/pxe-initrd?version=4.14"), vec![without_kind.clone(), early_boot]),
        // The previous request has cached the inputs of this initrd, so one call is enough to check them.
        (format!("/images/{ID}/pxe-initrd?version=4.18"), vec![without_kind]),
        ("/boot-artifacts/kernel?version=4.14".to_owned(), vec![]),
    ] {
        assert_eq!(server.get(&path).await.status(), 200, "{path}");
        assert_eq!(go.peer.take_operations(), operations, "{path}");
    }
}

/// The credentials in the order of precedence of the Go service: the server forwards only the first one, in its
/// original field.
#[tokio::test(flavor = "multi_thread")]
async fn caller_credentials_are_forwarded_in_the_same_field() {
    let go = GoService::start().await;
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let token = caller_token();
    let key = |call: &ServiceCall| {
        let query = call.target.split_once('?').map_or("", |(_, query)| query);
        query.split('&').find_map(|pair| pair.strip_prefix("api_key=")).map(str::to_owned)
    };
    let person = [("authorization", "Bearer someone")];
    let rest = "4.14/x86_64/minimal.iso";
    let long = format!("/images/{ID}?version=4.14&type=minimal-iso");
    for (path, headers, api_key, image_token, authorization) in [
        (format!("/byapikey/{token}/{rest}?api_key=other"), &person[..], Some(token.as_str()), None, None),
        (format!("/bytoken/{token}/{rest}?api_key=k&image_token=t"), &person, Some("k"), None, None),
        (format!("/bytoken/{token}/{rest}?image_token=t"), &person, None, Some(token.as_str()), None),
        (format!("{long}&image_token=t&api_key=l"), &person, Some("l"), None, None),
        (format!("{long}&image_token=t"), &person, None, Some("t"), None),
        (long.clone(), &person, None, None, Some("Bearer someone")),
        (long, &[], None, None, None),
        (format!("/images/{ID}/pxe-initrd?version=4.14&api_key=a%20b"), &[], Some("a+b"), None, None),
    ] {
        assert_eq!(server.get_with(&path, headers).await.status(), 200, "{path}");
        let calls = go.peer.take_calls();
        assert!(calls.len() >= 2, "{path}: {calls:?}");
        for call in calls {
            assert_eq!(key(&call).as_deref(), api_key, "{path}: {call:?}");
            assert_eq!(call.header("image-token"), image_token, "{path}: {call:?}");
            assert_eq!(call.header("authorization"), authorization, "{path}: {call:?}");
        }
    }
}

async fn request_ranges(server: &ExternalImageServer, count: usize) {
    for number in 0..count {
        let range = format!("bytes={}-{}", number * 512, number * 512 + 2047);
        let response = server.get_with(&full_iso_path(), &[("range", &range)]).await;
        assert_eq!(response.status(), 206);
        assert_eq!(response.bytes().await.unwrap().len(), 2048);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn range_costs_one_call_and_a_burst_costs_none() {
    let go = GoService::start().await;
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    request_ranges(&server, 1000).await;
    let calls = go.peer.take_calls();
    assert_eq!(calls.len(), 2 + 999);
    for call in &calls[2..] {
        assert!(call.operation().contains("file_name=discovery.ign") && call.is_conditional(), "{call:?}");
    }
    let trusting = ExternalSettings { trust: Duration::from_secs(3600), ..strict_settings(&go.peer.url()) };
    request_ranges(&ExternalImageServer::start(&trusting).await, 1000).await;
    assert_eq!(go.peer.take_calls().len(), 2);
}

/// Without timestamps of the service, each request makes all calls.
#[tokio::test(flavor = "multi_thread")]
async fn service_without_timestamps_is_never_cached() {
    let go = GoService::start().await;
    go.change(|record| record.tells_times = false);
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let (before, tag) = server.image(&full_iso_path()).await;
    request_ranges(&server, 9).await;
    assert_eq!(go.peer.take_calls().len(), 2 * 10);
    go.change(|record| record.kernel_arguments = None);
    let (after, other) = server.image(&full_iso_path()).await;
    assert!(before != after && tag != other);
}

/// All requests that arrive during a call share the next call, which begins after they arrived.
#[tokio::test]
async fn waiting_requests_share_one_call() {
    let go = GoService::start().await;
    let inputs = ExternalInputs::new(&strict_settings(&go.peer.url())).unwrap();
    let (open, gate) = watch::channel(false);
    go.peer.inject_fault("discovery.ign", InjectedFault::Held(gate));
    let opened = async {
        go.peer.wait_for_calls(1).await;
        open.send_replace(true);
    };
    let ask = || async {
        inputs.current_snapshot(ID.parse().unwrap(), Artifact::FullIso, &ImageCredentials::Nothing).await
    };
    let (outcomes, ()) = tokio::join!(join_all((0..50).map(|_| ask())), opened);
    let revisions: Vec<Arc<str>> = outcomes.into_iter().map(|outcome| outcome.unwrap().revision).collect();
    assert!(revisions.iter().all(|revision| *revision == revisions[0]));
    assert_eq!(go.peer.take_calls().len(), 2 + 1);
    go.peer.inject_fault("", InjectedFault::Answer(ServiceReply::new(403, "")));
    let outcomes = join_all((0..50).map(|_| ask())).await;
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().unwrap_err().status() == 403));
    assert_eq!(
        go.peer.take_calls().len(),
        2,
        "expected the first call and one call for all requests during it"
    );
    ask().await.unwrap_err();
    assert_eq!(go.peer.take_calls().len(), 1, "refusals are not cached");
}

/// Granted access applies to one caller and one image.
#[tokio::test(flavor = "multi_thread")]
async fn granted_access_is_not_shared_between_callers() {
    let go = GoService::start().await;
    let trusting = ExternalSettings { trust: Duration::from_secs(3600), ..strict_settings(&go.peer.url()) };
    let server = ExternalImageServer::start(&trusting).await;
    let image = |key: &str, file: &str| {
        let kind = format!("{file}-iso");
        format!("/images/{ID}?version=4.14&type={kind}&api_key={key}")
    };
    assert_eq!(server.get(&image("good", "full")).await.status(), 200);
    go.peer.inject_fault("", InjectedFault::Answer(ServiceReply::new(401, "")));
    assert_eq!(server.get(&image("good", "full")).await.status(), 200, "within the trust time");
    let other = "8c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";
    for path in [
        image("other", "full"),
        image("good", "minimal"),
        image("good", "full").replace(ID, other),
        image("good", "full").replace("api_key", "image_token"),
        full_iso_path(),
    ] {
        assert_refused(&server.get(&path).await, 401, &path);
    }
}

/// If each request is checked, a revoked token is refused immediately. When access is restored, the server uses its
/// cached data again.
#[tokio::test(flavor = "multi_thread")]
async fn revoked_token_is_refused() {
    let go = GoService::start().await;
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let (bytes, tag) = server.image(&full_iso_path()).await;
    for status in [401, 403, 404] {
        go.peer.inject_fault("", InjectedFault::Answer(ServiceReply::new(status, "")));
        assert_refused(&server.get(&full_iso_path()).await, status, "all of it");
        let condition = [("if-none-match", tag.as_str())];
        assert_refused(&server.get_with(&full_iso_path(), &condition).await, status, "a condition");
        assert_refused(
            &server.get_with(&full_iso_path(), &[("range", "bytes=0-1")]).await,
            status,
            "a range",
        );
    }
    go.peer.clear_faults();
    go.peer.take_calls();
    assert_eq!(server.image(&full_iso_path()).await, (bytes, tag));
    assert_eq!(go.peer.take_calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_any_input_changes_the_image() {
    let go = GoService::start().await;
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let minimal = format!("/byid/{ID}/4.14/x86_64/minimal.iso");
    let mut images = vec![server.image(&minimal).await];
    let changes: [fn(&mut crate::go_service::GoRecord); 3] = [
        |record| {
            record.kernel_arguments = Some(json!([{"operation": "append", "value": "loud"}]).to_string())
        },
        |record| record.early_boot = Some(b"\x1f\x8b an archive".to_vec()),
        |record| record.config = json!({"ignition": {"version": "3.2.0"}}).to_string(),
    ];
    for change in changes {
        go.change(change);
        let now = server.image(&minimal).await;
        assert!(images.iter().all(|(bytes, tag)| *bytes != now.0 && *tag != now.1));
        let (old_bytes, old_tag) = images.last().unwrap();
        let going_on = [("range", "bytes=100000-"), ("if-range", old_tag.as_str())];
        let whole = server.get_with(&minimal, &going_on).await;
        assert_eq!(whole.status(), 200);
        assert!(whole.bytes().await.unwrap() == now.0 && *old_bytes != now.0);
        images.push(now);
    }
    // A change to the settings of the service changes the config without a newer timestamp.
    go.change(|record| {
        record.updated_at -= chrono::TimeDelta::seconds(100);
        record.config = json!({"ignition": {"version": "3.3.0"}}).to_string();
    });
    let now = server.image(&minimal).await;
    assert!(images.iter().all(|(_, tag)| *tag != now.1));
    // A change that results in the same image keeps the tag.
    go.peer.take_calls();
    go.change(|_| {});
    let response = server.get(&minimal).await;
    assert_eq!(header_text(&response, "etag"), now.1);
    assert_eq!(go.peer.take_calls().len(), 3);
}

/// Two changes within one second have the same timestamp.
#[tokio::test(flavor = "multi_thread")]
async fn second_change_within_a_second_changes_the_image() {
    let go = GoService::start().await;
    go.change(|record| record.updated_at = Utc::now() + chrono::TimeDelta::days(1));
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let before = server.image(&full_iso_path()).await;
    go.record.lock().unwrap().kernel_arguments = None;
    let after = server.image(&full_iso_path()).await;
    assert!(before.0 != after.0 && before.1 != after.1);
}

/// The token has a new signature in each call, but all ranges of a download belong to the same image.
#[tokio::test(flavor = "multi_thread")]
async fn freshly_signed_token_keeps_the_image() {
    let go = GoService::start().await;
    go.change(|record| record.signs = true);
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let first = server.image(&full_iso_path()).await;
    assert_eq!(server.image(&full_iso_path()).await, first);
    go.change(|_| {});
    let after = server.image(&full_iso_path()).await;
    assert!(after.0 != first.0 && after.1 != first.1, "the record has changed");
    assert_eq!(server.image(&full_iso_path()).await, after);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_have_the_same_tags() {
    let go = GoService::start().await;
    let one =
        ExternalImageServer::start(&strict_settings(&go.peer.url())).await.image(&full_iso_path()).await;
    let other =
        ExternalImageServer::start(&strict_settings(&go.peer.url())).await.image(&full_iso_path()).await;
    assert_eq!(one.1, other.1);
    assert!(one.0 == other.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_architecture_or_version_is_reported() {
    let go = GoService::start().await;
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let mainframe = format!("/byid/{ID}/4.14/s390x/full.iso");
    let refused = server.get(&mainframe).await;
    assert_refused(&refused, 400, &mainframe);
    assert!(refused.text().await.unwrap().contains("kargs cannot be modified in s390x architecture ISOs"));
    go.change(|record| record.kernel_arguments = None);
    assert_eq!(server.get(&mainframe).await.status(), 200);
    let addrsize = format!("/images/{ID}/s390x-initrd-addrsize?version=4.14");
    assert_eq!(server.get(&addrsize).await.status(), 200);
    for (path, status) in [
        (format!("/byid/{ID}/4.99/x86_64/full.iso"), 404),
        (format!("/byid/{ID}/4.19/x86_64/full.iso"), 404),
        (format!("/byid/{ID}/4.14/x86_64/disconnected.iso"), 404),
        (format!("/images/{ID}/pxe-initrd?version=4.99"), 400),
        (format!("/images/{ID}/s390x-initrd-addrsize?version=4.99"), 400),
        ("/boot-artifacts/kernel?version=4.99".to_owned(), 400),
        ("/elsewhere".to_owned(), 404),
    ] {
        assert_refused(&server.get(&path).await, status, &path);
    }
    let disconnected = server.get(&format!("/byid/{ID}/4.19/x86_64/disconnected.iso")).await;
    assert_eq!(disconnected.status(), 200);
    assert!(header_text(&disconnected, "content-disposition").contains("agent-ove.x86_64.iso"));
}
