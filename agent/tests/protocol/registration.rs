//! Registration: retries and refusals.

use std::time::Duration;

use agent::AgentError;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::machine::ScriptedMachine;
use crate::service::{AGENT_VERSION, Answer, Purpose, SERVICE_VERSION, ScriptedService, registered_host};

#[tokio::test(start_paused = true)]
async fn registration_sends_the_host_and_the_version_of_the_agent() {
    let service = ScriptedService::start(|_| None).await;
    let agent = ScriptedMachine::idle(&service).run(&service);
    let polls = service.wait_for(Purpose::Poll, 1).await;
    let registration = &service.received(Purpose::Register)[0];
    assert_eq!(registration.path, format!("/api/assisted-install/v2/infra-envs/{}/hosts", service.infra_env));
    assert_eq!(registration.version, AGENT_VERSION);
    let expected = json!({"host_id": service.host, "discovery_agent_version": AGENT_VERSION});
    assert_eq!(registration.body, expected);
    // After the registration, the agent reports the version that the service requests.
    assert_eq!(polls[0].version, SERVICE_VERSION);
    assert_eq!(polls[0].query, "timestamp=1700000000");
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn failed_registration_is_retried_every_minute() {
    for status in [400, 423, 500] {
        let script = move |request: &crate::service::Received| {
            (request.purpose == Purpose::Register && request.number < 2).then(|| Answer::error(status))
        };
        let service = ScriptedService::start(script).await;
        let agent = ScriptedMachine::idle(&service).run(&service);
        service.wait_for(Purpose::Poll, 1).await;
        assert_eq!(service.seconds(Purpose::Register), [0, 60, 120], "{status}");
        agent.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn overloaded_service_gets_retries_within_seconds() {
    for status in [503, 504] {
        let script = move |request: &crate::service::Received| {
            (request.purpose == Purpose::Register && request.number < 4).then(|| Answer::error(status))
        };
        let service = ScriptedService::start(script).await;
        let agent = ScriptedMachine::idle(&service).run(&service);
        service.wait_for(Purpose::Poll, 1).await;
        let registrations = service.received(Purpose::Register);
        assert_eq!(registrations.len(), 5);
        let pauses: Vec<_> = registrations.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        for (pause, most) in pauses.iter().zip([2, 4, 8]) {
            assert!(*pause <= Duration::from_secs(most) + Duration::from_millis(2), "{pauses:?}");
        }
        // Four attempts belong to one registration. The next registration follows after a minute.
        assert!(pauses[3] >= Duration::from_secs(60), "{pauses:?}");
        agent.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn longer_retry_after_is_obeyed() {
    let script = |request: &crate::service::Received| {
        let is_first = request.purpose == Purpose::Register && request.number == 0;
        is_first.then(|| Answer::error(429).retry_after("90"))
    };
    let service = ScriptedService::start(script).await;
    let agent = ScriptedMachine::idle(&service).run(&service);
    service.wait_for(Purpose::Poll, 1).await;
    assert_eq!(service.seconds(Purpose::Register), [0, 90]);
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn refused_registration_ends_the_agent() {
    for status in [401, 403, 404, 409, 410] {
        let service = ScriptedService::start(move |_| Some(Answer::error(status))).await;
        let error = ScriptedMachine::idle(&service).run(&service).await.unwrap().unwrap_err();
        assert!(matches!(error, AgentError::RegistrationRefused { .. }), "{error}");
        assert_eq!(error.client_error().status(), Some(status));
        sleep(Duration::from_secs(7200)).await;
        assert_eq!(service.received(Purpose::Register).len(), 1);
    }
}

/// Starts a service whose first registration response contains this command.
async fn service_with_first_command(command: Value) -> ScriptedService {
    ScriptedService::start(move |request| {
        let is_first = request.purpose == Purpose::Register && request.number == 0;
        let (infra_env, host) =
            ("4f630ba3-0297-4d99-a7c7-f62e7bca1332", "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
        is_first.then(|| Answer::json(201, registered_host(infra_env, host, &command)))
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn registration_without_usable_command_is_repeated() {
    let invalid_version = json!({
        "infra_env_id": "4f630ba3-0297-4d99-a7c7-f62e7bca1332", "host_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "agent_version": "line\nbreak",
    });
    for (command, seconds) in [
        (Value::Null, 3600),
        (json!({"args": []}), 3600),
        (json!({"args": ["{}"], "retry_seconds": 30}), 30),
        (json!({"args": ["no JSON"], "retry_seconds": -1}), 3600),
        (json!({"args": [invalid_version.to_string()], "retry_seconds": 10}), 10),
    ] {
        let service = service_with_first_command(command.clone()).await;
        let agent = ScriptedMachine::idle(&service).run(&service);
        service.wait_for(Purpose::Poll, 1).await;
        assert_eq!(service.seconds(Purpose::Register), [0, seconds], "{command}");
        agent.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn polls_use_the_ids_of_the_registration() {
    let (infra_env, host) = ("4f630ba3-0297-4d99-a7c7-f62e7bca1332", "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
    let arguments = json!({"infra_env_id": infra_env, "host_id": host, "agent_version": "other"});
    let service = service_with_first_command(json!({"args": [arguments.to_string()]})).await;
    let agent = ScriptedMachine::idle(&service).run(&service);
    let polls = service.wait_for(Purpose::Poll, 1).await;
    let expected = format!("/api/assisted-install/v2/infra-envs/{infra_env}/hosts/{host}/instructions");
    assert_eq!((polls[0].path.as_str(), polls[0].version.as_str()), (expected.as_str(), "other"));
    agent.abort();
}

#[tokio::test(start_paused = true)]
async fn unreachable_service_is_retried_every_minute() {
    let service = ScriptedService::start(|_| None).await;
    let machine = ScriptedMachine::idle(&service);
    // Dropping this listener frees the port, so no process listens on it.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let client = assisted::client::ApiClient::new(&url).unwrap();
    let agent = agent::Agent::new(client, service.infra_env, "one", machine).unwrap();
    let attempts = std::sync::Arc::new(Attempts::default());
    let agent = agent.observer(std::sync::Arc::clone(&attempts) as _);
    assert!(timeout(Duration::from_secs(150), agent.run()).await.is_err());
    // The attempts are at 0, 60 and 120 seconds: a refused connection is not retried within seconds.
    assert_eq!(attempts.0.load(std::sync::atomic::Ordering::Relaxed), 3);
}

#[derive(Default)]
struct Attempts(std::sync::atomic::AtomicU64);

impl agent::observer::AgentObserver for Attempts {
    fn observe(&self, event: &agent::observer::AgentEvent<'_>) {
        if let agent::observer::AgentEvent::Request { outcome: Err(error), .. } = event {
            assert!(matches!(error, assisted::client::ClientError::Connect { .. }), "{error}");
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
}
