//! Which calls an image costs, with which credentials, against a service as the Go one.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use futures_util::future::join_all;
use kindling::http::images::{Access, Artifact, External, ExternalSettings, ImageInputs};
use serde_json::json;
use tokio::sync::watch;

use crate::go::Go;
use crate::peer::{Call, Fault, Reply};
use crate::server::{ID, Server, assert_refused, header, strict};

fn full() -> String {
    format!("/byid/{ID}/4.14/x86_64/full.iso")
}

fn token() -> String {
    let claims = URL_SAFE_NO_PAD.encode(json!({"infra_env_id": ID}).to_string());
    format!("eyJhbGciOiJFUzI1NiJ9.{claims}.c2ln")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_image_is_asked_for_as_it_always_was() {
    let go = Go::start().await;
    let server = Server::start(&strict(&go.peer.url())).await;
    let config =
        |kind: &str| format!("{ID}/downloads/files?discovery_iso_type={kind}&file_name=discovery.ign");
    let early_boot = format!("{ID}/downloads/minimal-initrd");
    let without_kind = format!("{ID}/downloads/files?file_name=discovery.ign");
    for (path, operations) in [
        (full(), vec![config("full-iso"), ID.to_owned()]),
        (
            format!("/byid/{ID}/4.14/x86_64/minimal.iso"),
            vec![config("minimal-iso"), early_boot.clone(), ID.to_owned()],
        ),
        (format!("/byid/{ID}/4.19/x86_64/disconnected.iso"), vec![config("disconnected-iso"), ID.to_owned()]),
        (format!("/images/{ID}/pxe-initrd?version=4.14"), vec![without_kind.clone(), early_boot]),
        // What that is made of is known by now.
        (format!("/images/{ID}/pxe-initrd?version=4.18"), vec![without_kind]),
        ("/boot-artifacts/kernel?version=4.14".to_owned(), vec![]),
    ] {
        assert_eq!(server.get(&path).await.status(), 200, "{path}");
        assert_eq!(go.peer.operations(), operations, "{path}");
    }
}

/// The table of the Go service: the first that is there is passed on, in its own place, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_shows_is_passed_on_in_its_place() {
    let go = Go::start().await;
    let server = Server::start(&strict(&go.peer.url())).await;
    let token = token();
    let key = |call: &Call| {
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
        let calls = go.peer.calls();
        assert!(calls.len() >= 2, "{path}: {calls:?}");
        for call in calls {
            assert_eq!(key(&call).as_deref(), api_key, "{path}: {call:?}");
            assert_eq!(call.header("image-token"), image_token, "{path}: {call:?}");
            assert_eq!(call.header("authorization"), authorization, "{path}: {call:?}");
        }
    }
}

async fn ranges(server: &Server, count: usize) {
    for number in 0..count {
        let range = format!("bytes={}-{}", number * 512, number * 512 + 2047);
        let response = server.get_with(&full(), &[("range", &range)]).await;
        assert_eq!(response.status(), 206);
        assert_eq!(response.bytes().await.unwrap().len(), 2048);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_costs_one_call_and_a_burst_none() {
    let go = Go::start().await;
    let server = Server::start(&strict(&go.peer.url())).await;
    ranges(&server, 1000).await;
    let calls = go.peer.calls();
    assert_eq!(calls.len(), 2 + 999);
    for call in &calls[2..] {
        assert!(call.operation().contains("file_name=discovery.ign") && call.is_conditional(), "{call:?}");
    }
    let trusting = ExternalSettings { trust: Duration::from_secs(3600), ..strict(&go.peer.url()) };
    ranges(&Server::start(&trusting).await, 1000).await;
    assert_eq!(go.peer.calls().len(), 2);
}

/// A service whose times are not known is asked everything each time.
#[tokio::test(flavor = "multi_thread")]
async fn without_times_nothing_is_taken_to_be_the_same() {
    let go = Go::start().await;
    go.change(|record| record.tells_times = false);
    let server = Server::start(&strict(&go.peer.url())).await;
    let (before, tag) = server.image(&full()).await;
    ranges(&server, 9).await;
    assert_eq!(go.peer.calls().len(), 2 * 10);
    go.change(|record| record.kernel_arguments = None);
    let (after, other) = server.image(&full()).await;
    assert!(before != after && tag != other);
}

/// All who come while the service is asked take one answer to a call that began after they came.
#[tokio::test]
async fn those_who_wait_are_answered_together() {
    let go = Go::start().await;
    let inputs = External::new(&strict(&go.peer.url())).unwrap();
    let (open, gate) = watch::channel(false);
    go.peer.fail("discovery.ign", Fault::Held(gate));
    let opened = async {
        go.peer.called(1).await;
        open.send_replace(true);
    };
    let ask = || async { inputs.current(ID.parse().unwrap(), Artifact::FullIso, &Access::Nothing).await };
    let (outcomes, ()) = tokio::join!(join_all((0..50).map(|_| ask())), opened);
    let revisions: Vec<Arc<str>> = outcomes.into_iter().map(|outcome| outcome.unwrap().revision).collect();
    assert!(revisions.iter().all(|revision| *revision == revisions[0]));
    assert_eq!(go.peer.calls().len(), 2 + 1);
    go.peer.fail("", Fault::Answer(Reply::new(403, "")));
    let outcomes = join_all((0..50).map(|_| ask())).await;
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().unwrap_err().status() == 403));
    assert_eq!(go.peer.calls().len(), 2, "the first one's, and that of all who came before it was over");
    ask().await.unwrap_err();
    assert_eq!(go.peer.calls().len(), 1, "no refusal is kept");
}

/// A yes is that of one caller and of one image.
#[tokio::test(flavor = "multi_thread")]
async fn a_yes_is_of_use_to_nobody_else() {
    let go = Go::start().await;
    let trusting = ExternalSettings { trust: Duration::from_secs(3600), ..strict(&go.peer.url()) };
    let server = Server::start(&trusting).await;
    let image = |key: &str, file: &str| {
        let kind = format!("{file}-iso");
        format!("/images/{ID}?version=4.14&type={kind}&api_key={key}")
    };
    assert_eq!(server.get(&image("good", "full")).await.status(), 200);
    go.peer.fail("", Fault::Answer(Reply::new(401, "")));
    assert_eq!(server.get(&image("good", "full")).await.status(), 200, "within the time that it is trusted");
    let other = "8c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";
    for path in [
        image("other", "full"),
        image("good", "minimal"),
        image("good", "full").replace(ID, other),
        image("good", "full").replace("api_key", "image_token"),
        full(),
    ] {
        assert_refused(&server.get(&path).await, 401, &path);
    }
}

/// Where each request is checked, a withdrawn token is of no use at once, and what was kept comes back with the right.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_withdrawn_opens_nothing() {
    let go = Go::start().await;
    let server = Server::start(&strict(&go.peer.url())).await;
    let (bytes, tag) = server.image(&full()).await;
    for status in [401, 403, 404] {
        go.peer.fail("", Fault::Answer(Reply::new(status, "")));
        assert_refused(&server.get(&full()).await, status, "all of it");
        let known = [("if-none-match", tag.as_str())];
        assert_refused(&server.get_with(&full(), &known).await, status, "a condition");
        assert_refused(&server.get_with(&full(), &[("range", "bytes=0-1")]).await, status, "a range");
    }
    go.peer.work_again();
    go.peer.calls();
    assert_eq!(server.image(&full()).await, (bytes, tag));
    assert_eq!(go.peer.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_noticed_wherever_it_is() {
    let go = Go::start().await;
    let server = Server::start(&strict(&go.peer.url())).await;
    let minimal = format!("/byid/{ID}/4.14/x86_64/minimal.iso");
    let mut seen = vec![server.image(&minimal).await];
    let changes: [fn(&mut crate::go::Record); 3] = [
        |record| {
            record.kernel_arguments = Some(json!([{"operation": "append", "value": "loud"}]).to_string())
        },
        |record| record.early_boot = Some(b"\x1f\x8b an archive".to_vec()),
        |record| record.config = json!({"ignition": {"version": "3.2.0"}}).to_string(),
    ];
    for change in changes {
        go.change(change);
        let now = server.image(&minimal).await;
        assert!(seen.iter().all(|(bytes, tag)| *bytes != now.0 && *tag != now.1));
        let (old_bytes, old_tag) = seen.last().unwrap();
        let going_on = [("range", "bytes=100000-"), ("if-range", old_tag.as_str())];
        let whole = server.get_with(&minimal, &going_on).await;
        assert_eq!(whole.status(), 200);
        assert!(whole.bytes().await.unwrap() == now.0 && *old_bytes != now.0);
        seen.push(now);
    }
    // The settings of the service have no time.
    go.change(|record| {
        record.updated_at -= chrono::TimeDelta::seconds(100);
        record.config = json!({"ignition": {"version": "3.3.0"}}).to_string();
    });
    let now = server.image(&minimal).await;
    assert!(seen.iter().all(|(_, tag)| *tag != now.1));
    // A change that makes the same image is none.
    go.peer.calls();
    go.change(|_| {});
    let response = server.get(&minimal).await;
    assert_eq!(header(&response, "etag"), now.1);
    assert_eq!(go.peer.calls().len(), 3);
}

/// Two changes within one second have the same time.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_change_within_a_second_is_noticed() {
    let go = Go::start().await;
    go.change(|record| record.updated_at = Utc::now() + chrono::TimeDelta::days(1));
    let server = Server::start(&strict(&go.peer.url())).await;
    let before = server.image(&full()).await;
    go.record.lock().unwrap().kernel_arguments = None;
    let after = server.image(&full()).await;
    assert!(before.0 != after.0 && before.1 != after.1);
}

/// Each range of an image whose token is signed anew for each call is of the same image.
#[tokio::test(flavor = "multi_thread")]
async fn a_signature_makes_no_other_image() {
    let go = Go::start().await;
    go.change(|record| record.signs = true);
    let server = Server::start(&strict(&go.peer.url())).await;
    let first = server.image(&full()).await;
    assert_eq!(server.image(&full()).await, first);
    go.change(|_| {});
    let after = server.image(&full()).await;
    assert!(after.0 != first.0 && after.1 != first.1, "the record has changed");
    assert_eq!(server.image(&full()).await, after);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_have_the_same_tags() {
    let go = Go::start().await;
    let one = Server::start(&strict(&go.peer.url())).await.image(&full()).await;
    let other = Server::start(&strict(&go.peer.url())).await.image(&full()).await;
    assert_eq!(one.1, other.1);
    assert!(one.0 == other.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_architecture_or_a_version_has_not_is_said() {
    let go = Go::start().await;
    let server = Server::start(&strict(&go.peer.url())).await;
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
    assert!(header(&disconnected, "content-disposition").contains("agent-ove.x86_64.iso"));
}
