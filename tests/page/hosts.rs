//! Tests how the page lists the hosts of an infra-env.

use reqwest::Method;
use serde_json::json;

use crate::browser::{Browser, key};
use crate::run_test;
use crate::service::{PULL_SECRET, PageService, hardware, small_recipe};
use crate::support::Scratch;

/// The cells of the rows of all hosts.
const HOSTS: &str = "
    const rows = [...document.querySelectorAll('[data-slot=hosts] > tr')].filter((row) => row.offsetParent);
    return rows.map((row) => [...row.children].map((cell) => cell.innerText.replaceAll('\\n', ' ')))";
/// The text of the details of the first host.
const DETAILS: &str = "return document.querySelector('tr.details').innerText";
const HOST: &str = "0f2a5d3c-1111-4222-8333-444455556666";
const OTHER_HOST: &str = "0f2a5d3c-1111-4222-8333-444455557777";

/// Hosts appear and change without a reload of the page.
#[test]
fn hosts_are_listed_with_their_current_status() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let infra_env = service.create_infra_env("demo").await;
        browser.open_url(&service.url(&format!("/#{}", infra_env["id"].as_str().unwrap()))).await;
        browser.find_visible("[data-slot=noHosts]").await;
        service.register_host(&infra_env, HOST).await;
        let row = browser
            .wait_until(&format!("{HOSTS}.find((row) => row[1].startsWith('discovering-unbound'))"))
            .await;
        assert_eq!((&row[0], &row[4]), (&json!(HOST), &json!("no cluster")));
        let mut report = hardware("node-1");
        report["cpu"]["count"] = json!(1);
        service.report_hardware(&infra_env, HOST, &report).await;
        let row = browser.wait_until(&format!("{HOSTS}.find((row) => row[0].startsWith('node-1'))")).await;
        assert_eq!(row[0], format!("node-1 {HOST}"));
        assert_eq!(
            row[1],
            "insufficient-unbound Host does not meet the minimum hardware requirements The host is not eligible to \
             participate in Openshift Cluster because the minimum required CPU cores for any role is 2, found only 1"
        );
        assert_eq!((&row[2], &row[3]), (&json!("auto-assign"), &json!("192.0.2.7, 2001:db8::7")));
        assert_eq!(
            browser.find_visible("[data-slot=hosts] .badge").await.text().await,
            "insufficient-unbound"
        );
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

#[test]
fn host_row_opens_to_its_hardware_and_validations() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let infra_env = service.create_infra_env("demo").await;
        service.register_host(&infra_env, HOST).await;
        let mut report = hardware("node-1");
        // Virtual drives without a medium are empty.
        report["disks"][1]["size_bytes"] = json!(0);
        service.report_hardware(&infra_env, HOST, &report).await;
        browser.open_url(&service.url(&format!("/#{}", infra_env["id"].as_str().unwrap()))).await;
        let button = browser.find_visible("[data-slot=hosts] button").await;
        assert_eq!(
            (button.role().await, button.accessible_name().await),
            ("button".to_owned(), "node-1".to_owned())
        );
        let state = "const button = document.querySelector('[data-slot=hosts] button'); \
                     const details = document.getElementById(button.getAttribute('aria-controls')); \
                     return [button.getAttribute('aria-expanded'), details.checkVisibility()]";
        assert_eq!(browser.run_script(state).await, json!(["false", false]));
        browser.run_script("document.querySelector('[data-slot=hosts] button').focus()").await;
        browser.press_keys(key::ENTER).await;
        assert_eq!(browser.run_script(state).await, json!(["true", true]));
        let text = browser.run_script(DETAILS).await.as_str().unwrap().to_owned();
        for part in [
            "16 CPUs, Example CPU 7, x86_64",
            "64.0 GiB",
            "Example Blade 3",
            "SN-0042",
            "198.51.100.9",
            "480 GB",
            "not eligible",
            "Disk is too small (disk only has 0 B, but 50 GB are required)",
            "52:54:00:00:00:01",
            "192.0.2.7/24, 2001:db8::7/64",
            "25,000 Mb/s",
            "up",
            "down",
            "Sufficient CPU cores",
            "hardware: has-min-cpu-cores",
        ] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
        let size =
            "return document.querySelector('tr.details tr:nth-child(2) [data-column=Size]').textContent";
        assert_eq!(browser.run_script(size).await, "0 GB");
        // A newer report changes an open row in place.
        browser.run_script("document.querySelector('tr.details dl').mark = 'kept'").await;
        report["cpu"]["count"] = json!(1);
        service.report_hardware(&infra_env, HOST, &report).await;
        browser.wait_until(&format!("{}.includes('found only 1')", DETAILS)).await;
        let first = "return document.querySelector('tr.details .findings .badge').textContent";
        assert_eq!(browser.run_script(first).await, "failure");
        let mark = "return document.querySelector('tr.details dl').mark ?? null";
        assert_eq!(browser.run_script(mark).await, "kept");
        assert_eq!(browser.run_script(state).await, json!(["true", true]));
        assert_eq!(browser.focused_element().await.accessible_name().await, "node-1");
        browser.press_keys(key::ENTER).await;
        assert_eq!(browser.run_script(state).await, json!(["false", false]));
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

/// Calls the code of the page with statuses of other services.
#[test]
fn status_has_the_messages_of_failing_validations_and_is_cut() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        browser.open_url(&service.url("/page/status.js")).await;
        let parts = "return (async () => {
            const { statusWithReasons } = await import('/page/status.js');
            const list = [['success', 'fine'], ['failure', 'No <b>disk</b>'], ['error', 'No clock'], ['pending', 'Wait'],
                ['failure', 'No clock']].map(([status, message]) => ({ id: 'x', status, message }));
            const host = { status: 'insufficient', status_info: 'Not ready: No clock ; No <b>disk</b>',
                validations_info: JSON.stringify({ hardware: list, operators: null }) };
            const texts = (...given) => statusWithReasons(...given).map((part) => part && [part.textContent, part.title]);
            const known = { status: 'known', status_info: 'Ready', validations_info: '' };
            return [texts(host), texts(host, 10), texts(known), texts({ status: 'known' })];
            })()";
        let expected = json!([
            [["insufficient", ""], ["Not ready", ""], ["No <b>disk</b>; No clock", ""]],
            [["insufficient", ""], ["Not ready", ""], ["No <b>dis…", "No <b>disk</b>; No clock"]],
            [["known", ""], ["Ready", ""], null],
            [["known", ""], ["", ""], null],
        ]);
        assert_eq!(browser.run_script(parts).await, expected);
    });
}

/// Agents are not trusted: any client with the token of an infra-env can send reports.
#[test]
fn hostile_report_is_shown_as_text() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let infra_env = service.create_infra_env("demo").await;
        service.register_host(&infra_env, HOST).await;
        let hostile = "<img src=x onerror=\"window.hacked=1\">";
        let mut report = hardware(hostile);
        report["system_vendor"]["manufacturer"] = json!(hostile);
        report["disks"][1]["installation_eligibility"]["not_eligible_reasons"] = json!([hostile]);
        report["interfaces"][0]["name"] = json!(hostile);
        report["interfaces"][1]["ipv4_addresses"] = json!(null);
        service.report_hardware(&infra_env, HOST, &report).await;
        browser.open_url(&service.url(&format!("/#{}", infra_env["id"].as_str().unwrap()))).await;
        browser.find_visible("[data-slot=hosts] button").await.click().await;
        let text = browser.run_script(DETAILS).await.as_str().unwrap().to_owned();
        assert!(text.matches(hostile).count() >= 3, "{text}");
        let hacked = "return [window.hacked ?? null, document.images.length]";
        assert_eq!(browser.run_script(hacked).await, json!([null, 1]));
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

#[test]
fn closed_cards_count_their_hosts_by_status() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        service.create_infra_env("empty").await;
        let infra_env = service.create_infra_env("demo").await;
        service.register_host(&infra_env, HOST).await;
        service.report_hardware(&infra_env, HOST, &hardware("node-1")).await;
        browser.open_url(&service.url("/")).await;
        let counts = "return [...document.querySelectorAll('[data-slot=hostCounts]')].map((it) => \
                      [...it.children].map((badge) => badge.textContent))";
        let status = service.hosts(&infra_env).await[0]["status"].as_str().unwrap().to_owned();
        let one = json!([[format!("1 {status}")], []]);
        browser.wait_until(&format!("{counts}[0].length === 1")).await;
        assert_eq!(browser.run_script(counts).await, one);
        // No request reads the inventory reports, and each card needs one request to count its hosts.
        let requests = browser.new_requests().await;
        let requests: Vec<_> = requests.iter().filter(|url| url.contains("/hosts?")).collect();
        assert_eq!(requests.len(), 2, "{requests:?}");
        assert!(
            requests.iter().all(|url| url.contains("with-inventory=false") && url.contains("limit=501")),
            "{requests:?}"
        );
        service.register_host(&infra_env, OTHER_HOST).await;
        browser.wait_until(&format!("{counts}[0].length === 2")).await;
        browser.find_visible(".opener").await.click().await;
        browser.find_visible("[data-slot=hosts] button").await;
        let two = json!([["1 discovering-unbound", format!("1 {status}")], []]);
        assert_eq!(browser.run_script(counts).await, two);
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

#[test]
fn cluster_of_a_host_has_its_name_and_status() {
    run_test(async {
        let Some(browser) = Browser::start().await else { return };
        let release = json!([{
            "openshift_version": "4.17", "cpu_architecture": "x86_64", "version": "4.17.9", "url": "quay.io/a:1",
        }]);
        let release = release.to_string();
        let options = ["--listen", "127.0.0.1:0", "--release-images", &release];
        let service = PageService::start_with_options(Scratch::new(), small_recipe(), &options).await;
        let cluster = json!({"name": "munich", "openshift_version": "4.17", "pull_secret": PULL_SECRET});
        let cluster = service.api_json(Method::POST, "/clusters", &cluster).await;
        let cluster = cluster["id"].as_str().unwrap();
        let body = json!({"name": "demo", "pull_secret": PULL_SECRET, "openshift_version": "4.17", "cluster_id": cluster});
        let infra_env = service.api_json(Method::POST, "/infra-envs", &body).await;
        service.register_host(&infra_env, HOST).await;
        service.register_host(&infra_env, OTHER_HOST).await;
        browser.open_url(&service.url(&format!("/#{}", infra_env["id"].as_str().unwrap()))).await;
        browser.wait_until(&format!("{HOSTS}.length === 2")).await;
        let rows = browser.run_script(HOSTS).await;
        for row in rows.as_array().unwrap() {
            assert_eq!(row[4], format!("munich {cluster}"));
        }
        let text = browser.find_visible("[data-slot=clusters] li").await.text().await;
        let status = service.api_json(Method::GET, &format!("/clusters/{cluster}"), &json!(null)).await;
        for part in
            ["munich", cluster, status["status"].as_str().unwrap(), status["status_info"].as_str().unwrap()]
        {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
        browser.find_visible("#refresh").await.click().await;
        let requests = browser.new_requests().await;
        // One request reads all clusters. A change to the cluster while the page loads causes another request.
        let count = requests.iter().filter(|url| url.ends_with("/clusters")).count();
        assert!((1..=2).contains(&count), "{requests:?}");
        // The dialog for the deletion of the infra-env explains what happens to the cluster's hosts.
        browser.find_visible("[data-slot=delete]").await.click().await;
        let bound = browser.find_visible("dialog [data-slot=bound]").await.text().await;
        assert!(bound.starts_with("Bound to a cluster: 2 of 2."), "{bound}");
        browser.find_visible("#delete-hosts").await.click().await;
        browser.find_visible("#delete").await.click().await;
        browser.wait_until("return document.querySelectorAll('.card').length === 0").await;
        let path = format!("/clusters/{cluster}/hosts");
        assert_eq!(service.api_json(Method::GET, &path, &json!(null)).await, json!([]));
        assert_eq!(browser.console_messages_after_deletion().await, [""; 0]);
    });
}

/// The test responds to requests for clusters with an error, an outdated list, and a current list.
#[test]
fn clusters_survive_failed_and_outdated_responses() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        // Opens only a script, because the page's stream of changes would clear the stored clusters.
        browser.open_url(&service.url("/page/clusters.js")).await;
        let names = "return (async () => {
            const { clustersById, forget } = await import('/page/clusters.js');
            const real = window.fetch;
            const replies = [];
            window.fetch = (url, options) => `${url}`.endsWith('/clusters') ? replies.shift()() : real(url, options);
            const json = (body, status = 200) => new Response(JSON.stringify(body), { status });
            const nameOf = async () => (await clustersById(['1'])).get('1')?.name ?? null;
            const names = [];
            replies.push(async () => json({ reason: 'overload' }, 503));
            names.push(await nameOf());
            let reply;
            replies.push(() => new Promise((resolve) => (reply = resolve)));
            const outdated = nameOf();
            forget();
            replies.push(async () => json([{ id: '1', name: 'new' }]));
            names.push(await nameOf());
            reply(json([{ id: '1', name: 'old' }]));
            await outdated;
            names.push(await nameOf());
            forget();
            replies.push(async () => json({ reason: 'denied' }, 403));
            names.push(await nameOf(), await nameOf());
            window.fetch = real;
            return names;
            })()";
        assert_eq!(browser.run_script(names).await, json!([null, "new", "new", "", ""]));
    });
}

/// The test moves the clock of the page.
#[test]
fn relative_times_stay_current_while_the_page_is_open() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let infra_env = service.create_infra_env("demo").await;
        service.register_host(&infra_env, HOST).await;
        browser.open_url(&service.url(&format!("/#{}", infra_env["id"].as_str().unwrap()))).await;
        let host = service.hosts(&infra_env).await.remove(0);
        let time = "const time = document.querySelector('[data-slot=hosts] time')";
        browser.wait_until(&format!("{time}; return time?.textContent === 'just now'")).await;
        let read = format!(
            "{time}; return [Date.parse(time.dateTime) === Date.parse({}), time.title === new Date(time.dateTime).toLocaleString()]",
            host["checked_in_at"]
        );
        assert_eq!(browser.run_script(&read).await, json!([true, true]));
        for (seconds, text) in
            [(185, "3 minutes ago"), (2 * 3600 + 60, "2 hours ago"), (26 * 3600, "1 day ago")]
        {
            let shift = format!("window.now ??= Date.now; Date.now = () => window.now() + {seconds} * 1000");
            browser.run_script(&shift).await;
            // The page replaces the row of the host. Only the clock changes the other time.
            for selector in ["[data-slot=hosts] time", "[data-slot=about] time"] {
                let read = format!("return document.querySelector('{selector}').textContent === '{text}'");
                browser.wait_until(&read).await;
            }
        }
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}
