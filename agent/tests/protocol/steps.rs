//! Steps that run concurrently, and steps that must not run twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent::{StepFailure, StepOutcome};
use assisted::reply::{ExitCode, ReplyPayload, UpgradeReport};
use assisted::request::StepRequest;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::machine::ScriptedMachine;
use crate::service::{AGENT_VERSION, Answer, Purpose, Received, ScriptedService, step};

const SECOND: Duration = Duration::from_secs(1);

/// Starts a service that returns these steps with its first polls, one list with each poll.
async fn service_with_steps(lists: Vec<Value>) -> ScriptedService {
    let script = move |request: &Received| {
        let list = lists.get(request.number).filter(|_| request.purpose == Purpose::Poll)?;
        Some(Answer::steps(60, "continue", list.clone()))
    };
    ScriptedService::start(script).await
}

/// Returns a machine whose steps take `time`, and a counter of started steps.
fn slow_machine(service: &ScriptedService, time: Duration) -> (ScriptedMachine, Arc<AtomicUsize>) {
    let starts = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&starts);
    let machine = ScriptedMachine::with_slow_steps(service, move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            sleep(time).await;
            Ok(StepOutcome::Done)
        })
    });
    (machine, starts)
}

fn bodies(service: &ScriptedService) -> Vec<Value> {
    service.received(Purpose::Reply).into_iter().map(|request| request.body).collect()
}

#[tokio::test(start_paused = true)]
async fn steps_run_concurrently_and_do_not_delay_polls() {
    let steps = json!([
        step("stop-installation", &[]),
        step("verify-vips", &["[]"]),
        step("inventory", &["6ba7b810-9dad-11d1-80b4-00c04fd430c8"])
    ]);
    let service = service_with_steps(vec![steps]).await;
    let (machine, _) = slow_machine(&service, 90 * SECOND);
    let agent = machine.run(&service);
    service.wait_for(Purpose::Poll, 3).await;
    assert_eq!(service.seconds(Purpose::Poll)[..3], [0, 60, 120]);
    assert_eq!(service.seconds(Purpose::Reply), [90, 90, 90]);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn cheap_step_may_run_twice() {
    let steps = json!([step("verify-vips", &["[]"])]);
    let service = service_with_steps(vec![steps.clone(), steps]).await;
    let (machine, starts) = slow_machine(&service, 90 * SECOND);
    let agent = machine.run(&service);
    service.wait_for(Purpose::Poll, 4).await;
    assert_eq!(starts.load(Ordering::Relaxed), 2);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn exclusive_step_is_not_started_twice() {
    let upgrade = r#"{"agent_image":"quay.io/example/agent:2"}"#;
    let logs = r#"{"bootstrap":false,"cluster_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332",
        "host_id":"6ba7b810-9dad-11d1-80b4-00c04fd430c8","infra_env_id":"4f630ba3-0297-4d99-a7c7-f62e7bca1332",
        "installer_gather":true,"master_ips":null}"#;
    for (exclusive, expected) in [
        (step("container-image-availability", &[r#"{"images":[],"timeout":960}"#]), json!({})),
        (step("installation-disk-speed-check", &[r#"{"path":"/dev/sda"}"#, "480.00"]), json!({})),
        (step("upgrade-agent", &[upgrade]), json!({"output": upgrade})),
        (
            step("logs-gather", &[logs]),
            json!({"exit_code": 125, "error": r#"the container name "logs-sender" is already in use"#}),
        ),
        // The service refuses an empty list of addresses, so the agent sends no reply.
        (step("free-network-addresses", &["[]"]), Value::Null),
    ] {
        let service = service_with_steps(vec![json!([exclusive]), json!([exclusive])]).await;
        let (machine, starts) = slow_machine(&service, 100 * SECOND);
        let agent = machine.run(&service);
        // The poll at 120 seconds is after the end of the first run.
        service.wait_for(Purpose::Poll, 3).await;
        assert_eq!(starts.load(Ordering::Relaxed), 1, "{exclusive}");
        let replies = service.received(Purpose::Reply);
        if expected.is_null() {
            assert_eq!(service.seconds(Purpose::Reply), [100]);
        } else {
            assert_eq!(replies[0].at.as_secs(), 60, "{exclusive}");
            let mut body = replies[0].body.clone();
            let common = body.as_object_mut().unwrap();
            assert!(common.remove("step_type").is_some() && common.remove("step_id").is_some());
            assert_eq!(body, expected, "{exclusive}");
        }
        agent.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn exclusive_step_runs_again_after_its_end() {
    let steps = json!([step("free-network-addresses", &["[]"])]);
    let service = service_with_steps(vec![steps.clone(), steps]).await;
    let (machine, starts) = slow_machine(&service, 30 * SECOND);
    let agent = machine.run(&service);
    service.wait_for(Purpose::Poll, 3).await;
    assert_eq!(starts.load(Ordering::Relaxed), 2);
    agent.abort();
}

fn install() -> Value {
    let id = "4f630ba3-0297-4d99-a7c7-f62e7bca1332";
    let arguments = json!({
        "boot_device": "/dev/sda", "cluster_id": id, "controller_image": "c", "host_id": id, "infra_env_id": id,
        "installer_image": "i", "role": "master",
    });
    step("install", &[&arguments.to_string()])
}

#[tokio::test(start_paused = true)]
async fn installer_is_started_once() {
    let service = service_with_steps(vec![json!([install()]); 3]).await;
    let (machine, starts) = slow_machine(&service, 90 * SECOND);
    let agent = machine.run(&service);
    service.wait_for(Purpose::Poll, 4).await;
    assert_eq!(starts.load(Ordering::Relaxed), 1);
    let replies = bodies(&service);
    // The reply of the first start arrives between the refusals of the second and the third start.
    let codes: Vec<_> = replies.iter().map(|reply| reply.get("exit_code")).collect();
    assert_eq!(codes, [Some(&json!(125)), None, Some(&json!(125))]);
    assert_eq!(replies[0]["error"], r#"the container name "assisted-installer" is already in use"#);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn stopped_installation_is_cancelled_without_a_reply() {
    let stop = json!([step("stop-installation", &[])]);
    let service = service_with_steps(vec![json!([install()]), stop]).await;
    let machine = ScriptedMachine::with_slow_steps(&service, |request| {
        Box::pin(async move {
            if matches!(request, StepRequest::Install(_)) {
                sleep(90 * SECOND).await;
                return Err(StepFailure::new(ExitCode::FAILED, "the installer was not cancelled"));
            }
            Ok(StepOutcome::Done)
        })
    });
    let agent = machine.run(&service);
    service.wait_for(Purpose::Poll, 4).await;
    let replies = bodies(&service);
    assert_eq!(replies.len(), 1, "{replies:?}");
    assert_eq!(replies[0]["step_type"], "stop-installation");
    agent.abort();
}

/// Runs a step `upgrade-agent` with this result, and returns the times and versions of registrations.
async fn registrations_after_upgrade(result: &'static str) -> Vec<(u64, String)> {
    let arguments = r#"{"agent_image":"quay.io/example/agent:2"}"#;
    let service = service_with_steps(vec![json!([step("upgrade-agent", &[arguments])])]).await;
    let machine = ScriptedMachine::new(&service, move |request| match request {
        StepRequest::Upgrade(request) => {
            let report = UpgradeReport { agent_image: request.agent_image.into(), result: result.into() };
            Ok(StepOutcome::Output(ReplyPayload::Upgrade(report)))
        }
        other => panic!("{other:?}"),
    });
    let agent = machine.run(&service);
    service.wait_for(Purpose::Poll, 3).await;
    agent.abort();
    let replies = bodies(&service);
    let output = format!(r#"{{"agent_image":"quay.io/example/agent:2","result":"{result}"}}"#);
    assert_eq!((replies.len(), &replies[0]["output"]), (1, &json!(output)));
    let registrations = service.received(Purpose::Register);
    registrations.into_iter().map(|request| (request.at.as_secs(), request.version)).collect()
}

#[tokio::test(start_paused = true)]
async fn upgraded_agent_registers_again_with_its_old_version() {
    let registrations = registrations_after_upgrade("success").await;
    assert_eq!(registrations.len(), 2);
    assert!(registrations[1].0 <= 1);
    assert!(registrations.iter().all(|(_, version)| version == AGENT_VERSION));
}

#[tokio::test(start_paused = true)]
async fn failed_upgrade_changes_nothing() {
    assert_eq!(registrations_after_upgrade("failure").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn panic_of_a_step_does_not_end_the_agent() {
    let steps = json!([step("verify-vips", &["[]"]), step("stop-installation", &[])]);
    let service = service_with_steps(vec![steps]).await;
    let machine = ScriptedMachine::new(&service, |request| match request {
        StepRequest::Vips(_) => panic!("a defect of the machine"),
        _ => Ok(StepOutcome::Done),
    });
    let agent = machine.run(&service);
    service.wait_for(Purpose::Poll, 2).await;
    assert_eq!(bodies(&service).len(), 1);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn number_of_running_steps_is_limited() {
    let steps: Vec<_> = (0..1000).map(|_| step("verify-vips", &["[]"])).collect();
    let service = service_with_steps(vec![Value::from(steps)]).await;
    let (machine, starts) = slow_machine(&service, 90 * SECOND);
    let agent = machine.run(&service);
    service.wait_for(Purpose::Poll, 2).await;
    assert_eq!(starts.load(Ordering::Relaxed), 128);
    agent.abort();
}
