//! Pauses between polls, failed polls, and the events that end a registration.

use std::time::Duration;

use agent::{AgentEnd, AgentError, StepOutcome};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::machine::ScriptedMachine;
use crate::service::{Answer, Purpose, Received, ScriptedService, step};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn agent_polls_after_the_pause_of_the_service() {
    let script = |request: &Received| match (request.purpose, request.number) {
        (Purpose::Poll, 0) => Some(Answer::steps(60, "continue", Value::Null)),
        (Purpose::Poll, 1) => Some(Answer::steps(120, "continue", Value::Null)),
        // Polls 2 and 3 return an action that only a newer service sends, and request no pause.
        (Purpose::Poll, 2 | 3) => Some(Answer::steps(0, "dance", Value::Null)),
        _ => None,
    };
    let service = ScriptedService::start(script).await;
    let agent = ScriptedMachine::idle(&service).run(&service);
    service.wait_for(Purpose::Poll, 5).await;
    assert_eq!(service.seconds(Purpose::Poll)[..5], [0, 60, 180, 181, 182]);
    assert_eq!(service.received(Purpose::Register).len(), 1);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn poll_interval_replaces_the_pause_of_the_service() {
    let service = ScriptedService::start(|_| None).await;
    let agent = ScriptedMachine::idle(&service).agent(&service).poll_interval(5 * SECOND);
    let agent = tokio::spawn(agent.run());
    service.wait_for(Purpose::Poll, 4).await;
    assert_eq!(service.seconds(Purpose::Poll)[..4], [0, 5, 10, 15]);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn failed_polls_back_off_until_the_agent_registers_again() {
    for status in [400, 401, 403, 500] {
        let script = move |request: &Received| {
            (request.purpose == Purpose::Poll && request.at < 1000 * SECOND).then(|| Answer::error(status))
        };
        let service = ScriptedService::start(script).await;
        let agent = ScriptedMachine::idle(&service).run(&service);
        service.wait_for(Purpose::Register, 2).await;
        let polls = service.received(Purpose::Poll);
        let pauses: Vec<_> = polls.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        let mut middle = 0.5;
        for pause in &pauses {
            let pause = pause.as_secs_f64();
            assert!(pause > middle * 0.5 - 0.01 && pause < middle * 1.5 + 0.01, "{pause} at {middle}");
            middle = f64::min(middle * 1.5, 60.0);
        }
        let again = service.seconds(Purpose::Register)[1];
        assert!((810..=900).contains(&again), "{again}");
        agent.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn poll_waits_for_retry_after() {
    let script = |request: &Received| {
        let is_first = request.purpose == Purpose::Poll && request.number == 0;
        is_first.then(|| Answer::error(429).retry_after("20"))
    };
    let service = ScriptedService::start(script).await;
    let agent = ScriptedMachine::idle(&service).run(&service);
    service.wait_for(Purpose::Poll, 2).await;
    assert_eq!(service.seconds(Purpose::Poll)[..2], [0, 20]);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn deleted_host_ends_the_agent() {
    for status in [404, 410] {
        let script = move |request: &Received| {
            (request.purpose == Purpose::Poll && request.number == 1).then(|| Answer::error(status))
        };
        let service = ScriptedService::start(script).await;
        let error = ScriptedMachine::idle(&service).run(&service).await.unwrap().unwrap_err();
        assert!(matches!(&error, AgentError::HostDeleted { host, .. } if *host == service.host), "{error}");
        sleep(3600 * SECOND).await;
        assert_eq!(
            (service.received(Purpose::Poll).len(), service.received(Purpose::Register).len()),
            (2, 1)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn exit_action_makes_the_agent_register_again() {
    let script = |request: &Received| {
        let is_first = request.purpose == Purpose::Poll && request.number == 0;
        is_first.then(|| Answer::steps(0, "exit", Value::Null))
    };
    let service = ScriptedService::start(script).await;
    let agent = ScriptedMachine::idle(&service).run(&service);
    service.wait_for(Purpose::Poll, 2).await;
    assert_eq!(service.received(Purpose::Register).len(), 2);
    assert!(service.seconds(Purpose::Register)[1] <= 1);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn endless_exit_actions_cause_one_registration_per_second() {
    let script = |request: &Received| {
        (request.purpose == Purpose::Poll).then(|| Answer::steps(0, "exit", Value::Null))
    };
    let service = ScriptedService::start(script).await;
    let agent = ScriptedMachine::idle(&service).run(&service);
    sleep(60 * SECOND).await;
    let registrations = service.received(Purpose::Register).len();
    assert!((59..=61).contains(&registrations), "{registrations}");
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn running_steps_are_cancelled_on_exit() {
    let script = |request: &Received| {
        let is_first = request.purpose == Purpose::Poll && request.number == 0;
        let steps = json!([step("stop-installation", &[]), step("verify-vips", &["[]"])]);
        is_first.then(|| Answer::steps(10, "exit", steps))
    };
    let service = ScriptedService::start(script).await;
    let machine = ScriptedMachine::with_slow_steps(&service, |request| {
        Box::pin(async move {
            if matches!(request, assisted::request::StepRequest::Vips(_)) {
                sleep(30 * SECOND).await;
            }
            Ok(StepOutcome::Done)
        })
    });
    let agent = machine.run(&service);
    service.wait_for(Purpose::Poll, 3).await;
    // The agent waits for the pause of the service, although a step is still running.
    assert_eq!(service.seconds(Purpose::Register), [0, 10]);
    let replies = service.received(Purpose::Reply);
    assert_eq!(replies.len(), 1, "{replies:?}");
    assert_eq!(replies[0].body["step_type"], "stop-installation");
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn reboot_ends_the_agent_immediately() {
    let script = |request: &Received| {
        let steps = json!([step("reboot-for-reclaim", &[r#"{"host_fs_mount_dir": "/host"}"#])]);
        (request.purpose == Purpose::Poll).then(|| Answer::steps(120, "exit", steps))
    };
    let service = ScriptedService::start(script).await;
    let machine = ScriptedMachine::new(&service, |_| Ok(StepOutcome::Rebooting));
    assert_eq!(machine.run(&service).await.unwrap().unwrap(), AgentEnd::Rebooting);
    assert_eq!(service.received(Purpose::Reply).len(), 0);
    assert_eq!(service.seconds(Purpose::Poll), [0]);
}

#[tokio::test(start_paused = true)]
async fn agents_share_request_slots() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let service = ScriptedService::start(|_| None).await;
    let slots = Arc::new(tokio::sync::Semaphore::new(2));
    let most = Arc::new(AtomicUsize::new(0));
    let mut agents = Vec::new();
    for _ in 0..20 {
        let agent = ScriptedMachine::idle(&service).agent(&service).request_slots(Arc::clone(&slots));
        agents.push(tokio::spawn(agent.run()));
    }
    for _ in 0..2000 {
        most.fetch_max(2 - slots.available_permits(), Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
    service.wait_for(Purpose::Poll, 40).await;
    assert_eq!(most.load(Ordering::Relaxed), 2);
    agents.iter().for_each(tokio::task::JoinHandle::abort);
}
