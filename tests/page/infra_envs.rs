//! The list of infra-envs, and what is shown of one.

use reqwest::Method;
use serde_json::{Value, json};

use crate::browser::{Browser, key};
use crate::run;
use crate::service::{PULL_SECRET, Service};

/// All files of an infra-env as the page lists them: name, size, URL.
const FILES: &str = "
    const text = (row, selector) => row.querySelector(selector)?.textContent ?? null;
    const rows = [...document.querySelectorAll('.files tbody tr')].filter((row) => row.offsetParent);
    return rows.length > 0 && rows.map((row) => [text(row, 'a'), row.querySelector('data')?.value ?? null, text(row, '.url')]);";

/// Sizes are those that are served, URLs are those of the API, and nobody else is asked for anything.
#[test]
fn all_files_of_an_infra_env_are_listed() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        let made = service.infra_env("demo").await;
        let id = made["id"].as_str().unwrap();
        let listing: Value = service.get(&format!("/i/{id}")).await.json().await.unwrap();
        browser.go(&service.url("/")).await;
        let opener = browser.find(".opener").await;
        assert!(opener.label().await.starts_with("demo"), "{}", opener.label().await);
        opener.click().await;
        let shown = browser.until(FILES).await;
        let shown = shown.as_array().unwrap();
        assert_eq!(shown.len(), listing["files"].as_array().unwrap().len() + 1);
        for row in shown {
            let (name, url) = (row[0].as_str().unwrap(), row[2].as_str().unwrap());
            assert!(url.starts_with(&service.url(&format!("/i/{id}/{name}"))), "{url}");
            let head = service.client.head(url).send().await.unwrap();
            assert_eq!(head.status(), 200, "{url}");
            if name != "script.ipxe" {
                assert_eq!(row[1].as_str().unwrap(), head.headers()["content-length"], "{name}");
            }
        }
        let names: Vec<_> = shown.iter().map(|row| row[0].as_str().unwrap()).collect();
        assert_eq!(names, ["full.iso", "minimal.iso", "script.ipxe", "initrd", "kernel", "rootfs"]);
        let findings = browser.find(".findings").await.text().await;
        assert!(findings.contains("VLAN 0") && findings.contains("line 15"), "{findings}");
        assert!(findings.contains("52:54:00:00:00:01") && findings.contains("id: 0"), "{findings}");
        assert_eq!(browser.complaints().await, [""; 0]);
        let asked = browser.requests().await;
        let strangers: Vec<_> = asked
            .iter()
            .filter(|url| url.starts_with("http") && !url.starts_with(&service.url("/")))
            .collect();
        assert!(strangers.is_empty(), "{strangers:?}");
        assert!(asked.contains(&service.url("/page/api.js")), "{asked:?}");
    });
}

#[test]
fn closed_cards_show_the_number_of_their_findings() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        service.infra_env("checked").await;
        let plain = json!({"name": "plain", "pull_secret": PULL_SECRET, "openshift_version": "4.17"});
        service.api(Method::POST, "/infra-envs", &plain).await;
        browser.go(&service.url("/")).await;
        browser.find(".counts .badge.warning").await;
        let shown = "return [...document.querySelectorAll('.opener')].map((opener) => \
                     [opener.querySelector('.name').textContent, opener.querySelector('.counts').textContent])";
        assert_eq!(browser.script(shown).await, json!([["plain", ""], ["checked", "1 warning"]]));
        // Only the infra-env with something to check is asked for.
        let asked = browser.requests().await;
        assert_eq!(asked.iter().filter(|url| url.ends_with("/preflight")).count(), 1, "{asked:?}");
        assert_eq!(browser.all("[aria-expanded=true]").await.len(), 0);
        browser.find("#refresh").await.click().await;
        browser
            .until("return document.getElementById('news').textContent === 'The list is up to date.'")
            .await;
        assert_eq!(browser.script(shown).await, json!([["plain", ""], ["checked", "1 warning"]]));
        let asked = browser.requests().await;
        assert!(!asked.iter().any(|url| url.ends_with("/preflight")), "{asked:?}");
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

/// Of a machine with a static network, there are images with no other network in them.
#[test]
fn files_for_one_machine_are_listed() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        let made = service.infra_env("demo").await;
        let id = made["id"].as_str().unwrap();
        browser.go(&service.url(&format!("/#{id}"))).await;
        browser.find("[data-slot=machine] option[value='52:54:00:00:00:01']").await.click().await;
        let path = format!("/i/{id}/52:54:00:00:00:01/");
        browser
            .until(&format!("return document.querySelector('.url')?.textContent.includes('{path}')"))
            .await;
        let shown = browser.until(FILES).await;
        assert_eq!(shown.as_array().unwrap().len(), 3, "{shown}");
        for (row, name) in shown.as_array().unwrap().iter().zip(["full.iso", "minimal.iso", "initrd"]) {
            assert_eq!(row[2], service.url(&format!("{path}{name}")));
            let head = service.client.head(row[2].as_str().unwrap()).send().await.unwrap();
            assert_eq!(
                (head.status().as_u16(), row[1].as_str().unwrap()),
                (200, head.headers()["content-length"].to_str().unwrap())
            );
        }
        assert_eq!(browser.complaints().await, [""; 0]);
    });
}

#[test]
fn urls_are_copied() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        let made = service.infra_env("demo").await;
        let permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"];
        browser.debug("Browser.grantPermissions", json!({"permissions": permissions})).await;
        browser.go(&service.url(&format!("/#{}", made["id"].as_str().unwrap()))).await;
        browser.find("[aria-label='Copy the URL of full.iso']").await.click().await;
        let url = service.url(&format!("/i/{}/full.iso", made["id"].as_str().unwrap()));
        browser
            .until("return document.getElementById('news').textContent === 'Copied the URL of full.iso'")
            .await;
        assert_eq!(browser.script("return navigator.clipboard.readText()").await, url);
        // What pages from other machines have without TLS: no clipboard.
        browser
            .script("Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})")
            .await;
        browser.find("[aria-label='Copy the URL of kernel']").await.click().await;
        browser
            .until("return document.getElementById('news').textContent === 'Copied the URL of kernel'")
            .await;
        assert_eq!(browser.active().await.label().await, "Copy the URL of kernel");
        browser.script("delete navigator.clipboard").await;
        let copied = browser.script("return navigator.clipboard.readText()").await;
        assert_eq!(copied, url.replace("full.iso", "kernel"));
    });
}

/// Names are whatever somebody chose.
#[test]
fn a_hostile_name_is_text() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        let name = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";
        service.infra_env(name).await;
        browser.go(&service.url("/")).await;
        let opener = browser.find(".opener").await;
        opener.click().await;
        browser.until(FILES).await;
        assert!(opener.text().await.starts_with(name), "{}", opener.text().await);
        browser.find("[data-slot=delete]").await.click().await;
        assert!(browser.find("dialog").await.text().await.contains(name));
        browser.press(key::ESCAPE).await;
        let hacked = "return [window.hacked ?? null, document.images.length, document.scripts.length]";
        assert_eq!(browser.script(hacked).await, json!([null, 1, 1]));
        assert_eq!(browser.complaints().await, [""; 0]);
        // Even a script that would do it may not.
        let refused = browser
            .script("try { document.body.innerHTML = '<b>x</b>'; return false; } catch { return true; }")
            .await;
        assert_eq!(refused, true);
    });
}

#[test]
fn one_is_deleted_after_a_question() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        service.infra_env("stays").await;
        service.infra_env("goes").await;
        browser.go(&service.url("/")).await;
        // The newest is the first.
        browser.find(".opener").await.click().await;
        let delete = browser.find("[data-slot=delete]").await;
        delete.click().await;
        assert_eq!(browser.find("dialog").await.label().await, "Delete this infra-env?");
        assert_eq!(browser.active().await.label().await, "Keep it");
        browser.press(key::ENTER).await;
        browser.until("return !document.querySelector('dialog').open").await;
        assert_eq!(browser.active().await.label().await, "Delete goes");
        assert_eq!(service.infra_envs().await.len(), 2);
        delete.click().await;
        browser.find("#delete").await.click().await;
        browser.until("return document.querySelectorAll('.card').length === 1").await;
        let left = service.infra_envs().await;
        assert_eq!((left.len(), &left[0]["name"]), (1, &json!("stays")));
        browser.until("return document.getElementById('news').textContent === 'goes was deleted.'").await;
        assert_eq!(browser.active().await.label().await, "New infra-env");
    });
}

#[test]
fn many_are_found_by_their_names() {
    run(async {
        let Some(browser) = Browser::start().await else { return };
        let service = Service::start().await;
        for number in 0..205 {
            service.infra_env(&format!("rack-{number:03}")).await;
        }
        browser.go(&service.url("/")).await;
        browser.until("return document.querySelectorAll('.card').length === 200").await;
        let told = browser.find("#nothing").await.text().await;
        assert_eq!(told, "The newest 200 of 205 are shown. The filter finds the others.");
        browser.find("#filter").await.enter("RACK-003").await;
        browser.until("return document.querySelectorAll('.card').length === 1").await;
        assert!(browser.find(".opener").await.text().await.starts_with("rack-003"));
        browser.find("#filter").await.enter("x").await;
        browser.until("return document.getElementById('nothing').textContent === 'No infra-env has this in its name or id.'").await;
    });
}
