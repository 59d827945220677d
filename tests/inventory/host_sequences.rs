//! Random sequences of registrations, polls and step replies. At the end, only the facts decide the status.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::agent::{FakeAgent, events_of_infra_env, inventory_report};
use crate::fleet::stored_host;
use crate::service::{TestService, on_each_database};

/// An action of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Register,
    Poll,
    ReportGoodMachine,
    ReportForbiddenName,
    ReportTimeServers,
    LoseMedia,
}

const ACTIONS: [Action; 6] = [
    Action::Register,
    Action::Poll,
    Action::ReportGoodMachine,
    Action::ReportForbiddenName,
    Action::ReportTimeServers,
    Action::LoseMedia,
];

/// The facts that decide the status.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    has_lost_media: bool,
    has_good_report: Option<bool>,
}

impl Facts {
    fn apply(&mut self, action: Action) {
        match action {
            Action::Register => *self = Self::default(),
            Action::Poll => {}
            Action::ReportGoodMachine => *self = Self { has_lost_media: false, has_good_report: Some(true) },
            Action::ReportForbiddenName => {
                *self = Self { has_lost_media: false, has_good_report: Some(false) }
            }
            Action::ReportTimeServers => self.has_lost_media = false,
            Action::LoseMedia => self.has_lost_media = true,
        }
    }

    fn status(self) -> &'static str {
        match (self.has_lost_media, self.has_good_report) {
            (true, _) => "disconnected-unbound",
            (false, None) => "discovering-unbound",
            (false, Some(true)) => "known-unbound",
            (false, Some(false)) => "insufficient-unbound",
        }
    }
}

async fn act(agent: &FakeAgent<'_>, action: Action) {
    match action {
        Action::Register => drop(agent.register().await.json_with_status(201)),
        Action::Poll => drop(agent.request_steps().await.json_with_status(200)),
        Action::ReportGoodMachine => {
            agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
        }
        Action::ReportForbiddenName => {
            agent.reply_to_step("inventory", &inventory_report("localhost")).await.json_with_status(204);
        }
        Action::ReportTimeServers => {
            let sources = json!({"ntp_sources": [{"source_name": "a", "source_state": "synced"}]});
            agent.reply_to_step("ntp-synchronizer", &sources).await.json_with_status(204);
        }
        Action::LoseMedia => {
            let lost = json!({"step_type": "inventory", "exit_code": 256});
            agent.send_reply(&lost).await.json_with_status(204);
        }
    }
}

async fn check(service: &TestService, actions: &[Action]) -> Result<(), TestCaseError> {
    let agent = FakeAgent::register_in_new_infra_env(service).await;
    let mut facts = Facts::default();
    for action in actions {
        act(&agent, *action).await;
        facts.apply(*action);
        // The monitor never changes the status of a host that has just checked in.
        prop_assert_eq!(service.inventory.disconnect_silent_hosts().await.unwrap(), 0);
    }
    for _ in 0..2 {
        service.inventory.disconnect_silent_hosts().await.unwrap();
    }
    prop_assert_eq!(agent.host_status().await, facts.status());
    // Unchanged facts cause no write of the host and no event. Meanwhile, its check-ins are stored.
    let generation = async || stored_host(&agent).await.generation;
    if let Some(last) = actions.last().filter(|action| **action != Action::Register) {
        let (before, events) = (generation().await, events_of_infra_env(service, &agent.infra_env).await);
        act(&agent, *last).await;
        act(&agent, *last).await;
        prop_assert_eq!(generation().await, before);
        prop_assert_eq!(events_of_infra_env(service, &agent.infra_env).await, events);
    }
    Ok(())
}

#[test]
fn facts_alone_decide_the_status_of_a_discovered_host() {
    on_each_database(async |service| {
        let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(30) });
        let handle = tokio::runtime::Handle::current();
        let actions = prop::collection::vec(prop::sample::select(ACTIONS.to_vec()), 1..12);
        let outcome = tokio::task::block_in_place(|| {
            runner.run(&actions, |actions| handle.block_on(check(service, &actions)))
        });
        outcome.unwrap();
    });
}
