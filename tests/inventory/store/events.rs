//! Events: writing, queries, counts.

use chrono::{DateTime, TimeDelta, Utc};
use kindling::inventory::event::{Category, Event, EventPage, EventQuery, Severity};
use kindling::inventory::id::{ClusterId, HostId, InfraEnvId};
use kindling::inventory::store::{Changes, Outcome};
use uuid::Uuid;

use super::{StoreFixture, on_each_store};

fn time_at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 + second, 123_456_000).unwrap()
}

fn event_at(second: i64, message: &str) -> Event {
    Event { time: time_at(second), ..Event::new("happened", Severity::Info, message, chrono::Utc::now()) }
}

impl StoreFixture {
    async fn post_events(&self, events: impl IntoIterator<Item = Event>) {
        let changes = Changes { steps: Vec::new(), events: events.into_iter().collect() };
        assert_eq!(self.store.commit(changes).await.unwrap(), Outcome::Done);
    }

    async fn query_events(&self, query: EventQuery) -> EventPage {
        self.store.events(&query).await.unwrap()
    }

    /// Returns the messages of the events that a query selects. The number of events must match the count.
    async fn event_messages(&self, query: EventQuery) -> Vec<String> {
        let page = self.query_events(query).await;
        assert_eq!(page.count, page.events.len() as u64);
        page.events.into_iter().map(|event| event.message).collect()
    }
}

#[test]
fn event_round_trips() {
    on_each_store(async |fixture| {
        let bare = event_at(0, "");
        let full = Event {
            severity: Severity::Critical,
            category: Category::Metrics,
            cluster: Some(ClusterId::fresh()),
            host: Some(HostId::fresh()),
            infra_env: Some(InfraEnvId::fresh()),
            request: Some(Uuid::new_v4()),
            props: Some(r#"{"a":"'; --"}"#.to_owned()),
            ..event_at(1, "日本語 '); DROP TABLE events; --")
        };
        fixture.post_events([bare.clone(), full.clone()]).await;
        assert_eq!(fixture.query_events(EventQuery::default()).await.events, [bare, full]);
    });
}

#[test]
fn events_are_found_by_their_subject() {
    on_each_store(async |fixture| {
        let (cluster, env) = (ClusterId::fresh(), InfraEnvId::fresh());
        let (one, other, third) = (HostId::fresh(), HostId::fresh(), HostId::fresh());
        fixture
            .post_events([
                event_at(0, "cluster").of_cluster(Some(cluster)),
                event_at(1, "one").of_cluster(Some(cluster)).of_infra_env(env).of_host(one),
                event_at(2, "other").of_cluster(Some(cluster)).of_infra_env(env).of_host(other),
                event_at(3, "third").of_infra_env(env).of_host(third),
                event_at(4, "env").of_infra_env(env),
                event_at(5, "elsewhere").of_cluster(Some(ClusterId::fresh())),
            ])
            .await;
        let of = EventQuery { cluster: Some(cluster), ..EventQuery::default() };
        let within = EventQuery { infra_env: Some(env), ..EventQuery::default() };
        let hosts = |hosts: &[HostId]| EventQuery { hosts: hosts.to_vec(), ..EventQuery::default() };
        let cases = [
            (of.clone(), vec!["cluster", "one", "other"]),
            (within.clone(), vec!["one", "other", "third", "env"]),
            (EventQuery { infra_env: Some(env), ..of.clone() }, vec!["one", "other"]),
            (hosts(&[one, third, HostId::fresh()]), vec!["one", "third"]),
            (EventQuery { hosts: vec![one, third], ..of.clone() }, vec!["one"]),
            (EventQuery { hosts: vec![one], cluster_level: true, ..of.clone() }, vec!["cluster", "one"]),
            (EventQuery { cluster_level: true, ..of.clone() }, vec!["cluster"]),
            (hosts(&[HostId::fresh()]), vec![]),
            (EventQuery { cluster: Some(ClusterId::fresh()), ..within }, vec![]),
        ];
        for (query, expected) in cases {
            assert_eq!(fixture.event_messages(query.clone()).await, expected, "{query:?}");
        }
        // More than the maximum number of values in a statement.
        let mut many: Vec<_> = (0..70_000).map(|_| HostId::fresh()).collect();
        many.push(other);
        assert_eq!(fixture.event_messages(hosts(&many)).await, ["other"]);
    });
}

#[test]
fn severity_counts_ignore_the_severity_filter() {
    on_each_store(async |fixture| {
        let severities =
            [Severity::Info, Severity::Error, Severity::Info, Severity::Warning, Severity::Error];
        let events = severities.iter().zip(0..).map(|(&severity, second)| Event {
            severity,
            category: if second == 0 { Category::Metrics } else { Category::User },
            ..event_at(second, &second.to_string())
        });
        fixture.post_events(events).await;
        let page = fixture
            .query_events(EventQuery {
                severities: vec![Severity::Error, Severity::Critical],
                ..EventQuery::default()
            })
            .await;
        assert_eq!((page.count, page.by_severity), (2, [2, 1, 2, 0]));
        assert_eq!(page.events.iter().map(|event| &*event.message).collect::<Vec<_>>(), ["1", "4"]);
        let page = fixture
            .query_events(EventQuery { categories: vec![Category::User], ..EventQuery::default() })
            .await;
        assert_eq!((page.count, page.by_severity), (4, [1, 1, 2, 0]));
        let both = vec![Category::User, Category::Metrics];
        assert_eq!(
            fixture.query_events(EventQuery { categories: both, ..EventQuery::default() }).await.count,
            5
        );
        let metrics = EventQuery { categories: vec![Category::Metrics], ..EventQuery::default() };
        assert_eq!(fixture.event_messages(metrics).await, ["0"]);
    });
}

#[test]
fn pages_follow_the_sort_order() {
    on_each_store(async |fixture| {
        // The events are written out of order. Events with the same time must stay in the order of writing.
        for second in [3, 1, 0, 2] {
            fixture
                .post_events([
                    event_at(second, &format!("{second}a")),
                    event_at(second, &format!("{second}b")),
                ])
                .await;
            fixture.post_events([event_at(second, &format!("{second}c"))]).await;
        }
        let ascending = ["0a", "0b", "0c", "1a", "1b", "1c", "2a", "2b", "2c", "3a", "3b", "3c"];
        let mut descending = ascending;
        descending.reverse();
        assert_eq!(fixture.event_messages(EventQuery::default()).await, ascending);
        for (offset, limit) in
            [(0, 0), (0, 5), (5, 5), (10, 5), (12, 1), (u64::MAX, u64::MAX), (0, u64::MAX), (4, 0)]
        {
            for (order, all) in [(false, ascending), (true, descending)] {
                let query =
                    EventQuery { descending: order, limit: Some(limit), offset, ..EventQuery::default() };
                let page = fixture.query_events(query).await;
                let messages: Vec<_> = page.events.into_iter().map(|event| event.message).collect();
                let skip = usize::try_from(offset).unwrap().min(12);
                let take = usize::try_from(limit).unwrap();
                let expected: Vec<_> = all.into_iter().skip(skip).take(take).collect();
                assert_eq!(messages, expected, "{offset} {limit} {order}");
                assert_eq!((page.count, page.by_severity), (12, [12, 0, 0, 0]));
            }
        }
    });
}

#[test]
fn page_of_long_events_is_short() {
    on_each_store(async |fixture| {
        let lengths = [1 << 10, 10 << 10, 60 << 10, 200 << 10, 63 << 10, 1 << 10, 1];
        let events: Vec<_> = lengths
            .iter()
            .zip(0..)
            .map(|(len, second)| {
                let text = Some("x".repeat(len - 1));
                // The length of an event is the total length of its texts.
                Event { props: text.filter(|text| !text.is_empty()), ..event_at(second / 2, "é") }
            })
            .collect();
        for event in &events {
            fixture.post_events([event.clone()]).await;
        }
        for (descending, expected) in [(false, [2, 1, 1, 1, 2]), (true, [2, 1, 1, 1, 2])] {
            let all = EventQuery { descending, limit: Some(u64::MAX), ..EventQuery::default() };
            let (mut pages, mut after) = (Vec::new(), None);
            loop {
                let page = fixture.query_events(EventQuery { after, ..all.clone() }).await;
                if page.events.is_empty() {
                    break;
                }
                after = page.last;
                pages.push(page.events);
            }
            assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), expected);
            let mut listed = pages.concat();
            if descending {
                listed.reverse();
            }
            assert_eq!(listed, events);
            let everything = fixture.query_events(EventQuery { limit: None, ..all }).await;
            assert_eq!(everything.events.len(), events.len());
        }
    });
}

#[test]
fn page_has_few_events() {
    on_each_store(async |fixture| {
        let host = HostId::fresh();
        fixture.post_events((0..120).map(|second| event_at(second, "short").of_host(host))).await;
        let hosts = vec![host, HostId::fresh()];
        for query in [EventQuery::default(), EventQuery { hosts, ..EventQuery::default() }] {
            for (offset, limit, expected) in [(0, 30, 30), (0, 120, 50), (90, 50, 30)] {
                let query = EventQuery { offset, limit: Some(limit), ..query.clone() };
                let page = fixture.query_events(query).await;
                assert_eq!((page.events.len(), page.count), (expected, 120), "{offset} {limit}");
            }
        }
    });
}

#[test]
fn message_search_is_literal_and_case_insensitive() {
    on_each_store(async |fixture| {
        let messages =
            ["100% done", "1000 done", r"C:\temp", "a_b", "aXb", "Ärger über ΣΊΣΥΦΟΣ", "it's \"so\""];
        fixture
            .post_events(messages.iter().zip(0..).map(|(message, second)| event_at(second, message)))
            .await;
        let cases: [(&str, &[usize]); 14] = [
            ("0% D", &[0]),
            ("%", &[0]),
            ("_", &[3]),
            ("A_B", &[3]),
            ("axb", &[4]),
            (r"\", &[2]),
            (r"\T", &[2]),
            (r"\%", &[]),
            ("ärger", &[5]),
            ("ÄRGER ÜBER", &[5]),
            ("DONE", &[0, 1]),
            ("'s \"", &[6]),
            ("", &[0, 1, 2, 3, 4, 5, 6]),
            ("nowhere", &[]),
        ];
        for (text, expected) in cases {
            let query = EventQuery { message: Some(text.to_owned()), ..EventQuery::default() };
            let expected: Vec<_> = expected.iter().map(|&index| messages[index]).collect();
            assert_eq!(fixture.event_messages(query).await, expected, "{text:?}");
        }
        // Longer than the maximum length of a pattern.
        let query = EventQuery { message: Some("%done".repeat(20_000)), ..EventQuery::default() };
        assert_eq!(fixture.query_events(query).await, EventPage::default());
    });
}

#[test]
fn nul_in_events_becomes_the_replacement_character() {
    on_each_store(async |fixture| {
        let event = Event {
            name: "na\0me".to_owned(),
            props: Some("{\0}".to_owned()),
            ..event_at(0, "Before\0After")
        };
        fixture.post_events([event]).await;
        let query = EventQuery { message: Some("E\0a".to_owned()), ..EventQuery::default() };
        let page = fixture.query_events(query).await;
        assert_eq!(page.events[0].name, "na\u{fffd}me");
        assert_eq!(page.events[0].message, "Before\u{fffd}After");
        assert_eq!(page.events[0].props.as_deref(), Some("{\u{fffd}}"));
        let query = EventQuery { message: Some("\0\0".to_owned()), ..EventQuery::default() };
        assert_eq!(fixture.query_events(query).await.count, 0);
    });
}

#[test]
fn times_have_microseconds_and_any_date() {
    on_each_store(async |fixture| {
        let times = [
            DateTime::UNIX_EPOCH - TimeDelta::days(300_000),
            time_at(0),
            time_at(0) + TimeDelta::microseconds(1),
        ];
        fixture.post_events(times.iter().rev().map(|&time| Event { time, ..event_at(0, "") })).await;
        let events = fixture.query_events(EventQuery::default()).await.events;
        assert_eq!(events.iter().map(|event| event.time).collect::<Vec<_>>(), times);
    });
}
