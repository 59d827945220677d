//! The list of infra-envs, and the details of an infra-env.

use reqwest::Method;
use serde_json::{Value, json};

use crate::browser::{Browser, key};
use crate::run_test;
use crate::service::{PULL_SECRET, PageService};

/// All files of an infra-env as the page lists them: name, size, URL.
const FILES: &str = "
    const text = (row, selector) => row.querySelector(selector)?.textContent ?? null;
    const rows = [...document.querySelectorAll('.files tbody tr')].filter((row) => row.offsetParent);
    return rows.length > 0 && rows.map((row) => [text(row, 'a'), row.querySelector('data')?.value ?? null, text(row, '.url')]);";

/// Sizes match the served files, URLs match the API, and the page sends requests to no other host.
#[test]
fn all_files_of_an_infra_env_are_listed() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let infra_env = service.create_infra_env("demo").await;
        let id = infra_env["id"].as_str().unwrap();
        let listing: Value = service.get(&format!("/i/{id}")).await.json().await.unwrap();
        browser.open_url(&service.url("/")).await;
        let opener = browser.find_visible(".opener").await;
        assert!(opener.accessible_name().await.starts_with("demo"), "{}", opener.accessible_name().await);
        opener.click().await;
        let rows = browser.wait_until(FILES).await;
        let rows = rows.as_array().unwrap();
        assert_eq!(rows.len(), listing["files"].as_array().unwrap().len() + 1);
        for row in rows {
            let (name, url) = (row[0].as_str().unwrap(), row[2].as_str().unwrap());
            assert!(url.starts_with(&service.url(&format!("/i/{id}/{name}"))), "{url}");
            let head = service.client.head(url).send().await.unwrap();
            assert_eq!(head.status(), 200, "{url}");
            if name != "script.ipxe" {
                assert_eq!(row[1].as_str().unwrap(), head.headers()["content-length"], "{name}");
            }
        }
        let names: Vec<_> = rows.iter().map(|row| row[0].as_str().unwrap()).collect();
        assert_eq!(names, ["full.iso", "minimal.iso", "script.ipxe", "initrd", "kernel", "rootfs"]);
        let findings = browser.find_visible(".findings").await.text().await;
        assert!(findings.contains("VLAN 0") && findings.contains("line 15"), "{findings}");
        assert!(findings.contains("52:54:00:00:00:01") && findings.contains("id: 0"), "{findings}");
        assert_eq!(browser.console_messages().await, [""; 0]);
        let requests = browser.new_requests().await;
        let strangers: Vec<_> = requests
            .iter()
            .filter(|url| url.starts_with("http") && !url.starts_with(&service.url("/")))
            .collect();
        assert!(strangers.is_empty(), "{strangers:?}");
        assert!(requests.contains(&service.url("/page/api.js")), "{requests:?}");
    });
}

#[test]
fn closed_cards_show_the_number_of_their_findings() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        service.create_infra_env("checked").await;
        let plain = json!({"name": "plain", "pull_secret": PULL_SECRET, "openshift_version": "4.17"});
        service.api_json(Method::POST, "/infra-envs", &plain).await;
        browser.open_url(&service.url("/")).await;
        browser.find_visible(".counts .badge.warning").await;
        let counts = "return [...document.querySelectorAll('.opener')].map((opener) => \
                     [opener.querySelector('.name').textContent, opener.querySelector('.counts').textContent])";
        assert_eq!(browser.run_script(counts).await, json!([["plain", ""], ["checked", "1 warning"]]));
        // The page requests only the findings of the infra-env that has some.
        let requests = browser.new_requests().await;
        assert_eq!(requests.iter().filter(|url| url.ends_with("/preflight")).count(), 1, "{requests:?}");
        assert_eq!(browser.find_all("[aria-expanded=true]").await.len(), 0);
        browser.find_visible("#refresh").await.click().await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'The list is up to date.'")
            .await;
        assert_eq!(browser.run_script(counts).await, json!([["plain", ""], ["checked", "1 warning"]]));
        let requests = browser.new_requests().await;
        assert!(!requests.iter().any(|url| url.ends_with("/preflight")), "{requests:?}");
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

/// A host with a static network has images without the networks of other hosts.
#[test]
fn files_for_one_host_are_listed() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let infra_env = service.create_infra_env("demo").await;
        let id = infra_env["id"].as_str().unwrap();
        browser.open_url(&service.url(&format!("/#{id}"))).await;
        browser.find_visible("[data-slot=machine] option[value='52:54:00:00:00:01']").await.click().await;
        let path = format!("/i/{id}/52:54:00:00:00:01/");
        browser
            .wait_until(&format!("return document.querySelector('.url')?.textContent.includes('{path}')"))
            .await;
        let rows = browser.wait_until(FILES).await;
        assert_eq!(rows.as_array().unwrap().len(), 3, "{rows}");
        for (row, name) in rows.as_array().unwrap().iter().zip(["full.iso", "minimal.iso", "initrd"]) {
            assert_eq!(row[2], service.url(&format!("{path}{name}")));
            let head = service.client.head(row[2].as_str().unwrap()).send().await.unwrap();
            assert_eq!(
                (head.status().as_u16(), row[1].as_str().unwrap()),
                (200, head.headers()["content-length"].to_str().unwrap())
            );
        }
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}

#[test]
fn urls_are_copied() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let infra_env = service.create_infra_env("demo").await;
        let permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"];
        browser.devtools_command("Browser.grantPermissions", json!({"permissions": permissions})).await;
        browser.open_url(&service.url(&format!("/#{}", infra_env["id"].as_str().unwrap()))).await;
        browser.find_visible("[aria-label='Copy the URL of full.iso']").await.click().await;
        let url = service.url(&format!("/i/{}/full.iso", infra_env["id"].as_str().unwrap()));
        browser
            .wait_until("return document.getElementById('news').textContent === 'Copied the URL of full.iso'")
            .await;
        assert_eq!(browser.run_script("return navigator.clipboard.readText()").await, url);
        // Pages from other machines without TLS have no clipboard API.
        browser
            .run_script(
                "Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})",
            )
            .await;
        browser.find_visible("[aria-label='Copy the URL of kernel']").await.click().await;
        browser
            .wait_until("return document.getElementById('news').textContent === 'Copied the URL of kernel'")
            .await;
        assert_eq!(browser.focused_element().await.accessible_name().await, "Copy the URL of kernel");
        browser.run_script("delete navigator.clipboard").await;
        let copied = browser.run_script("return navigator.clipboard.readText()").await;
        assert_eq!(copied, url.replace("full.iso", "kernel"));
    });
}

/// Users may choose any name.
#[test]
fn hostile_name_is_shown_as_text() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let name = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";
        service.create_infra_env(name).await;
        browser.open_url(&service.url("/")).await;
        let opener = browser.find_visible(".opener").await;
        opener.click().await;
        browser.wait_until(FILES).await;
        assert!(opener.text().await.starts_with(name), "{}", opener.text().await);
        browser.find_visible("[data-slot=delete]").await.click().await;
        assert!(browser.find_visible("dialog").await.text().await.contains(name));
        browser.press_keys(key::ESCAPE).await;
        let hacked = "return [window.hacked ?? null, document.images.length, document.scripts.length]";
        assert_eq!(browser.run_script(hacked).await, json!([null, 1, 1]));
        assert_eq!(browser.console_messages().await, [""; 0]);
        // The content security policy blocks even an injected script.
        let refused = browser
            .run_script("try { document.body.innerHTML = '<b>x</b>'; return false; } catch { return true; }")
            .await;
        assert_eq!(refused, true);
    });
}

#[test]
fn infra_env_is_deleted_after_confirmation() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        service.create_infra_env("stays").await;
        service.create_infra_env("goes").await;
        browser.open_url(&service.url("/")).await;
        // The newest infra-env is the first.
        browser.find_visible(".opener").await.click().await;
        let delete = browser.find_visible("[data-slot=delete]").await;
        delete.click().await;
        assert_eq!(browser.find_visible("dialog").await.accessible_name().await, "Delete this infra-env?");
        assert_eq!(browser.focused_element().await.accessible_name().await, "Keep it");
        browser.press_keys(key::ENTER).await;
        browser.wait_until("return !document.querySelector('dialog').open").await;
        assert_eq!(browser.focused_element().await.accessible_name().await, "Delete goes");
        assert_eq!(service.infra_envs().await.len(), 2);
        delete.click().await;
        browser.find_visible("#delete").await.click().await;
        browser.wait_until("return document.querySelectorAll('.card').length === 1").await;
        let left = service.infra_envs().await;
        assert_eq!((left.len(), &left[0]["name"]), (1, &json!("stays")));
        browser
            .wait_until("return document.getElementById('news').textContent === 'goes was deleted.'")
            .await;
        assert_eq!(browser.focused_element().await.accessible_name().await, "New infra-env");
    });
}

#[test]
fn infra_env_is_deleted_with_its_hosts_only_by_choice() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let infra_env = service.create_infra_env("rack").await;
        let hosts = ["0f2a5d3c-1111-4222-8333-444455556661", "0f2a5d3c-1111-4222-8333-444455556662"];
        for host in hosts {
            service.register_host(&infra_env, host).await;
        }
        browser.open_url(&service.url(&format!("/#{}", infra_env["id"].as_str().unwrap()))).await;
        browser.find_visible("[data-slot=delete]").await.click().await;
        let choice = browser.find_visible("#delete-hosts").await;
        assert_eq!(choice.accessible_name().await, "Also delete its 2 hosts");
        assert_eq!(choice.property("checked").await, false);
        browser.find_visible("#delete").await.click().await;
        let text = browser.find_visible("dialog .problem").await.text().await;
        assert!(text.starts_with("Nothing was deleted: the infra-env still has 2 hosts."), "{text}");
        assert_eq!((service.hosts(&infra_env).await.len(), service.infra_envs().await.len()), (2, 1));
        // The second deletion fails.
        let fail = format!(
            "const real = window.fetch; window.fetch = (url, options) => options.method === 'DELETE' && `${{url}}`.endsWith('{}') \
             ? Promise.resolve(new Response('{{\"reason\": \"the database is gone\"}}', {{status: 500}})) : real(url, options)",
            hosts[1]
        );
        browser.run_script(&fail).await;
        choice.click().await;
        browser.find_visible("#delete").await.click().await;
        browser
            .wait_until("return document.querySelector('dialog .problem').textContent.includes('failed')")
            .await;
        let text = browser.find_visible("dialog .problem").await.text().await;
        let failure =
            format!("Hosts deleted: 1 of 2. Deleting host {} failed: the database is gone", hosts[1]);
        assert_eq!(text, failure);
        browser.wait_until("return document.querySelector('dialog [data-slot=hosts]').textContent === 'Also delete its 1 host'").await;
        assert_eq!(choice.property("checked").await, false);
        assert_eq!((service.hosts(&infra_env).await.len(), service.infra_envs().await.len()), (1, 1));
        browser.run_script("delete window.fetch").await;
        browser.open_url(&service.url("/?again")).await;
        browser.find_visible(".opener").await.click().await;
        browser.find_visible("[data-slot=delete]").await.click().await;
        browser.find_visible("#delete-hosts").await.click().await;
        browser.find_visible("#delete").await.click().await;
        browser.wait_until("return document.querySelectorAll('.card').length === 0").await;
        assert_eq!(service.infra_envs().await.len(), 0);
    });
}

/// The first run deletes a host of `rack` until the dialog opens for `other`. The second run deletes the last host.
#[test]
fn closed_dialog_stops_the_deletion() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let rack = service.create_infra_env("rack").await;
        for host in ["0f2a5d3c-1111-4222-8333-444455556661", "0f2a5d3c-1111-4222-8333-444455556662"] {
            service.register_host(&rack, host).await;
        }
        let other = service.create_infra_env("other").await;
        browser.open_url(&service.url("/")).await;
        // Responses to deletions arrive when the test calls `resume`.
        let delay = "const real = window.fetch; window.fetch = async (url, options) => { \
                       const response = await real(url, options); \
                       if (options.method === 'DELETE') await new Promise((resolve) => (window.resume = resolve)); \
                       return response; }";
        browser.run_script(delay).await;
        browser.wait_until("return document.querySelectorAll('#infra-envs .opener').length === 2").await;
        for opener in browser.find_all(".opener").await {
            opener.click().await;
        }
        let start_deletion = async || {
            browser.find_visible("[aria-label='Delete rack']").await.click().await;
            browser.find_visible("#delete-hosts").await.click().await;
            browser.find_visible("#delete").await.click().await;
            browser.wait_until("return Boolean(window.resume)").await;
            browser.find_visible("#keep").await.click().await;
        };
        let resume = "window.resume(); delete window.resume";
        let is_stopped = |count: &str| {
            let text = format!("rack: Hosts deleted: {count}. The dialog was closed.");
            format!("return document.getElementById('problem').innerText === '{text}'")
        };

        start_deletion().await;
        browser.find_visible("[aria-label='Delete other']").await.click().await;
        browser.run_script(resume).await;
        browser.wait_until(&is_stopped("1 of 2")).await;
        assert_eq!((service.hosts(&rack).await.len(), service.infra_envs().await.len()), (1, 2));
        let dialog = browser.find_visible("dialog").await.text().await;
        assert!(dialog.contains("other") && !dialog.contains("Deleting host"), "{dialog}");
        let is_enabled = "return !document.getElementById('delete').disabled";
        assert_eq!(browser.run_script(is_enabled).await, true);
        browser.find_visible("#keep").await.click().await;

        start_deletion().await;
        browser.run_script(resume).await;
        browser.wait_until(&is_stopped("1 of 1")).await;
        assert_eq!((service.hosts(&rack).await.len(), service.infra_envs().await.len()), (0, 2));
        assert_eq!(service.hosts(&other).await.len(), 0);
        assert_eq!(browser.console_messages_after_deletion().await, [""; 0]);
    });
}

#[test]
fn infra_envs_are_filtered_by_name() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        for number in 0..205 {
            service.create_infra_env(&format!("rack-{number:03}")).await;
        }
        browser.open_url(&service.url("/")).await;
        browser.wait_until("return document.querySelectorAll('.card').length === 200").await;
        let text = browser.find_visible("#nothing").await.text().await;
        assert_eq!(text, "Showing the newest 200 of 205. Use the filter to find others.");
        browser.find_visible("#filter").await.type_text("RACK-003").await;
        browser.wait_until("return document.querySelectorAll('.card').length === 1").await;
        assert!(browser.find_visible(".opener").await.text().await.starts_with("rack-003"));
        browser.find_visible("#filter").await.type_text("x").await;
        browser.wait_until("return document.getElementById('nothing').textContent === 'No infra-env matches this name or id.'").await;
    });
}

/// The page shows changes by other clients immediately, and open content stays in place.
#[test]
fn changes_of_other_clients_appear_without_a_reload() {
    run_test(async {
        let service = PageService::start().await;
        let Some(browser) = Browser::start().await else { return };
        let first = service.create_infra_env("first").await;
        let id = first["id"].as_str().unwrap();
        browser.open_url(&service.url(&format!("/#{id}"))).await;
        browser.find_visible(".files a[href$='/full.iso']").await;
        browser.run_script("document.querySelector('.files tbody tr').dataset.mark = 'kept'").await;
        let second = service.create_infra_env("second").await;
        let names = "return [...document.querySelectorAll('#infra-envs [data-slot=name]')].map((it) => it.textContent).join()";
        browser.wait_until(&format!("{names} === 'second,first'")).await;
        let path = format!("/infra-envs/{}", second["id"].as_str().unwrap());
        let url = service.url(&format!("{}{path}", crate::service::API));
        assert_eq!(service.client.delete(url).send().await.unwrap().status(), 204);
        browser.wait_until(&format!("{names} === 'first'")).await;
        let mark = "return document.querySelector('.files tbody tr').dataset.mark";
        assert_eq!(browser.run_script(mark).await, "kept");
        service.api_json(Method::PATCH, &format!("/infra-envs/{id}"), &json!({"kernel_arguments": []})).await;
        browser.wait_until("return document.querySelector('[data-slot=about]').textContent.includes('Kernel argumentsnone')").await;
        assert_eq!(browser.console_messages().await, [""; 0]);
    });
}
