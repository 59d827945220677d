//! Which replies the agent sends, and their content.

use std::sync::atomic::{AtomicUsize, Ordering};

use agent::StepFailure;
use assisted::reply::{DiskSpeedReport, ExitCode, ReplyPayload};
use serde_json::{Value, json};

use crate::machine::{ScriptedMachine, text};
use crate::service::{Answer, Purpose, Received, ScriptedService, step};

const RECLAIM: &str =
    r#"{"host_fs_mount_dir": "/host", "initrd_url": "i", "kernel_url": "k", "rootfs_url": "r"}"#;

/// Starts a service that returns one step with each poll.
async fn service_with_step(step: Value) -> ScriptedService {
    let script = move |request: &Received| {
        (request.purpose == Purpose::Poll).then(|| Answer::steps(60, "continue", json!([step])))
    };
    ScriptedService::start(script).await
}

#[tokio::test(start_paused = true)]
async fn reply_repeats_type_and_id_of_its_step() {
    let service = service_with_step(step("download-boot-artifacts", &[RECLAIM])).await;
    let agent = ScriptedMachine::new(&service, |_| text("done")).run(&service);
    let replies = service.wait_for(Purpose::Reply, 1).await;
    let expected = json!({
        "step_type": "download-boot-artifacts", "step_id": "download-boot-artifacts-00000001", "output": "done",
    });
    assert_eq!(replies[0].body, expected);
    assert_eq!(replies[0].version, crate::service::SERVICE_VERSION);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn equal_output_is_sent_once_an_hour() {
    let service = service_with_step(step("download-boot-artifacts", &[RECLAIM])).await;
    let agent = ScriptedMachine::new(&service, |_| text("done")).run(&service);
    service.wait_for(Purpose::Reply, 3).await;
    assert_eq!(service.seconds(Purpose::Reply), [0, 3600, 7200]);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn changed_output_is_sent() {
    let service = service_with_step(step("download-boot-artifacts", &[RECLAIM])).await;
    let runs = AtomicUsize::new(0);
    let run = move |_| text(if runs.fetch_add(1, Ordering::Relaxed) % 4 < 2 { "one" } else { "two" });
    let agent = ScriptedMachine::new(&service, run).run(&service);
    let replies = service.wait_for(Purpose::Reply, 3).await;
    assert_eq!(service.seconds(Purpose::Reply), [0, 120, 240]);
    assert_eq!(replies[1].body["output"], "two");
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn outputs_of_different_types_are_separate() {
    let script = |request: &Received| {
        let steps = json!([step("download-boot-artifacts", &[RECLAIM]), step("stop-installation", &[])]);
        (request.purpose == Purpose::Poll).then(|| Answer::steps(60, "continue", steps))
    };
    let service = ScriptedService::start(script).await;
    let agent = ScriptedMachine::new(&service, |_| text("done")).run(&service);
    service.wait_for(Purpose::Poll, 3).await;
    assert_eq!(service.received(Purpose::Reply).len(), 2);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn failures_are_always_sent() {
    let service = service_with_step(step("download-boot-artifacts", &[RECLAIM])).await;
    let run = |_| Err(StepFailure::new(ExitCode::TIMED_OUT, "no response"));
    let agent = ScriptedMachine::new(&service, run).run(&service);
    let replies = service.wait_for(Purpose::Reply, 3).await;
    assert_eq!(service.seconds(Purpose::Reply), [0, 60, 120]);
    assert_eq!(
        (&replies[0].body["exit_code"], &replies[0].body["error"]),
        (&json!(124), &json!("no response"))
    );
    assert_eq!(replies[0].body.get("output"), None);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn failure_may_have_output() {
    let args = [r#"{"path": "/dev/sda"}"#, "480.00"];
    let service = service_with_step(step("installation-disk-speed-check", &args)).await;
    let run = |_| {
        let report = DiskSpeedReport { path: "/dev/sda".into(), io_sync_duration: 0 };
        Err(StepFailure::new(ExitCode::FAILED, "fio failed").with_output(ReplyPayload::DiskSpeed(report)))
    };
    let agent = ScriptedMachine::new(&service, run).run(&service);
    let replies = service.wait_for(Purpose::Reply, 1).await;
    assert_eq!(
        (&replies[0].body["exit_code"], &replies[0].body["output"]),
        (&json!(1), &json!(r#"{"path":"/dev/sda"}"#))
    );
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn refused_reply_is_sent_with_the_next_run() {
    let script = |request: &Received| match (request.purpose, request.number) {
        (Purpose::Poll, _) => {
            Some(Answer::steps(60, "continue", json!([step("download-boot-artifacts", &[RECLAIM])])))
        }
        (Purpose::Reply, 0) => Some(Answer::error(500)),
        _ => None,
    };
    let service = ScriptedService::start(script).await;
    let agent = ScriptedMachine::new(&service, |_| text("done")).run(&service);
    service.wait_for(Purpose::Poll, 4).await;
    assert_eq!(service.seconds(Purpose::Reply), [0, 60]);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn replies_are_sent_again_after_a_failed_poll_and_after_a_registration() {
    let script = |request: &Received| match (request.purpose, request.number) {
        (Purpose::Poll, 1) => Some(Answer::error(500)),
        (Purpose::Poll, 4) => Some(Answer::steps(60, "exit", Value::Null)),
        (Purpose::Poll, _) => {
            Some(Answer::steps(60, "continue", json!([step("download-boot-artifacts", &[RECLAIM])])))
        }
        _ => None,
    };
    let service = ScriptedService::start(script).await;
    let agent = ScriptedMachine::new(&service, |_| text("done")).run(&service);
    service.wait_for(Purpose::Poll, 8).await;
    // The agent replies to poll 0, to poll 2, which follows the failed poll, and to poll 5, which follows the second
    // registration. At polls 3, 6 and 7, the service already has the same output.
    let polls = service.seconds(Purpose::Poll);
    assert_eq!(service.seconds(Purpose::Reply), [polls[0], polls[2], polls[5]]);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn step_with_invalid_arguments_is_reported_and_not_run() {
    for (invalid, error) in [
        (step("inventory", &[]), "step inventory has 0 arguments, expected 1"),
        (step("inventory", &["no-uuid"]), r#"invalid argument "no-uuid" of step inventory"#),
        (
            step("ntp-synchronizer", &["{}"]),
            "invalid argument of step ntp-synchronizer: missing field `ntp_source` at line 1 column 2",
        ),
        (step("measure-noise", &["1"]), "failed to find action for step type measure-noise"),
        (step("execute", &["ls"]), "failed to find action for step type execute"),
    ] {
        let service = service_with_step(invalid).await;
        let agent = ScriptedMachine::new(&service, |request| panic!("{request:?} was run")).run(&service);
        let replies = service.wait_for(Purpose::Reply, 1).await;
        assert_eq!((&replies[0].body["exit_code"], &replies[0].body["error"]), (&json!(-1), &json!(error)));
        agent.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn rejects_wrong_numbers_of_arguments() {
    let json_steps = [
        "connectivity-check",
        "free-network-addresses",
        "dhcp-lease-allocate",
        "ntp-synchronizer",
        "domain-resolution",
        "api-vip-connectivity-check",
        "tang-connectivity-check",
        "verify-vips",
        "container-image-availability",
        "install",
        "logs-gather",
        "upgrade-agent",
        "download-boot-artifacts",
        "reboot-for-reclaim",
    ];
    let one = json_steps.iter().flat_map(|step_type| [(*step_type, 0, 1), (*step_type, 2, 1)]);
    let other = [
        ("inventory", 0, 1),
        ("stop-installation", 1, 0),
        ("installation-disk-speed-check", 1, 2),
        ("installation-disk-speed-check", 3, 2),
    ];
    for (step_type, count, expected) in one.chain(other) {
        let service = service_with_step(step(step_type, &vec!["{}"; count])).await;
        let agent = ScriptedMachine::new(&service, |request| panic!("{request:?} was run")).run(&service);
        let replies = service.wait_for(Purpose::Reply, 1).await;
        let error = format!("step {step_type} has {count} arguments, expected {expected}");
        let expected = json!({
            "step_type": step_type, "step_id": format!("{step_type}-00000001"), "exit_code": -1, "error": error,
        });
        assert_eq!(replies[0].body, expected);
        agent.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn failure_between_equal_outputs_does_not_repeat_them() {
    let service = service_with_step(step("download-boot-artifacts", &[RECLAIM])).await;
    let runs = AtomicUsize::new(0);
    let run = move |_| match runs.fetch_add(1, Ordering::Relaxed) {
        1 => Err(StepFailure::new(ExitCode::FAILED, "no space left")),
        _ => text("done"),
    };
    let agent = ScriptedMachine::new(&service, run).run(&service);
    service.wait_for(Purpose::Poll, 5).await;
    assert_eq!(service.seconds(Purpose::Reply), [0, 60]);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn successful_step_keeps_its_reply_if_media_are_lost() {
    let service = service_with_step(step("download-boot-artifacts", &[RECLAIM])).await;
    let machine = ScriptedMachine::idle(&service);
    let losing = machine.clone();
    let succeeding = ScriptedMachine::new(&service, move |_| {
        losing.lose_media();
        text("done")
    });
    let agent = succeeding.with_media_of(&machine).run(&service);
    let replies = service.wait_for(Purpose::Reply, 1).await;
    assert_eq!((replies[0].body.get("exit_code"), &replies[0].body["output"]), (None, &json!("done")));
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn failed_step_keeps_its_output_if_media_are_lost() {
    let args = [r#"{"path": "/dev/sda"}"#, "480.00"];
    let service = service_with_step(step("installation-disk-speed-check", &args)).await;
    let machine = ScriptedMachine::idle(&service);
    let losing = machine.clone();
    let failing = ScriptedMachine::new(&service, move |_| {
        losing.lose_media();
        let report = DiskSpeedReport { path: "/dev/sda".into(), io_sync_duration: 0 };
        Err(StepFailure::new(ExitCode::FAILED, "fio failed").with_output(ReplyPayload::DiskSpeed(report)))
    });
    let agent = failing.with_media_of(&machine).run(&service);
    let replies = service.wait_for(Purpose::Reply, 1).await;
    let body = &replies[0].body;
    assert_eq!((&body["exit_code"], &body["output"]), (&json!(256), &json!(r#"{"path":"/dev/sda"}"#)));
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn step_is_not_run_if_media_are_lost() {
    let service = service_with_step(step("stop-installation", &[])).await;
    let machine = ScriptedMachine::new(&service, |request| panic!("{request:?} was run"));
    machine.lose_media();
    let agent = machine.run(&service);
    let replies = service.wait_for(Purpose::Reply, 1).await;
    let body = &replies[0].body;
    assert_eq!((&body["exit_code"], &body["error"]), (&json!(256), &json!("cannot access the media (ISO)")));
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn failed_step_has_exit_code_256_if_media_are_lost() {
    let service = service_with_step(step("stop-installation", &[])).await;
    let machine = ScriptedMachine::idle(&service);
    let losing = machine.clone();
    let failing = ScriptedMachine::new(&service, move |_| {
        losing.lose_media();
        Err(StepFailure::new(ExitCode::FAILED, "no such file"))
    });
    let failing = failing.with_media_of(&machine);
    let agent = failing.run(&service);
    let replies = service.wait_for(Purpose::Reply, 1).await;
    let body = &replies[0].body;
    assert_eq!((&body["exit_code"], &body["error"]), (&json!(256), &json!("no such file")));
    agent.abort();
}
